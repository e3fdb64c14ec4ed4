"""`python -m analysis.report RESULTS --watch`: a page that keeps up with a study."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from analysis.report import main
from study.cell import Budget
from study.terminal.command import INTERRUPTED
from tests.made_up.comparisons import BUDGET, make_cell, make_results, write

pytestmark = pytest.mark.usefixtures("no_pictures")

Watched = Callable[..., int]


@pytest.fixture
def watched(monkeypatch) -> Watched:
    """Watches a directory; a generator goes on while the command waits, its end is Ctrl-C."""

    def watch(meanwhile, *arguments):
        def sleep(_):
            if next(meanwhile, "over") == "over":
                raise KeyboardInterrupt

        clock = SimpleNamespace(sleep=sleep, process_time=time.process_time)
        monkeypatch.setattr("analysis.watch.time", clock)
        return main([*arguments, "--watch", "0.1"])

    return watch


def test_a_page_follows_a_study(tmp_path, watched, capsys):
    """From before its directory is there until Ctrl-C, which makes it as any other report."""
    place = tmp_path / "results"
    page = place / "report" / "report.html"

    def study():
        yield  # once more without a directory
        results = make_results(place)
        with results.lock():
            assert not page.exists()
            for paradigm, so_far in (("soft", "1 cell is"), ("hard", "2 cells are")):
                write(results, make_cell(paradigm))
                yield
                text = page.read_text()
                assert f"So far {so_far} recorded; a command is running with them" in text
                assert "location.reload()" in text
        yield
        assert "So far 2 cells are recorded; no command is running" in page.read_text()
        made = page.stat().st_mtime_ns
        yield
        assert page.stat().st_mtime_ns == made
        write(results, make_cell("lvml"))  # no look follows, only Ctrl-C

    assert watched(study(), str(place)) == 0
    said = capsys.readouterr().out
    assert said.count(f"waiting for the first cell in {place}\n") == 1
    assert [said.count(f"So far {number} cell") for number in (1, 2)] == [1, 2]
    assert said.endswith(f"\nstopped watching; report: {page.as_uri()}\n")
    text = page.read_text()
    assert "lvml" in text
    assert "So far" not in text
    assert "location.reload()" not in text


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (["--study", "other"], "unknown study 'other'"),
        (["--budget", str(2 * BUDGET)], "a budget of 2e+06 FLOPs lies beyond"),
    ],
)
def test_what_cannot_be_answered_yet_is_waited_for(
    results,
    watched,
    capsys,
    question,
    why,
):
    write(results, make_cell())

    def study():
        yield
        yield
        write(results, make_cell(m=5, budget=Budget(3 * BUDGET)), study="other")
        yield

    assert watched(study(), results.url, *question) == 0
    said = capsys.readouterr().out
    assert said.count("waiting: ") == 1
    assert why in said
    assert "stopped watching" in said


def test_ctrl_c_before_the_first_cell(tmp_path, watched, capsys):
    assert watched(iter(()), str(tmp_path)) == INTERRUPTED
    assert capsys.readouterr().err == "\nstopped; no report was written\n"
    assert not any(tmp_path.iterdir())


def test_an_object_store_does_not_tell_whether_a_study_runs(watched, capsys):
    results = make_results("memory://watched")

    def study():
        write(results, make_cell())
        yield
        text = results.storage.read("report/report.html").decode()
        assert "So far 1 cell is recorded; an object store does not tell" in text

    assert watched(study(), results.url) == 0
