"""Real Ray Tune: launched equals called, failures stay with their cell."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.axes import resolve
from study.cell import Cell, Schedule
from study.errors import RequestError
from study.launch import launch, ray_session
from study.packs import Packing
from study.plan import Plan
from study.progress import Progress
from study.results import Results
from study.tasks.mosaics import MosaicTask
from study.trial import train_cells
from tests.conftest import tiny_cell

TIMES = ["train_seconds"]


def make_plan(
    cells: list[Cell], finished: frozenset[str] = frozenset(), packing: Packing | None = None
) -> Plan:
    packing = packing or Packing()
    return Plan("digits", "tiny", tuple(cells), finished, (), {}, packing, concurrent=2, threads=1)


def config(results: Results, **changes: Any) -> dict[str, Any]:
    return {"study": "digits", "results": results.url, "code_version": "test", **changes}


class Launched:
    """A launch with what it told."""

    def __init__(self, plan: Plan, results: Results) -> None:
        self.recorded: list[str] = []
        self.stream = io.StringIO()
        seconds = {cell.id: 1.0 for cell in plan.to_run}
        progress = Progress(plan.to_run, seconds, 2, len(plan.finished), self.stream)

        def on_cell(cell_id: str) -> str:
            self.recorded.append(cell_id)
            return str(results.cells([cell_id])["status"].iloc[0])

        self.failures = launch(plan, config(results), progress, on_cell)
        self.line = progress.line()


@pytest.fixture
def results(tmp_path: Path) -> Results:
    opened = Results(tmp_path / "results")
    opened.prepare()
    return opened


@pytest.fixture
def cells(digits: MosaicTask) -> list[Cell]:
    return [
        tiny_cell(digits, Schedule.single("soft", 0.1)),
        tiny_cell(digits, Schedule.hybrid(0.1, 0.1, 0.5)),
        tiny_cell(digits, Schedule.single("lvml", 1e20)),
        tiny_cell(digits, Schedule.single("hard-sampled", 0.1), seed=3),
    ]


def table(results: Results) -> pd.DataFrame:
    keys = ["cell_id", "budget_fraction", "split"]
    return results.evaluations().drop(columns=TIMES).sort_values(keys, ignore_index=True)


@pytest.mark.usefixtures("ray_instance")
def test_launched_cells_equal_cells_trained_without_ray(
    cells: list[Cell], results: Results, tmp_path: Path
) -> None:
    launched = Launched(make_plan(cells), results)
    assert launched.failures == []
    assert sorted(launched.recorded) == sorted(cell.id for cell in cells)
    assert launched.line.startswith("4/4 cells done, 0 running, 0 left, 1 diverged")
    direct = Results(tmp_path / "direct")
    direct.prepare()
    for cell in cells:
        train_cells({**config(direct), "threads": 1, "cells": [cell.to_dict()]})
    pd.testing.assert_frame_equal(table(results), table(direct))
    statuses = results.cells().set_index("cell_id")["status"]
    assert statuses[cells[2].id] == "diverged"
    assert set(statuses[[c.id for c in (cells[0], cells[1], cells[3])]]) == {"done"}


@pytest.mark.usefixtures("ray_instance")
def test_launched_packs_equal_cells_alone(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    """Also a pack whose first cell is done already, and one with a member that diverges."""
    rates = (0.1, 1e20)
    cells = [
        tiny_cell(digits, Schedule.single("soft", lr), seed=seed)
        for seed in (0, 1)
        for lr in rates
    ]
    train_cells({**config(results), "threads": 1, "cells": [cells[0].to_dict()]})
    plan = make_plan(cells, frozenset({cells[0].id}), Packing("seed"))
    assert [len(pack) for pack in plan.packs] == [2, 1]
    launched = Launched(plan, results)
    assert launched.failures == []
    assert launched.line.startswith("4/4 cells done, 0 running, 0 left, 2 diverged")
    direct = Results(tmp_path / "direct")
    direct.prepare()
    for cell in cells:
        train_cells({**config(direct), "threads": 1, "cells": [cell.to_dict()]})
    pd.testing.assert_frame_equal(table(results), table(direct))
    packed = results.cells().set_index("cell_id")["pack"]
    assert [packed[cell.id] for cell in cells] == [1, 2, 1, 2]


@pytest.mark.usefixtures("ray_instance")
def test_a_failed_cell_stops_no_other_and_is_not_recorded(
    cells: list[Cell], digits: MosaicTask, results: Results
) -> None:
    broken = tiny_cell(digits, data_digest="of data that is not here")
    launched = Launched(make_plan([broken, *cells[:2]]), results)
    assert [failure.cell_id for failure in launched.failures] == [broken.id]
    assert "the data changed" in launched.failures[0].error
    assert results.finished() == {cell.id for cell in cells[:2]}
    assert "1 failed" in launched.line


@pytest.mark.usefixtures("ray_instance")
def test_finished_cells_are_not_launched(cells: list[Cell], results: Results) -> None:
    done = frozenset(cell.id for cell in cells[1:])
    launched = Launched(make_plan(cells, finished=done), results)
    assert launched.recorded == [cells[0].id]
    assert results.finished() == {cells[0].id}


def test_an_address_without_ray_is_named() -> None:
    with (
        pytest.raises(RequestError, match=r"no Ray cluster at --address 127.0.0.1:1 \(.*refused"),
        ray_session(1, "127.0.0.1:1"),
    ):
        pass


def test_axes_reach_the_trial() -> None:
    """What `--set` says is what cells hold; nothing is lost on the way to a worker."""
    from search_spaces import all_studies
    from study import tasks
    from study.plan import make_plan as lay_out

    space = all_studies()["digits"]
    axes = resolve(
        space, "quick", ["momentum=0.5", "width=0.5", "evaluations=4", "split=shared-base"]
    )
    for cell in lay_out(space, "quick", axes, tasks.info("digits"), "d").cells:
        again = Cell.from_dict(cell.to_dict())
        assert (again.momentum, again.width, again.split) == (0.5, 0.5, "shared-base")
        assert again.evaluation_points == (0.0, 0.25, 0.5, 0.75, 1.0)
