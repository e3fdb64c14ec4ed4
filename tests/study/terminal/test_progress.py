"""The progress line: what it counts and when it speaks."""

from __future__ import annotations

import io
import itertools
import weakref

import pytest

from study.cell import Schedule
from study.tasks.mosaics.mosaics import MosaicTask
from study.terminal.progress import Progress, duration
from tests.conftest import tiny_cell


@pytest.fixture
def progress(digits: MosaicTask) -> tuple[Progress, list[str]]:
    cells = [
        tiny_cell(digits, Schedule.single(name, 0.1), seed=seed)
        for seed in (0, 1)
        for name in ("soft", "hard")
    ]
    seconds = {cell.id: 10.0 for cell in cells}
    made = Progress(cells, seconds, concurrent=2, finished=3, stream=io.StringIO())
    return made, [cell.id for cell in cells]


class Clock:
    now = 0.0


def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of progress lines, from now on set by hand."""
    clock = Clock()
    monkeypatch.setattr("study.terminal.progress.time.monotonic", lambda: clock.now)
    return clock


def report(cell_id: str, fraction: float, accuracy: float) -> dict:
    return {"cell_id": cell_id, "budget_fraction": fraction, "accuracy": accuracy, "saif": 0.1}


def test_what_an_ended_cell_reported_is_let_go(progress: tuple[Progress, list[str]]) -> None:
    made, ids = progress

    class Report(dict):
        """One that can be referred to weakly."""

    last = Report(report(ids[0], 1.0, 0.5))
    held = weakref.ref(last)
    made.started(ids[0])
    made.evaluated(last)
    del last
    made.ended(ids[0], "done")
    assert held() is None
    assert made.line().endswith("best validation accuracy % soft 50.0")


def test_it_counts_done_running_and_left(progress: tuple[Progress, list[str]]) -> None:
    made, ids = progress
    assert made.line().startswith("3/7 cells done, 0 running, 4 left")
    made.started(ids[0])
    made.started(ids[1])
    assert made.line().startswith("3/7 cells done, 2 running, 2 left")
    made.evaluated(report(ids[0], 1.0, 0.5))
    made.ended(ids[0], "done")
    made.ended(ids[1], "diverged")
    made.started(ids[2])
    made.ended(ids[2], "failed")
    line = made.line()
    assert line.startswith("6/7 cells done, 0 running, 1 left, 1 diverged, 1 failed")


def test_the_best_is_of_finished_cells_a_paradigm(progress: tuple[Progress, list[str]]) -> None:
    made, (soft, hard, other_soft, _) = progress
    made.evaluated(report(soft, 1.0, 0.9))
    assert "best" not in made.line()
    made.ended(soft, "done")
    made.evaluated(report(other_soft, 1.0, 0.7))
    made.ended(other_soft, "done")
    made.evaluated(report(hard, 0.5, 0.99))
    made.ended(hard, "diverged")
    assert made.line().endswith("best validation accuracy % soft 90.0")


def test_the_time_left_follows_what_was_measured(
    progress: tuple[Progress, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, ids = progress
    clock = set_clock(monkeypatch)
    assert made.seconds_left() == 20  # four cells of 10 s, two at a time
    clock.now = 13  # Ray has started, which is no measure of training
    made.started(ids[0])
    made.evaluated(report(ids[0], 0.0, 0.3))
    assert made.seconds_left() == 20
    clock.now = 13 + 40
    made.evaluated(report(ids[0], 0.5, 0.3))
    made.ended(ids[1], "done")
    # Half of one and all of another cell took 40 s: two and a half of four cells are left.
    assert made.seconds_left() == pytest.approx(40 * 2.5 / 1.5)
    for cell_id in ids:
        made.ended(cell_id, "done")
    assert made.seconds_left() == 0
    assert (made.began, made.ended_at) == (13, 53)


def test_what_precedes_and_follows_training_is_left_until_then(
    progress: tuple[Progress, list[str]],
) -> None:
    made, ids = progress
    made._before, made._after = 13.0, 12.0
    assert made.seconds_left() == 13 + 20 + 12
    for cell_id in ids:
        made.evaluated(report(cell_id, 1.0, 0.3))
        made.ended(cell_id, "done")
    assert made.seconds_left() == 12


def test_a_log_gets_few_lines(progress: tuple[Progress, list[str]]) -> None:
    made, ids = progress
    for cell_id in ids:
        made.started(cell_id)
        made.ended(cell_id, "done")
    made.show(last=True)
    text = made._stream.getvalue()
    assert text.count("\n") == 2
    assert "\r" not in text
    assert text.splitlines()[-1].startswith("7/7 cells done")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [8, 20, 40, 60, 80, 100, 200])
def test_the_line_of_a_terminal_is_never_wrapped(
    progress: tuple[Progress, list[str]], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Only a line that is not can be rewritten."""
    monkeypatch.setenv("COLUMNS", str(columns))
    made, ids = progress
    made._stream = _Terminal()
    for cell_id, end in zip(ids, ("done", "done", "failed"), strict=False):
        made.started(cell_id)
        made.evaluated(report(cell_id, 1.0, 0.5))
        made.ended(cell_id, end)
    made.show(last=True)
    lines = [line.strip("\n") for line in made._stream.getvalue().split("\r\x1b[K")[1:]]
    assert all(0 < len(line) < columns for line in lines), lines
    assert lines[-1].startswith("6/7")
    if columns == 200:
        assert lines[-1] == made.line()


def test_a_narrow_line_leaves_out_what_matters_least(
    progress: tuple[Progress, list[str]],
) -> None:
    made, ids = progress
    made.started(ids[0])
    made.evaluated(report(ids[0], 1.0, 0.5))
    made.ended(ids[0], "done")
    made.started(ids[1])
    made.ended(ids[1], "failed")
    left = made.line().split(" | ")[1]
    whole = f"5/7 cells done, 0 running, 2 left, 1 failed | {left}"
    forms = [
        f"{whole} | best validation accuracy % soft 50.0",
        f"{whole} | best % soft 50.0",
        whole,
        f"5/7 done, 0 running, 1 failed | {left}",
        f"5/7 done, 1 failed | {left}",
        "5/7, 1 failed",
        "5/7",
    ]
    assert made.line() == forms[0]
    for form, shorter in itertools.pairwise(forms):
        assert made.line(len(form)) == form
        assert made.line(len(form) - 1) == shorter


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5400, "1.5 h"), (172800, "2.0 days")],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
