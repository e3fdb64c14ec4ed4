"""Where it looks, in the report of a comparison."""

from __future__ import annotations

import json
from typing import Any

from analysis.comparison.report.chapter import Compared
from analysis.comparison.report.looks import looks
from analysis.digest.compare import compare_results
from analysis.section.blocks import Block, Html, Text
from study import tasks
from study.results import Results
from tests.chapters.texts.text_results import make_text_cell, write_text
from tests.made_up.comparisons import make_cell, write


def words(word: str) -> str:
    """The examples of a cell: one post of one word, by which it is known again."""
    example: dict[str, Any] = {
        "words": [word], "attention": [1.0], "foreground": [], "label": "a", "predicted": "a",
        "score": 1.0,
    }  # fmt: skip
    return json.dumps([example])


def blocks_of(results: Results) -> list[Block]:
    (found,) = compare_results(results)
    return looks(found)


def html_of(blocks: list[Block]) -> str:
    return "".join(block.html for block in blocks if isinstance(block, Html))


def test_paradigms_are_shown_on_the_first_seed_that_all_have(results: Results) -> None:
    recorded = {("soft", 0), ("soft", 1), ("hard", 1), ("soft", 2), ("hard", 2)}
    for paradigm in ("soft", "hard"):
        for seed in range(3):
            known = (paradigm, seed) in recorded
            examples = words(f"{paradigm}{seed}") if known else None
            write(results, make_cell(paradigm, seed=seed), examples=examples)
            worse = make_cell(paradigm, lr=0.2, seed=seed)
            write(results, worse, accuracy=0.1, examples=words("worse"))
    blocks = blocks_of(results)
    html = html_of(blocks)
    assert [name in html for name in ("soft0", "soft1", "hard1", "soft2", "worse")] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert any("on seed 1" in block.text for block in blocks if isinstance(block, Text))
    (found,) = compare_results(results)
    for run in Compared(found).summaries():
        page = run.files()["where-it-looks.html"].decode()
        assert [f"{name}1" in page for name in ("soft", "hard")] == [
            run.params["paradigm"] == name for name in ("soft", "hard")
        ]


def test_readers_are_warned_before_posts_of_hate_speech(results: Results) -> None:
    write_text(results, make_text_cell("soft"), examples=words("<slur>"))
    blocks = blocks_of(results)
    texts = [block for block in blocks if isinstance(block, Text)]
    assert texts[0] == Text(tasks.TASKS["hatexplain"].warning, "warning")
    assert "&lt;slur&gt;" in html_of(blocks)


def test_a_page_of_many_settings_has_no_room_for_it(results: Results) -> None:
    write(results, make_cell(), examples=words("seen"))
    (found,) = compare_results(results)
    in_full, one_of_many = (Compared(found, many).blocks([], "results") for many in (1, 7))
    assert "seen" in html_of(in_full)
    assert html_of(one_of_many) == ""
