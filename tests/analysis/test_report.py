"""The report is one file that needs nothing else, and says what the comparison holds."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from analysis.comparison.compare import Comparison, compare_results
from analysis.comparison.report.answer import answer
from analysis.comparison.report.chapter import Compared
from analysis.comparison.report.limits import limits
from analysis.comparison.report.pictures import pictures
from analysis.comparison.report.table_one import table_one_cells
from analysis.comparison.report.tables import comparison_cells
from analysis.comparison.report.verdicts import paired_cells
from analysis.conclude import conclude, write_report
from analysis.section.picture import Picture
from analysis.words import setting_words
from study.cell import Budget
from study.results import Results, ResultsError
from tests.conftest import not_drawn
from tests.made_up.comparisons import compared, make_cell, make_results, write

HOSTILE = '<script>alert("1")</script> & $x_{'


class Page(HTMLParser):
    """Collects what a test asks of a page; fails on tags that are not closed in order."""

    _VOID = frozenset({"meta", "img", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.alternatives: list[str] = []
        self.rows: list[list[str]] = []
        self.headings: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.links += [values[name] or "" for name in ("src", "href") if name in values]
        if tag == "svg":
            self.alternatives.append(values["aria-label"] or "")
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag in ("h2", "h3"):
            self.headings.append("")
        if tag not in self._VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        match self._open[-1:]:
            case ["td" | "th"]:
                self.rows[-1][-1] += data
            case ["h2" | "h3"]:
                self.headings[-1] += data


def page_of(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


class Small(NamedTuple):
    """A report of two paradigms with all its figures, which are not drawn."""

    results: Results
    comparison: Comparison
    drawn: list[Picture]
    folder: Path
    page: Page


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder = tmp_path_factory.mktemp("small")
    results = make_results(folder / "results")
    write_small(results)
    write(
        results,
        make_cell("lvml", seed=7),
        status="diverged",
        points=(0.25,),
        status_reason="loss is not finite at step 31",
    )
    with not_drawn():
        path = write_report(results, folder / "out", notes=["3 cells skipped: no such network"])
    assert path == folder / "out" / "report.html"
    comparison = compared(results)
    return Small(results, comparison, pictures(comparison), folder / "out", page_of(path))


def write_small(results: Results, **settings: object) -> None:
    for paradigm in ("soft", "hard"):
        for seed in range(2):
            write(results, make_cell(paradigm, seed=seed, **settings), saif=0.4 + 0.1 * seed)


def test_it_is_self_contained(small: Small) -> None:
    page = small.page
    assert page.links
    assert all(link.startswith("#") for link in page.links)
    assert not {"link", "iframe", "object", "script"} & set(page.tags)
    text = (small.folder / "report.html").read_text()
    assert not re.search(r"@import|url\(", text)
    for style in ("prefers-color-scheme: dark", "@media print"):
        assert style in text
    assert all(page.alternatives)
    assert len(page.alternatives) == len(small.drawn)


def test_it_shows_numbers_settings_and_end_states(small: Small) -> None:
    comparison, rows = small.comparison, small.page.rows
    for header, cells in (comparison_cells(comparison), paired_cells(comparison.paired)):
        for row in (header, *cells):
            assert row in rows
    for option in comparison.options.itertuples():
        score = f"{100 * option.validation_accuracy:.2f}"
        assert any(row[0] == option.paradigm and score in row for row in rows)
    for row in (
        ["segments m", "10"],
        ["budget", "1,000,000 flops"],
        ["package versions", "numpy 2.4.6, torch 2.15.0"],
        ["lvml", "diverged", "1"],
        ["soft", "done", "2"],
    ):
        assert row in rows
    (row,) = [row for row in rows if row[-1] == "loss is not finite at step 31"]
    assert row[1:5] == ["lvml", "10", "7", "diverged"]
    assert "3 cells skipped: no such network" in small.page.text


@pytest.mark.usefixtures("no_pictures")
def test_text_is_escaped(results: Results, tmp_path: Path) -> None:
    lost = {"status": "diverged", "points": (), "status_reason": "<b>loss</b>"}
    versions = {"package_versions": json.dumps({HOSTILE: "1"})}
    write(results, make_cell("soft"), study=HOSTILE, code_version=HOSTILE)
    write(results, make_cell("hard"), study=HOSTILE, **lost, **versions)
    page = page_of(write_report(results, tmp_path, notes=[HOSTILE], study=HOSTILE))
    assert not {"script", "b"} & set(page.tags)
    assert page.text.count(HOSTILE) >= 4
    assert "<b>loss</b>" in page.text


def _another(value: Any) -> Any:
    """Another value that a field of a cell may have."""
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value):
        return value[::-1]
    others: dict[Any, Any] = {"disjoint": "shared-base", "float32": "bfloat16", "mlp": "other"}
    if value in others:
        return others[value]
    if isinstance(value, Budget):
        return Budget(value.amount + 1)
    if isinstance(value, tuple):
        return (0.0, *value)
    return value / 2 if isinstance(value, float) else value + 1


@pytest.mark.parametrize(
    "field",
    [
        name
        for name, value in make_cell().to_dict().items()
        if name not in ("task", "schedule", "seed")
    ],
)
def test_comparisons_say_in_what_they_differ(results: Results, field: str) -> None:
    """Whatever makes two comparisons of one study: in every heading, and on the terminal."""
    one = make_cell()
    for cell in (one, make_cell(**{field: _another(getattr(one, field))})):
        write(results, cell)
    found = compare_results(results, details=False)
    words = [setting_words(each.settings, [field])[0] for each in found]
    assert len(set(words)) == 2
    for comparison, word in zip(found, words, strict=True):
        name = comparison.name
        assert word in name
        assert Compared(comparison).text().startswith(f"{name}: ")
        assert all(name in run.name for run in Compared(comparison).summaries())
    one_row, other = (row[:2] for row in table_one_cells(found)[1])
    assert one_row != other


@pytest.mark.usefixtures("no_pictures")
def test_study_and_cell_ids_restrict(results: Results, tmp_path: Path) -> None:
    first = write(results, make_cell("soft"), study="one")
    write(results, make_cell("hard", m=5, n=500), study="two")
    # Of two mosaic sizes, the sizes are enough.
    assert [each.name for each in compare_results(results)] == ["digits m=5", "digits m=10"]
    for question in ({"study": "one"}, {"cell_ids": [first.id, "ab", "cd"], "title": "Mine"}):
        page = page_of(write_report(results, tmp_path, select="saif", **question))
        assert "hard" not in {row[0] for row in page.rows}
        assert "hidden foreground" in page.text
    assert "2 of 3 planned cells have no result" in page.text
    assert "Mine" in page.text
    with pytest.raises(ResultsError, match="none of the requested cells"):
        write_report(results, tmp_path, cell_ids=["ab"])


def test_the_answer_comes_first_and_the_terminal_says_the_same(small: Small) -> None:
    """In the same order: who is better, the table, what was tested, what limits it."""
    comparison, page = small.comparison, small.page
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        conclude(small.results).print()
    header, rows = comparison_cells(comparison)
    said = [*answer([comparison]), rows[0][1], *limits(comparison)]
    for text in (page.text, " ".join(printed.getvalue().split())):
        places = [text.index(sentence) for sentence in said]
        assert places == sorted(places)
    assert page.rows[: len(rows) + 1] == [header, *rows]
    assert page.tags.index("table") < page.tags.index("svg") < page.tags.index("details")
    assert "hidden foreground" not in page.text


def test_markdown_says_the_same_and_its_pictures_exist(small: Small) -> None:
    page, folder = small.page, small.folder
    text = (folder / "report.md").read_text()
    links = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(links) == len(page.alternatives)
    assert all((folder / link).read_bytes().startswith(b"\x89PNG") for link in links)
    assert all((folder / link).with_suffix(".pdf").exists() for link in links)
    lines = [_plain(line) for line in text.splitlines() if line.startswith("|")]
    for row in page.rows:
        assert row in lines
    headings = [line.lstrip("# ") for line in text.splitlines() if re.match("##+ ", line)]
    assert [name for name in headings if name in page.headings] == page.headings


def _plain(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    cells = re.split(r"(?<!\\) \| |^\| | \|$", line)[1:-1]
    return [re.sub(r"\\(.)", r"\1", cell.replace("**", "")) for cell in cells]


def test_a_second_report_replaces_the_first_and_leaves_nothing_else(
    small: Small, tmp_path: Path
) -> None:
    """Figures that a report no longer has go, too; what someone else put there stays."""
    folder = tmp_path / "out"
    with not_drawn():
        write_report(small.results, folder)
        first = _contents(folder)
        (folder / "report.html").write_text("an older one")
        older = [f"figures/compute-saif-00000000.{end}" for end in ("png", "pdf")]
        foreign = [
            f"figures/{name}" for name in ("mine-00000000.png", "compute-saif.png", "a.txt")
        ]
        foreign += ["notes.csv", "trajectories.csv", "table1.txt"]
        for name in (*older, *foreign):
            (folder / name).touch()
        write_report(small.results, folder)
    assert _contents(folder) == first | dict.fromkeys(foreign, b"")


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_report_that_cannot_be_written_leaves_the_older_one(
    small: Small, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    shutil.copytree(small.folder, folder)
    (folder / "report.md").unlink()
    (folder / "report.md").mkdir()  # is written last, and cannot be replaced
    shutil.rmtree(folder / "figures")
    (folder / "figures").touch()
    (folder / "cells.csv").write_text("older")
    with not_drawn(), pytest.raises(ResultsError, match="cannot write the report"):
        write_report(small.results, folder)
    assert (folder / "cells.csv").read_text() == "older"
    assert not list(folder.glob(".*"))
