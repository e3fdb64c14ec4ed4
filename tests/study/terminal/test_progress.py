"""Progress: what it counts, when it speaks, and its bars in a terminal."""

from __future__ import annotations

import io
import re

import pytest

from study.cell import Schedule
from study.tasks.mosaics.mosaics import MosaicTask
from study.terminal.progress import Progress
from tests.conftest import tiny_cell
from tests.made_up.screen import in_a_terminal, screen


@pytest.fixture
def progress(digits: MosaicTask) -> tuple[Progress, list[str]]:
    cells = [
        tiny_cell(digits, Schedule.single(name, 0.1), seed=seed)
        for seed in (0, 1)
        for name in ("soft", "hard")
    ]
    seconds = {cell.id: 10.0 for cell in cells}
    made = Progress(concurrent=2, stream=io.StringIO())
    made.expect(cells, seconds, finished=3)
    return made, [cell.id for cell in cells]


def test_it_counts_cells_and_names_the_best_of_a_paradigm(
    progress: tuple[Progress, list[str]],
) -> None:
    """Of finished ones. A log gets few lines."""
    made, (soft, hard, other_soft, other_hard) = progress
    made.show()
    assert made.line().startswith("3/7 cells done, 0 running, 4 left")
    for cell_id in (soft, hard):
        made.started(cell_id)
    made.evaluated(1.0, {soft: 0.9})
    line = made.line()
    assert line.startswith("3/7 cells done, 2 running, 2 left")
    assert "best" not in line
    made.ended(soft, "done")
    made.evaluated(0.5, {hard: 0.99})
    made.ended(hard, "diverged")
    made.evaluated(1.0, {other_soft: 0.7})
    made.ended(other_soft, "done")
    made.ended(other_hard, "failed")
    made.show(last=True)
    text = made._stream.getvalue()
    _, last = text.splitlines()
    assert last.startswith("7/7 cells done, 0 running, 0 left, 1 diverged, 1 failed")
    assert last.endswith("best validation accuracy % soft 90.0")
    assert "\r" not in text


def test_the_time_left_follows_what_was_measured(
    progress: tuple[Progress, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what precedes and follows training."""
    made, ids = progress
    now = [0.0]
    monkeypatch.setattr("study.terminal.progress.time.monotonic", lambda: now[0])
    made._before, made._after = 13.0, 12.0
    assert made.seconds_left() == 13 + 20 + 12  # four cells of 10 s, two at a time
    now[0] = 13  # Ray has started, which is no measure of training
    made.started(ids[0])
    made.evaluated(0.0, {ids[0]: 0.3})
    assert made.seconds_left() == 20 + 12
    now[0] = 13 + 40
    made.evaluated(0.5, {ids[0]: 0.3})
    made.ended(ids[1], "done")
    # Half of one and all of another cell took 40 s: two and a half of four cells are left.
    assert made.seconds_left() == pytest.approx(40 * 2.5 / 1.5 + 12)
    for cell_id in ids:
        made.ended(cell_id, "done")
    assert made.seconds_left() == 12
    assert (made.began, made.ended_at) == (13, 53)


CODE = """
import sys
from types import SimpleNamespace
from study.terminal import working as module
from study.terminal.progress import Progress
from study.terminal.working import telling, working

module.BAR_AFTER = 0
asked = telling()
asked.__enter__()
cells = [SimpleNamespace(id=str(i), label="soft" if i % 2 else "hard") for i in range(6)]
progress = Progress(concurrent=6)
progress.expect(cells, {cell.id: 10.0 for cell in cells}, finished=3)
with progress.shown():
    for cell in cells:
        progress.started(cell.id)
    for number, cell in enumerate(cells):
        progress.evaluated(0.5, {cell.id: 0.5})
        progress.show(last=True)
        progress._live.refresh()
        if number == 2:
            progress.note("cell 2: worker lost (its node is gone); tried again in a moment")
        if number == 3:
            print("warning: from a library", file=sys.stderr)
            STOP
        if number == 4:
            with working("reading results"):  # as when options are chosen
                progress._live.refresh()
        progress.evaluated(1.0, {cell.id: 0.5})
        progress.ended(cell.id, "failed" if number == 2 else "done")
print("what follows")
"""


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_a_terminal_has_bars_notes_above_and_the_last_state(columns: int) -> None:
    written = in_a_terminal(CODE.replace("STOP", ""), columns)
    assert all(text in written for text in ("3/9 cells", "50%", "s left", "6 running", "hard "))
    assert "reading results" in written
    *notes, last, counts, after = joined(screen(written, columns))
    assert notes == [
        "cell 2: worker lost (its node is gone); tried again in a moment",
        "warning: from a library",
    ]
    assert re.fullmatch("  9/9 cells ━+ +in 0 s", last)
    best = "best validation accuracy % hard 50.0 soft 50.0"
    assert counts == f"  0 running, 0 left, 1 failed | {best}"
    assert after == "what follows"


def test_what_is_stopped_leaves_its_last_state() -> None:
    code = CODE.replace("STOP", "raise SystemExit(0)")
    *_, last, counts = joined(screen(in_a_terminal(code, 80), 80))
    assert re.fullmatch("  6/9 cells ━+[╸╺]?━* +in 0 s", last)
    assert counts.startswith("  3 running, 0 left, 1 failed")


def test_a_terminal_that_draws_nothing_has_lines() -> None:
    code = CODE.replace("STOP", "").replace("progress._live.refresh()", "pass")
    code = f"import os; os.environ['TERM'] = 'dumb'{code}"
    written = in_a_terminal(code, 200)
    assert "3/9 cells done, 1 running, 5 left | 10 s left\r\n" in written
    assert "\x1b" not in written


def joined(lines: list[str]) -> list[str]:
    """The lines; those that go on with the one before, since the terminal is narrow, with it."""
    made: list[str] = []
    for line in filter(None, lines):
        if made and (re.match("  (?!\\d+[/ ])", line)):
            made[-1] += f" {line.strip()}"
        else:
            made.append(line)
    return made
