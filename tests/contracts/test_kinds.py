"""What every kind of cell keeps, on studies of seconds that need no data."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest
import torch

import search_spaces
from search_spaces.base import SearchSpace
from study import tasks
from study.cell.work import Job, Work
from study.kinds import KINDS, kind_of
from study.launch.run_job import run_job
from study.plan import estimate
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.plan.plan import Plan
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, Results
from study.tasks.sources.places import NO_PLACES
from tests.made_up.chapters import brought
from tests.made_up.tiny_studies import STUDIES

_COMMANDS = [*STUDIES.values(), *brought().studies.values()]
SMALL = {
    study: [word for word in words if "=" in word]
    for study, *words in map(str.split, reversed(_COMMANDS))
    if "{}" not in words
}
"""Study that needs no data -> values of its axes, by the first of its runs of seconds."""


@pytest.fixture(scope="module", params=SMALL)
def space(request) -> SearchSpace:
    return search_spaces.STUDIES[request.param]


@pytest.fixture(scope="module")
def plan(space) -> Plan:
    axes = resolve(space, "quick", SMALL[space.name])
    return make_plan(
        space, "quick", axes, lambda task, options: tasks.load(task, options=options).facts
    )


def work_of(space: SearchSpace, results: Path) -> Work:
    return Work(
        study=space.name,
        kind=space.kind,
        results=str(results),
        code_version="test",
    )


def test_every_kind_has_a_study_and_is_tested():
    studies = search_spaces.STUDIES
    assert {space.kind for space in studies.values()} == KINDS.keys()
    assert {studies[name].kind for name in SMALL} == KINDS.keys()


def test_cells_are_made_of_points(space, plan):
    """Each differs from the others, is what its JSON says, and can run at a finite cost."""
    assert len(plan.cells) > 1
    assert len({cell.id for cell in plan.cells}) == len(plan.cells)
    kind = KINDS[space.kind]
    maker = kind.maker(lambda task, options: plan.facts[task, options])
    for cell in plan.cells:
        again = kind.cell.from_dict(json.loads(json.dumps(cell.to_dict())))
        assert (again, again.id) == (cell, cell.id)
        assert maker.why_not(cell) is None
        assert maker.facts(cell).digest == cell.data_digest
        assert len({cell.comparison_id, cell.id}) == 2
        assert cell.columns.keys() <= set(CELLS_SCHEMA.names)


def test_a_setting_is_described_with_its_costs(space, plan):
    kind = KINDS[space.kind]
    for _, rows in plan.rows.groupby(plan.rows["cell"].map(attrgetter("setting"))):
        cells = [*rows["cell"]]
        facts = plan.facts[cells[0].task, cells[0].options]
        counted = Counter()
        for line in kind.describe(rows, facts):
            if line and (words := line.split())[0] in {cell.label for cell in cells}:
                counted[words[0]] += int(words[len(kind.row_names)])
        assert counted == Counter(cell.label for cell in cells)


def test_a_cell_takes_an_estimated_time(plan, monkeypatch):
    monkeypatch.setattr(estimate, "MOST_STEPS", 3)
    seconds = estimate.cell_seconds(plan, NO_PLACES)["alone"]
    assert len(seconds) == len(plan.cells)
    assert seconds.between(0, 600, "neither").all()


def test_a_short_cell_runs_in_moments(space, plan, tmp_path):
    """Of every sort, by which a dry run tells cells apart; and it leaves nothing behind."""
    for cell in {(cell.comparison_id, cell.label): cell for cell in plan.cells}.values():
        short = KINDS[space.kind].short(cell)
        work = replace(work_of(space, tmp_path), dry_run=True)
        assert run_job(Job(((short,),)), work) == {short.id: "done"}
    assert not list(tmp_path.iterdir())


def test_a_cell_runs_and_is_recorded(space, plan, tmp_path):
    """With all columns of its kind, in the schema; twice, with the same numbers; once only."""
    kind, cell = KINDS[space.kind], plan.cells[0]
    results = Results(tmp_path)
    results.prepare()
    for network in kind.needs([cell]):
        run_job(Job(((network,),)), replace(work_of(space, tmp_path), kind="training"))
    work, job = work_of(space, tmp_path), Job(((cell,),), watched=True)
    assert Job.of_config(json.loads(json.dumps(job.to_config())), kind.cell) == job
    events = []
    (ended,) = kind.runner(work, torch.device("cpu"), events.append)([cell], [])
    assert ended.status == "done"
    assert set(ended.columns) <= set(CELLS_SCHEMA.names)
    assert not ended.columns.keys() & cell.columns.keys()
    assert all(row.keys() <= set(EVALUATIONS_SCHEMA.names) for row in ended.evaluations)
    told = [event for event in events if event["event"] == "evaluation"]
    assert [event["budget_fraction"] for event in told] == list(cell.evaluation_points)
    assert {cell_id for event in told for cell_id in event["cells"]} == {cell.id}
    kind.discard(results.storage, cell.id)

    for _ in range(2):
        assert run_job(job, work) == {cell.id: "done"}
    assert not list(tmp_path.glob("checkpoints/*"))
    rows = results.evaluations([cell.id])
    assert len(rows) == len(ended.evaluations)
    for name in ("split", "step", "compute_flops", "loss", "accuracy"):
        assert rows[name].tolist() == [row[name] for row in ended.evaluations]
    (row,) = results.cells([cell.id]).to_dict("records")
    assert (row["study"], row["status"], row["cell_id"]) == (space.name, "done", cell.id)
    assert kind_of(row) is kind
    assert f"seed={cell.seed}" in kind.run_name(row)
    for content in kind.artifacts(row, rows).values():
        assert content
