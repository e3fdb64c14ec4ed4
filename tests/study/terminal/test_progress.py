"""Progress: what it counts, how it tells the time left, and its bars in a terminal."""

from __future__ import annotations

import re

import pytest

from study.cell import Schedule
from study.tasks.mosaics.mosaics import MosaicTask
from study.terminal import working
from study.terminal.progress import Progress
from tests.conftest import tiny_cell
from tests.made_up.screen import in_a_terminal, screen, words


@pytest.fixture
def progress(digits: MosaicTask) -> tuple[Progress, list[str]]:
    """Of four cells of 10 s, two at a time."""
    cells = [
        tiny_cell(digits, Schedule.single(name, 0.1), seed=seed)
        for seed in (0, 1)
        for name in ("soft", "hard")
    ]
    made = Progress(concurrent=2)
    made.expect(cells, {cell.id: 10.0 for cell in cells}, finished=3)
    return made, [cell.id for cell in cells]


def test_it_counts_cells_and_names_the_best_of_a_paradigm(
    progress,
):
    """Of finished ones."""
    made, (soft, hard, other_soft, other_hard) = progress
    assert made.line() == "3/7 cells done, 4 left | 20 s left"
    for cell_id in (soft, hard):
        made.started(cell_id)
    made.evaluated(1.0, {soft: 0.9})
    assert made.line().startswith("3/7 cells done, 2 running, 2 left")
    assert "best" not in made.line()
    made.waiting(hard)
    made.ended(soft, "done")
    assert made.line().startswith("4/7 cells done, 3 left")
    made.evaluated(0.5, {hard: 0.99})
    made.ended(hard, "diverged")
    made.evaluated(1.0, {other_soft: 0.7, hard: 0.1})
    made.ended(other_soft, "done")
    made.ended(other_hard, "failed")
    ends = "7/7 cells done, 1 diverged, 1 failed"
    assert made.line() == f"{ends} | best validation accuracy % soft 90.0"


def test_the_time_left_is_estimated_then_follows_what_was_measured(progress, monkeypatch):
    made, ids = progress
    now = [13.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    assert made.seconds_left() == 20
    made.started(ids[0])
    made.evaluated(0.0, {ids[0]: 0.3})
    assert made.seconds_left() == 20
    now[0] = 13 + 40
    made.evaluated(0.5, {ids[0]: 0.3})
    made.ended(ids[1], "done")
    # Half of one and all of another cell took 40 s: two and a half of four cells are left.
    assert made.seconds_left() == pytest.approx(40 * 2.5 / 1.5)
    for cell_id in ids:
        made.ended(cell_id, "done")
    assert made.seconds_left() == 0


def test_cells_to_come_count_before_and_after_they_are_named(progress, digits):
    made, _ = progress
    made.expect([], {}, to_come=4, seconds_to_come=80.0)
    named = tiny_cell(digits, Schedule.single("soft", 0.1), seed=5)
    for _ in range(2):
        assert made.line() == "0/4 cells done, 4 left | 40 s left"
        made.name([named], {named.id: 20.0})


def test_elsewhere_there_are_notes_a_line_now_and_then_and_the_last(
    progress,
    capsys,
):
    made, _ = progress
    with working.telling(), made.shown():
        made.note("starting")
    made.note("nobody listens")
    assert capsys.readouterr() == ("", f"starting\n{made.line()}\n")


CODE = """
import sys, time
from types import SimpleNamespace
from study.terminal.progress import Progress
from study.terminal.working import telling, working

asked = telling()
asked.__enter__()
cells = [SimpleNamespace(id=str(i), label="soft" if i % 2 else "hard") for i in range(6)]
progress = Progress(concurrent=6)
progress.expect(cells, {cell.id: 10.0 for cell in cells}, finished=3)
with progress.shown():
    for cell in cells:
        progress.started(cell.id)
    time.sleep(0.6)
    for number, cell in enumerate(cells):
        progress.evaluated(0.5, {cell.id: 0.5})
        progress.note(f"cell {number} has a note that is long enough for two lines")
        if number == 3:
            print("warning: from a library", file=sys.stderr)
            STOP
        if number == 4:
            with working("reading results"):  # as when options are chosen
                time.sleep(0.8)
        progress.ended(cell.id, "failed" if number == 2 else "done")
print("what follows")
"""


@pytest.mark.parametrize("columns", [40, 120])
def test_a_terminal_has_bars_notes_above_and_the_last_state(columns):
    written = in_a_terminal(CODE.replace("STOP", ""), columns)
    drawn = words(written)
    assert re.search("━ hard ━+ soft ━+ hard ━+ soft (?!━+ hard)", drawn)  # four of six
    assert re.search("━ reading results: [01] s so far", drawn)
    note = "cell {} has a note that is long enough for two lines"
    before, after = (" ".join(map(note.format, some)) for some in (range(4), range(4, 6)))
    notes, ends = (f"{before} warning: from a library {after}", "9/9 cells done, 1 failed")
    last = f"{ends} | best validation accuracy % hard 50.0 soft 50.0"
    assert re.fullmatch(
        f"{notes} ━+ {re.escape(last)} what follows", words(left(written, columns))
    )


def test_what_is_stopped_leaves_its_last_state():
    written = in_a_terminal(CODE.replace("STOP", "raise SystemExit(0)"), 120)
    last = "6/9 cells done, 3 running, 1 failed | .* soft 50.0 ━+[╸╺]━+ soft ━+ hard ━+ soft"
    assert re.search(f"library ━+[╸╺]━+ {last}$", words(left(written, 120)))


def left(written: str, columns: int) -> str:
    """The screen at the end."""
    return "\n".join(screen(written, columns))
