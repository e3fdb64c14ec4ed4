"""The report is one file that needs nothing else; the command line says what was wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import analysis
from analysis.compare import compare
from analysis.report import main, write_report
from analysis.sections import edge_warnings
from analysis.tables import comparison_cells, comparison_text
from study.results import Results, ResultsError
from tests.synthetic_results import BUDGET, make_cell, make_results, write

HOSTILE = '<script>alert("1")</script> & $x_{'


class _Page(HTMLParser):
    """Collects what a test asks of a page; fails on tags that are not closed in order."""

    _VOID = frozenset({"meta", "img", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.alternatives: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.links += [values[name] or "" for name in ("src", "href") if name in values]
        if tag == "img":
            self.alternatives.append(values["alt"] or "")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in self._VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open and self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def _page(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return make_results(tmp_path / "results")


def _write_small(results: Results, **settings: object) -> None:
    for paradigm in ("soft", "hard"):
        for seed in range(2):
            write(results, make_cell(paradigm, seed=seed, **settings), saif=0.4 + 0.1 * seed)


def test_it_is_self_contained(results: Results, tmp_path: Path) -> None:
    _write_small(results)
    path = write_report(results, tmp_path / "out")
    assert path == tmp_path / "out" / "report.html"
    page = _page(path)
    assert page.links
    assert all(link.startswith(("data:image/png;base64,", "#")) for link in page.links)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    text = path.read_text()
    assert "@import" not in text
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert all(page.alternatives)
    # heat maps of two paradigms on two splits, and two curves
    assert len(page.alternatives) == 6


def test_it_shows_the_numbers_of_the_summary(results: Results, tmp_path: Path) -> None:
    _write_small(results)
    write(results, make_cell("lvml"), status="diverged", points=(0.5,))
    page = _page(write_report(results, tmp_path))
    (comparison,) = compare(analysis.load(results))
    header, rows = comparison_cells(comparison.summary)
    for row in (header, *rows):
        assert row in page.rows
    for option in comparison.options.itertuples():
        score = f"{100 * option.validation_accuracy:.2f}"
        assert any(row[0] == option.paradigm and score in row for row in page.rows)


def test_settings_and_end_states_are_there(results: Results, tmp_path: Path) -> None:
    _write_small(results)
    write(
        results,
        make_cell("lvml", seed=7),
        status="diverged",
        points=(0.25,),
        status_reason="loss is not finite at step 31",
    )
    page = _page(write_report(results, tmp_path, notes=["3 cells skipped: no such network"]))
    settings = {row[0]: row[1] for row in page.rows if len(row) == 2}
    assert settings["segments m"] == "10"
    assert settings["training mosaics n"] == "2000"
    assert settings["architecture"] == "mlp"
    assert settings["batch size"] == "64"
    assert settings["budget"] == "1,000,000 FLOPs"
    assert settings["data digest"] == "0123456789abcdef"
    assert settings["code version"] == "1a2b3c4"
    assert settings["package versions"] == "numpy 2.4.6, torch 2.15.0"
    assert settings["device"] == "cpu"
    assert settings["momentum"] == "0.9"
    assert ["lvml", "diverged", "1"] in page.rows
    assert ["soft", "done", "2"] in page.rows
    (row,) = [row for row in page.rows if row[-1] == "loss is not finite at step 31"]
    assert row[3:8] == ["7", "diverged", "25", "12.5", "22.5"]
    assert "3 cells skipped: no such network" in page.text


def test_text_is_escaped(results: Results, tmp_path: Path) -> None:
    reason = "<b>loss</b>"
    write(results, make_cell("soft"), study=HOSTILE, code_version=HOSTILE)
    write(
        results,
        make_cell("hard"),
        study=HOSTILE,
        status="diverged",
        points=(),
        status_reason=reason,
        package_versions=HOSTILE,
    )
    path = write_report(results, tmp_path, notes=[HOSTILE], study=HOSTILE)
    page = _page(path)
    assert not {"script", "b"} & set(page.tags)
    assert "<script" not in path.read_text()
    assert page.text.count(HOSTILE) >= 4
    assert reason in page.text


def test_each_comparison_has_its_section(results: Results, tmp_path: Path) -> None:
    _write_small(results)
    _write_small(results, m=5, n=500)
    page = _page(write_report(results, tmp_path))
    assert page.tags.count("h2") == 2
    assert [link for link in page.links if link.startswith("#")] == [
        "#comparison-1",
        "#comparison-2",
    ]


def test_study_and_cell_ids_restrict(results: Results, tmp_path: Path) -> None:
    first = write(results, make_cell("soft"), study="one")
    write(results, make_cell("hard"), study="two")
    page = _page(write_report(results, tmp_path, study="one"))
    assert "hard" not in {row[0] for row in page.rows}
    page = _page(write_report(results, tmp_path, cell_ids=[first.id, "ab", "cd"], title="Mine"))
    assert "hard" not in {row[0] for row in page.rows}
    assert "2 of 3 planned cells have no result" in page.text
    assert "Mine" in page.text


def test_the_choice_by_saif_is_labelled(results: Results, tmp_path: Path) -> None:
    _write_small(results)
    assert "hidden foreground" in _page(write_report(results, tmp_path, select="saif")).text
    assert "hidden foreground" not in _page(write_report(results, tmp_path)).text


def test_a_group_without_a_choice_is_named(results: Results, tmp_path: Path) -> None:
    write(results, make_cell("soft"))
    write(results, make_cell("hard"), status="censored", points=(0.25,))
    text = _page(write_report(results, tmp_path / "a")).text
    assert "hard: every option has a censored seed" in text
    other = make_results(tmp_path / "other")
    write(other, make_cell("soft"), status="censored", points=(0.25,))
    assert "soft: every option has a censored seed" in _page(write_report(other, tmp_path)).text


@pytest.mark.parametrize(("best", "warned"), [(0.1, "smallest"), (0.2, None), (0.4, "largest")])
def test_warns_where_the_best_rate_is_at_the_edge(
    results: Results, best: float, warned: str | None
) -> None:
    for lr in (0.1, 0.2, 0.4):
        write(results, make_cell("soft", lr), accuracy=0.9 if lr == best else 0.8)
        cell = make_cell("hybrid", 0.1, last_lr=lr)
        write(results, cell, accuracy=0.9 if lr == best else 0.8)
    write(results, make_cell("hard", 0.1))
    (comparison,) = compare(analysis.load(results))
    texts = edge_warnings(comparison.options, comparison.choice)
    if warned is None:
        assert texts == []
    else:
        soft, hybrid = texts
        assert soft.startswith(f"soft: the chosen learning rate {best} is the {warned} of the 3")
        assert hybrid.startswith(f"hybrid: the chosen last learning rate {best} is the {warned}")


def test_a_second_report_replaces_the_first_and_leaves_nothing_else(
    results: Results, tmp_path: Path
) -> None:
    _write_small(results)
    first = write_report(results, tmp_path / "out").read_bytes()
    assert write_report(results, tmp_path / "out").read_bytes() == first
    pictures = [r"heatmaps-test-\w{16}.png", r"heatmaps-train-\w{16}.png"]
    names = sorted(os.listdir(tmp_path / "out"))
    for name, pattern in zip(names, [*pictures, "report.html"], strict=True):
        assert re.fullmatch(pattern, name)


# --- the command line


def test_command_prints_the_tables_and_the_path(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_small(results)
    assert main([results.url]) == 0
    out = capsys.readouterr().out
    (comparison,) = compare(analysis.load(results))
    assert comparison_text(comparison.summary) in out
    assert out.endswith(f"report: {tmp_path / 'results' / 'report' / 'report.html'}\n")
    assert (tmp_path / "results" / "report" / "report.html").exists()
    assert main([results.url, "--out", str(tmp_path / "other"), "--budget", f"{BUDGET / 2}"]) == 0
    assert "50 % of the budget" in capsys.readouterr().out
    assert (tmp_path / "other" / "report.html").exists()


def test_the_report_of_a_url_goes_to_the_working_directory(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_small(results)
    monkeypatch.chdir(tmp_path)
    assert main([Path(results.url).as_uri(), "--study", "digits"]) == 0
    assert (tmp_path / "report" / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--study", "digit"], "holds no study 'digit'. Did you mean 'digits'?"),
        (["--budget", "10"], "smallest usable budget"),
        (["--budget", "0"], "must be a finite number of FLOPs > 0, got 0"),
        (["--budget", "-5"], "must be a finite number of FLOPs > 0, got -5"),
        (["--budget", "nan"], "must be a finite number of FLOPs > 0, got nan"),
        (["--budget", "much"], "invalid float value: 'much'"),
        (["--select", "loss"], "invalid choice: 'loss'"),
        (["--out", "{file}/out"], "Choose a folder with --out DIR"),
    ],
)
def test_a_bad_request_is_one_line(
    results: Results,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    _write_small(results)
    (tmp_path / "file").touch()
    arguments = [text.format(file=tmp_path / "file") for text in arguments]
    _assert_refused([results.url, *arguments], message, capsys)


@pytest.mark.parametrize("make", ["nothing", "folder", "tables", "file"])
def test_a_directory_without_a_finished_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: str
) -> None:
    where = tmp_path / "results"
    if make == "folder":
        where.mkdir()
    elif make == "tables":
        make_results(where)
    elif make == "file":
        where.touch()
    message = "holds no finished cell" if make == "tables" else "holds no results"
    _assert_refused([str(where)], message, capsys)


def test_none_of_the_cells_asked_for(results: Results, tmp_path: Path) -> None:
    _write_small(results)
    with pytest.raises(ResultsError, match="none of the requested cells"):
        write_report(results, tmp_path, cell_ids=["ab"])


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_as_a_command(results: Results, tmp_path: Path) -> None:
    _write_small(results)
    command = [sys.executable, "-W", "error", "-m", "analysis.report"]
    done = subprocess.run([*command, results.url], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    refused = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1


def _assert_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(arguments)
    except SystemExit as end:  # argparse ends the process itself
        status = int(str(end.code))
    captured = capsys.readouterr()
    assert status == 2
    assert "report:" not in captured.out
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
