"""A long part of a command says that it goes on; a short one is silent."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time

import pytest

from analysis import report
from study.terminal import working as module
from study.terminal.working import LINE_AFTER, LINE_EVERY, duration, telling, working
from tests.conftest import PROJECT, not_drawn
from tests.made_up.commands import called
from tests.made_up.comparisons import write_seeds
from tests.made_up.screen import in_a_terminal, screen, words

COMMAND = """
import os, sys, time
SETTING
from study.terminal import working as module
from study.terminal.command import guarded
from study.terminal.working import working
module.BAR_AFTER, each, stopped = {after}, {each}, {stopped}

def command():
    with working("surveying results", 4, "files") as part:
        for name in part.each("abcd"):
            time.sleep(each)
            if name == "b":
                with working("downloading " + "a-long-name " * 20):
                    print("a word from a library", file=sys.stderr)
                    time.sleep(each)
            if name == "c" and stopped:
                raise KeyboardInterrupt
    print("done")
    return 0

status = guarded("test", command, "stopped; all is kept")
assert status == (130 if stopped else 0)
print(status)
"""


def written_by(columns: int, setting: str = "", **how: object) -> str:
    """What the command writes in a terminal."""
    code = COMMAND.format(**{"after": 0, "each": 0.3, "stopped": False} | how)
    return in_a_terminal(code.replace("SETTING", setting), columns)


def left_on(written: str, columns: int) -> list[str]:
    """The lines at the end, but for empty ones."""
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h")  # the cursor is back
    return [line for line in screen(written, columns) if line]


@pytest.mark.parametrize("columns", [24, 120])
def test_a_terminal_shows_a_bar_that_vanishes(columns):
    written = written_by(columns)
    assert "━" in written
    assert all(word in words(written) for word in ("surveying", "2 of 4", "downloading"))
    assert left_on(written, columns) == ["a word from a library", "done", "0"]


def test_a_short_part_shows_nothing_in_a_terminal():
    written = written_by(40, after=0.5, each=0)
    assert "surveying" not in written
    assert left_on(written, 40) == ["a word from a library", "done", "0"]


def test_ctrl_c_leaves_a_clean_screen():
    # The cursor never stands so far right that the ^C, which a terminal echoes, begins a line.
    left = left_on(written_by(40, stopped=True), 40 - 3)
    assert left == ["a word from a library", "stopped; all is kept", "130"]


def test_a_terminal_that_moves_no_cursor_has_lines():
    setting = "os.environ['TERM'] = 'dumb'; from study.terminal import working as module\n"
    written = written_by(400, f"{setting}module.LINE_AFTER = 0.05")
    assert "surveying results: 0 s so far\r\n" in written
    assert "\x1b" not in written


@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_stream_is_no_reason_to_fail(closed):
    """Nor to say on stdout what belongs on stderr."""
    code = """
import time
from study.terminal import working as module

module.LINE_AFTER = 0.1
with module.telling(), module.working("starting"):
    module.say("a note")
    time.sleep(0.3)
print("done")
"""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}>&-', "sh", sys.executable, "-W", "error", "-c", code],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    there = ("", "a note\nstarting: 0 s so far\n") if closed == 1 else ("done\n", "")
    assert (done.stdout, done.stderr) == there


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines follow each other soon."""
    monkeypatch.setattr(module, "LINE_AFTER", 0.05)
    monkeypatch.setattr(module, "LINE_EVERY", 0.05)


@pytest.mark.usefixtures("quick")
def test_elsewhere_the_innermost_slow_part_says_so_again_and_again(capsys):
    with telling(), working("loading"):
        with working("downloading", 100, "MB", lambda: 50.0):
            time.sleep(0.3)
        out, errors = capsys.readouterr()
        time.sleep(0.2)
    lines = errors.splitlines()
    assert out == ""
    assert len(lines) >= 2
    assert set(lines) == {"downloading: 50 of 100 MB, 0 s left"}
    assert set(capsys.readouterr().err.splitlines()) <= {"loading: 0 s so far", *lines}


def test_elsewhere_a_part_of_seconds_says_so_once(capsys, monkeypatch):
    """Within two seconds of the command, which may wait for its first imports."""
    assert (LINE_AFTER, LINE_EVERY) == (1, 20)
    monkeypatch.setattr(module, "LINE_AFTER", 0.01)
    with telling(), working("starting"):
        time.sleep(0.2)
    assert capsys.readouterr().err == "starting: 0 s so far\n"


def test_elsewhere_a_short_part_is_silent(capsys):
    with telling(), working("reading results", 2, "files") as part:
        assert list(part.each("ab")) == ["a", "b"]
        assert part.done == 2
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("total", "done", "far"),
    [
        (None, 0, "10 s so far"),
        (None, 1_200, "1,200 files, 10 s so far"),
        (3_000, 0, "10 s so far"),
        (3_000, 1_200, "1,200 of 3,000 files, 15 s left"),
    ],
)
def test_how_far_a_part_is_and_how_long_the_rest_takes(total, done, far, monkeypatch):
    with working("reading results", total, "files") as part:
        part.step(done)
    monkeypatch.setattr("time.monotonic", lambda: part.began + 10)
    assert part.far == far


@pytest.mark.usefixtures("quick")
def test_nothing_is_said_unasked(capsys):
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


@pytest.mark.usefixtures("quick")
def test_a_report_says_how_far_it_is(results, capsys):
    """What it prints is as ever; nothing of that is on stdout."""
    write_seeds(results, {"soft": 0.5, "hard": 0.4})
    with not_drawn(), pytest.MonkeyPatch.context() as patch:
        slowly = "analysis.section.picture.figure_pdf"
        patch.setattr(slowly, lambda _: time.sleep(0.06) or b"%PDF-1.4")
        status, printed, errors = called(report.main, capsys, results.url)
    assert status == 0
    assert re.search(r"^drawing the report: \d+ of \d+ figures, \d+ s left$", errors, re.M)
    assert "drawing" not in printed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5400, "1.5 h"), (172800, "2.0 days")],
)
def test_durations_for_people(seconds, text):
    assert duration(seconds) == text
