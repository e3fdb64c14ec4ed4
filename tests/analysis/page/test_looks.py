"""Where it looks, in the report of a comparison."""

from __future__ import annotations

import json
import re

from analysis.digest.compare import compare_results
from analysis.page.comparisons import section_of
from analysis.page.where_it_looks import Looks, looks
from study import tasks
from study.results import Results
from tests.chapters.texts.text_results import make_text_cell, write_text
from tests.conftest import not_drawn
from tests.made_up.comparisons import make_cell, write


def words(word: str) -> str:
    """The examples of a cell: one post of one word, by which it is known again."""
    example = {
        "words": [word], "attention": [1.0], "foreground": [], "label": "a", "predicted": "a",
        "score": 1.0,
    }  # fmt: skip
    return json.dumps([example])


def looks_of(results: Results) -> Looks:
    (found,) = compare_results(results)
    shown = looks(found)
    assert shown
    return shown


def test_paradigms_are_shown_on_the_first_seed_that_all_have(results):
    recorded = {("soft", 0), ("soft", 1), ("hard", 1), ("soft", 2), ("hard", 2)}
    for paradigm in ("soft", "hard"):
        for seed in range(3):
            known = (paradigm, seed) in recorded
            examples = words(f"{paradigm}{seed}") if known else None
            write(results, make_cell(paradigm, seed=seed), examples=examples)
            worse = make_cell(paradigm, lr=0.2, seed=seed)
            write(results, worse, accuracy=0.1, examples=words("worse"))
    shown = looks_of(results)
    assert [name in shown.html for name in ("soft0", "soft1", "hard1", "soft2", "worse")] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert "on seed 1" in shown.text
    (found,) = compare_results(results)
    for run in section_of(found).summaries():
        with not_drawn():
            page = run.files()["where-it-looks.html"].decode()
        assert {*re.findall("soft1|hard1", page)} == {f"{run.params['paradigm']}1"}


def test_readers_are_warned_before_posts_of_hate_speech(results):
    write_text(results, make_text_cell("soft"), examples=words("<slur>"))
    shown = looks_of(results)
    assert shown.warning == tasks.TASKS["hatexplain"].warning != ""
    assert "&lt;slur&gt;" in shown.html
