"""The report is one file that needs nothing else, and says what the comparison holds."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from analysis.conclude import Question, conclude
from analysis.digest.compare import Comparison, compare_results
from analysis.page.pictures import pictures
from analysis.page.sentences import answer, said
from analysis.page.tables import comparison_cells, paired_cells
from analysis.settings import differences, full_name, setting_words, told_apart
from study.cell import Budget
from study.results import Results, ResultsError
from tests.conftest import not_drawn
from tests.made_up.comparisons import compared, make_cell, make_results, write, write_seeds

ENDS = (".png", ".pdf")


def tags(page: str) -> list[str]:
    return re.findall(r"<(\w+)", page)


def plain(page: str) -> str:
    """Its text without tags; that they close in order, tests/contracts/test_sections.py shows."""
    return unescape(re.sub(r"<[^>]*>", "", page))


def rows_of(page: str) -> list[list[str]]:
    """The cells of all tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[plain(cell) for cell in re.findall(r"<t[dh].*?>(.*?)</t", row)] for row in rows]


class Small(NamedTuple):
    """A report of two paradigms with all its figures, which are not drawn."""

    results: Results
    comparison: Comparison
    folder: Path
    page: str


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Small:
    folder = tmp_path_factory.mktemp("small")
    results = make_results(folder / "results")
    write_seeds(results, {"soft": 0.4, "hard": 0.4})
    write(
        results,
        make_cell("lvml", seed=7),
        status="diverged",
        points=(0.25,),
        status_reason="loss is not finite at step 31",
    )
    with not_drawn():
        path = conclude(results).write(folder / "out", notes=["3 cells skipped: no such network"])
    assert path == folder / "out" / "report.html"
    return Small(results, compared(results), folder / "out", Path(path).read_text())


def test_it_is_self_contained(small):
    """What it links is there: tests/contracts/test_sections.py."""
    page = small.page
    assert not re.search("<[^>]* src=", page)
    assert not {"link", "iframe", "object", "script"} & {*tags(page)}
    assert not re.search(r"@import|url\(", page)
    drawn = re.findall(r"!\[.*?\]\((.*?)\)", (small.folder / "report.md").read_text())
    assert len(drawn) == tags(page).count("svg") == len(pictures(small.comparison))
    assert all((small.folder / name).with_suffix(end).exists() for name in drawn for end in ENDS)


def test_it_shows_numbers_settings_and_end_states(small):
    rows = rows_of(small.page)
    for header, cells in (
        comparison_cells(small.comparison),
        paired_cells(small.comparison),
    ):
        assert all(row in rows for row in (header, *cells))
    for row in (["segments m", "10"], ["package versions", "numpy 2.4.6, torch 2.15.0"]):
        assert row in rows
    (row,) = [row for row in rows if row[-1] == "loss is not finite at step 31"]
    assert row[1:5] == ["lvml", "10", "7", "diverged"]
    assert "3 cells skipped: no such network" in plain(small.page)
    assert "Across settings" not in plain(small.page)  # there is one


OTHERS: dict[str, Any] = {
    "data_digest": "f" * 16,
    "m": 5,
    "n": 500,
    "budget": Budget(7),
    "architecture": "other",
    "width": 0.5,
    "batch_size": 8,
    "precision": "bfloat16",
    "momentum": 0.5,
    "split": "shared-base",
    "evaluation_points": (0.5, 1.0),
    "train_metrics_size": 9,
    "validation_size": 9,
    "test_size": 9,
}
"""Field of a cell -> another value than the usual one, of all that part comparisons of a task."""


@pytest.mark.parametrize("field", OTHERS)
def test_names_say_in_what_settings_differ(field):
    """Whatever makes two comparisons of one study."""
    settings = [make_cell().to_dict(), make_cell(**{field: OTHERS[field]}).to_dict()]
    assert OTHERS.keys() == settings[0].keys() - {"task", "schedule", "seed"}
    names = [*map(full_name, settings)]
    told = map(told_apart, names, settings, differences(names, settings))
    words = [setting_words(each, [field])[0] for each in settings]
    assert words[0] != words[1]
    assert all(word in name for word, name in zip(words, told, strict=True))


def test_study_and_cell_ids_restrict(results):
    first = write(results, make_cell("soft"), study="one")
    write(results, make_cell("hard", m=5, n=500), study="two")
    # Of two mosaic sizes, the sizes are enough.
    assert [each.name for each in compare_results(results)] == ["digits m=5", "digits m=10"]
    for of in ({"study": "one"}, {"cell_ids": [first.id, "ab", "cd"]}):
        (section,) = conclude(results, Question(**of)).sections
        assert section.cells["cell_id"].tolist() == [first.id]
    with pytest.raises(ResultsError, match="none of the requested cells"):
        conclude(results, Question(cell_ids=["ab"]))


def test_only_what_is_shown_is_doubted(results):
    for saif in (0.4, 0.6):  # two records of one cell
        twice = write(results, make_cell("soft"), saif=saif, study="one")
    write(results, make_cell("soft", m=5), study="two")
    (doubt,) = conclude(results).doubts
    assert f"cell {twice.id} has different results" in doubt
    assert conclude(results, Question("one")).doubts == [doubt]
    assert conclude(results, Question("two")).doubts == []


def test_the_answer_comes_first_and_the_terminal_says_the_same(small):
    """In the same order: who is better, the table, what was tested, what limits it."""
    comparison, page = small.comparison, small.page
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        conclude(small.results).print()
    header, rows = comparison_cells(comparison)
    shown = [*answer([comparison]), rows[0][1], *said("limits", comparison)]
    for text in (plain(page), " ".join(printed.getvalue().split())):
        places = [text.index(sentence) for sentence in shown]
        assert places == sorted(places)
    assert rows_of(page)[: len(rows) + 1] == [header, *rows]
    order = tags(page)
    assert order.index("table") < order.index("svg") < order.index("details")


def test_a_report_that_cannot_be_written_leaves_the_older_one(small, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(small.folder, folder)
    (folder / "report.md").unlink()
    (folder / "report.md").mkdir()  # is written last, and cannot be replaced
    shutil.rmtree(folder / "figures")
    (folder / "figures").touch()
    (folder / "cells.csv").write_text("older")
    with not_drawn(), pytest.raises(ResultsError, match="cannot write the report"):
        conclude(small.results).write(folder)
    assert (folder / "cells.csv").read_text() == "older"
    assert not list(folder.glob(".*"))
