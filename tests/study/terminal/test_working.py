"""A long part of a command says that it goes on; a short one is silent."""

from __future__ import annotations

import re
import sys
import threading
import time
from unittest.mock import Mock

import pytest

from analysis import report
from study.results import Results
from study.terminal import working as module
from study.terminal.working import LINE_AFTER, LINE_EVERY, draws, duration, telling, working
from tests.conftest import not_drawn
from tests.made_up.commands import called
from tests.made_up.comparisons import make_cell, write
from tests.made_up.screen import in_a_terminal, screen

Captured = pytest.CaptureFixture[str]

COMMAND = """
import sys, time
from study.terminal import working as module
from study.terminal.command import guarded
from study.terminal.working import working
module.BAR_AFTER = {after}

def command():
    with working("surveying results", 4, "files") as part:
        for name in part.each("abcd"):
            time.sleep({each})
            if name == "b":
                with working("downloading " + "a-long-name " * 20):
                    print("a word from a library", file=sys.stderr)
                    time.sleep({each})
            if name == "c" and {stopped}:
                raise KeyboardInterrupt
    print("done")
    return 0

status = guarded("test", command, "stopped; all is kept")
assert status == (130 if {stopped} else 0)
print(status)
"""


@pytest.mark.parametrize("columns", [13, 40, 120])
def test_a_terminal_shows_a_bar_that_vanishes(columns: int) -> None:
    code = COMMAND.format(after=0, each=0.3, stopped=False)
    written = in_a_terminal(code, columns)
    shown = ["sur", "dow"] if columns == 13 else ["surveying results", "of 4 files", "downloading"]
    assert all(words in written for words in shown)
    left = [line for line in screen(written, 120 if columns == 13 else columns) if line]
    assert left == ["a word from a library", "done", "0"]
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h")  # the cursor is back


def test_a_short_part_shows_nothing_in_a_terminal() -> None:
    written = in_a_terminal(COMMAND.format(after=0.5, each=0, stopped=False), 40)
    assert "surveying" not in written
    assert [line for line in screen(written, 40) if line] == ["a word from a library", "done", "0"]


def test_ctrl_c_leaves_a_clean_screen() -> None:
    written = in_a_terminal(COMMAND.format(after=0, each=0.3, stopped=True), 40)
    # The cursor never stands so far right that the ^C, which a terminal echoes, begins a line.
    left = [line for line in screen(written, 40 - 3) if line]
    assert left == ["a word from a library", "stopped; all is kept", "130"]
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines follow each other soon."""
    monkeypatch.setattr(module, "LINE_AFTER", 0.05)
    monkeypatch.setattr(module, "LINE_EVERY", 0.05)


@pytest.mark.usefixtures("quick")
def test_elsewhere_a_slow_part_says_so_again_and_again(capsys: Captured) -> None:
    with telling(), working("reading results", 4_000, "files") as part:
        part.step(1_000)
        time.sleep(0.3)
    with telling(), working("laying out the grid"):
        time.sleep(0.2)
    out, errors = capsys.readouterr()
    assert out == ""
    lines = errors.splitlines()
    assert lines.count("reading results: 1,000 of 4,000 files, 0 s left") >= 2
    assert "laying out the grid: 0 s so far" in lines
    assert "\r" not in errors


def test_elsewhere_a_part_of_seconds_says_so_once(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within two seconds of the command, which may wait for its first imports."""
    assert (LINE_AFTER, LINE_EVERY) == (1, 20)
    monkeypatch.setattr(module, "LINE_AFTER", 0.01)
    with telling(), working("starting"):
        time.sleep(0.2)
    assert capsys.readouterr().err == "starting: 0 s so far\n"


def test_elsewhere_a_short_part_is_silent(capsys: Captured) -> None:
    with telling(), working("reading results", 2, "files") as part:
        assert list(part.each("ab")) == ["a", "b"]
        assert part.done == 2
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("quick")
def test_of_parts_inside_each_other_the_innermost_speaks(capsys: Captured) -> None:
    with telling(), working("loading"):
        with working("downloading", 100, "MB", lambda: 50.0):
            time.sleep(0.2)
        inner = capsys.readouterr().err
        time.sleep(0.2)
    assert "downloading: 50 of 100 MB, 0 s left\n" in inner
    assert "loading: " not in inner.replace("downloading", "")
    assert "downloading" not in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_nothing_is_said_unasked(capsys: Captured) -> None:
    """As in a notebook, in a worker, or in MLflow's thread."""

    def work() -> None:
        with working("reading results"):
            time.sleep(0.2)

    work()
    with telling():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    work()
    assert capsys.readouterr() == ("", "")


def test_a_report_says_how_far_it_is(
    results: Results, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it prints is as ever; nothing of that is on stdout."""
    monkeypatch.setattr(module, "LINE_AFTER", 0.001)
    monkeypatch.setattr(module, "LINE_EVERY", 0.001)
    for seed in range(2):
        for paradigm in ("soft", "hard"):
            write(results, make_cell(paradigm, 0.1, seed))
    with not_drawn(), monkeypatch.context() as patch:
        slowly = "analysis.section.picture.figure_pdf"
        patch.setattr(slowly, lambda _: time.sleep(0.02) or b"%PDF-1.4")
        status, printed, errors = called(report.main, capsys, results.url)
    assert status == 0
    assert re.search(r"^drawing the report: \d+ of \d+ figures, \d+ s left$", errors, re.M)
    assert "drawing" not in printed


@pytest.mark.parametrize(
    ("lacks", "instead"),
    [
        ("sys.stderr", None),  # it is closed
        ("sys.stderr.isatty", lambda: False),
        ("sys.stderr", Mock(isatty=lambda: True, encoding="ISO-8859-1")),  # which lacks the signs
        ("os.environ", {"TERM": "dumb"}),
        ("importlib.util.find_spec", lambda name: None),  # rich
    ],
)
def test_without_what_bars_need_there_are_lines(
    lacks: str, instead: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert draws(sys.stderr)
    monkeypatch.setattr(lacks, instead)
    assert not draws(sys.stderr)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5400, "1.5 h"), (172800, "2.0 days")],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
