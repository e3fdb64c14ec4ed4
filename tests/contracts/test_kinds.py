"""What every kind of cell keeps, on every declared study of it that needs no download."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import search_spaces
from search_spaces.base import SearchSpace
from study import tasks
from study.cell import Cell
from study.cell.work import Work
from study.kinds import KINDS
from study.launch.trial import train_cells
from study.plan.axes import resolve, tasks_of
from study.plan.grid import make_plan
from study.plan.plan import Plan
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, Results
from study.train.timeline import timeline

SMALL = {
    "digits": ["n=60", "m=3", "epochs=2", "seed=0", "lr=0.1", "switch_point=0.5"],
    "fixed-focus": ["n=60", "m=3", "epochs=2", "seed=0", "lr=0.1", "task=digits", "alpha=0.2,1"],
    "linear-orthogonal": ["n=60", "m=3", "num_classes=4", "epochs=2", "seed=0"],
}
"""A study of every family -> what makes its cells small."""

SIZES = [
    "train_metrics_size=20",
    "validation_size=20",
    "test_size=20",
    "evaluations=2",
    "batch_size=20",
]


@pytest.fixture(scope="module", params=SMALL)
def space(request: pytest.FixtureRequest) -> SearchSpace:
    return search_spaces.all_studies()[request.param]


@pytest.fixture(scope="module")
def plan(space: SearchSpace) -> Plan:
    axes = resolve(space, "quick", [*SMALL[space.name], *SIZES])
    return make_plan(
        space, "quick", axes, lambda task, options: tasks.load(task, options=options).facts
    )


def work_of(space: SearchSpace, results: Path, cell: Cell) -> Work:
    return Work(
        study=space.name,
        kind=space.kind,
        results=str(results),
        code_version="test",
        cells=(cell,),
    )


def test_every_study_names_a_kind() -> None:
    assert {space.kind for space in search_spaces.all_studies().values()} <= KINDS.keys()


@pytest.mark.parametrize("name", KINDS)
def test_axes_say_what_they_are(name: str) -> None:
    kind = KINDS[name]
    assert set(kind.fastest) <= kind.axes.keys()
    for axis in kind.axes.values():
        assert axis.about
        assert axis.expects
        assert axis.only is None or axis.only[0] in kind.axes
    for axis in kind.axes:
        choices = kind.choices(axis, ["digits"])
        assert choices is None or len(set(choices)) == len(choices) > 0


@pytest.mark.parametrize("name", search_spaces.all_studies())
def test_every_axis_of_a_study_has_values(name: str) -> None:
    space = search_spaces.all_studies()[name]
    for preset in space.presets:
        axes = resolve(space, preset, [])
        assert axes.keys() == KINDS[space.kind].axes.keys()
        assert tasks_of(axes)


def test_cells_are_made_of_points(space: SearchSpace, plan: Plan) -> None:
    """Each differs from the others, is what its JSON says, and can run at a finite cost."""
    assert len(plan.cells) > 1
    assert len({cell.id for cell in plan.cells}) == len(plan.cells)
    maker = KINDS[space.kind].maker(lambda task, options: plan.facts[task, options])
    for cell in plan.cells:
        again = Cell.from_dict(json.loads(json.dumps(cell.to_dict())))
        assert (again, again.id) == (cell, cell.id)
        assert maker.why_not(cell) is None
        assert timeline(cell, maker.flops(cell))[-1].compute_flops > 0
        assert maker.facts(cell).digest == cell.data_digest


def test_a_cell_runs_and_is_recorded(space: SearchSpace, plan: Plan, tmp_path: Path) -> None:
    """With all columns of its kind, in the schema; twice, with the same numbers; once only."""
    kind, cell = KINDS[space.kind], plan.cells[-1]
    results = Results(tmp_path)
    results.prepare()
    work = work_of(space, tmp_path, cell)
    events: list[dict] = []
    (ended,) = kind.run(work, torch.device("cpu"), events.append)
    assert ended.status == "done"
    assert set(ended.columns) == set(kind.columns) <= set(CELLS_SCHEMA.names)
    assert all(row.keys() <= set(EVALUATIONS_SCHEMA.names) for row in ended.evaluations)
    told = [event for event in events if event["event"] == "evaluation"]
    assert [event["budget_fraction"] for event in told] == list(cell.evaluation_points)
    assert {event["cell_id"] for event in told} == {cell.id}
    kind.discard(results.storage, cell.id)

    assert train_cells(work) == {cell.id: "done"}
    assert train_cells(work) == {}
    assert not list(tmp_path.glob("checkpoints/*"))
    rows = results.evaluations()
    assert len(rows) == len(ended.evaluations)
    for name in ("split", "step", "compute_flops", "loss", "accuracy"):
        assert rows[name].tolist() == [row[name] for row in ended.evaluations]
    (row,) = results.cells().to_dict("records")
    assert (row["study"], row["status"], row["cell_id"]) == (space.name, "done", cell.id)


def test_work_travels_as_plain_values(space: SearchSpace, plan: Plan, tmp_path: Path) -> None:
    work = work_of(space, tmp_path, plan.cells[0])
    assert Work.from_dict(json.loads(json.dumps(work.to_dict())), KINDS[space.kind].cell) == work
