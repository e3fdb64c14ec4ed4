"""What the trainer keeps, whatever it trains: mosaics, posts in two models, captions."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from study import models, paradigms
from study.cell import PARADIGMS, Cell, NetworkSettings, Phase, Schedule
from study.evaluate.classification import evaluate
from study.results import INSTANCES
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.budget.timeline import steps_by_phase, timeline
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.loop import train, train_pack
from study.train.steps.order import BatchOrder
from study.train.steps.pack_member import Member, Outcome
from study.train.steps.step import SGD, Adam, Together
from tests.chapters.captions import coco_files as coco
from tests.chapters.texts import post_files as posts
from tests.conftest import tiny_cell, tiny_flops
from tests.made_up.training import Killed, Killing, make_storage, numbers

MOSAICS, BATCHES, HELD, CAPTIONS = "mosaics", "batch normalisation", "held", "captions"
POSTS = ("embedding", "self-attention")
SINGLE = [Schedule.single(name, 0.1) for name in PARADIGMS]
HYBRID = Schedule.hybrid(0.1, 0.03, 0.5)
OF_THREE = Schedule(
    (Phase("lvml", 0.1, 0.3), Phase("hard-sampled", 0.05, 0.6), Phase("soft", 0.1))
)
SOFT = Schedule(Phase("soft", 0.01, optimiser="adam", encoder_lr=1e-3).dropping(0, 0.5))
RUNNING = Schedule(
    (
        Phase("soft", 0.01, 0.3, "adam", 1e-3),
        *Phase("hard-running", 0.01, 1.0, "adam", 1e-4, 0.7).dropping(0.3, 0.4),
    )
)
SAMPLED = Schedule((Phase("hard-sampled", 0.01, optimiser="adam", encoder_lr=1e-3),))

CASES = [
    *((MOSAICS, schedule) for schedule in (*SINGLE, HYBRID, OF_THREE)),
    *((POSTS[0], Schedule.single(name, 0.1)) for name in ("soft", "hard-sampled", "lvml")),
    *((name, HYBRID) for name in POSTS),
    *((CAPTIONS, schedule) for schedule in (SOFT, RUNNING, SAMPLED)),
    *((HELD, Schedule.single(name, 0.02)) for name in ("soft", "hard-sampled", "lvml")),
    (BATCHES, HYBRID),
]
"""What is trained, and how: every paradigm, and every model with paradigms of each sort."""


class Case(NamedTuple):
    """What is trained, on which task, and how."""

    of: str
    task: Any
    schedule: Schedule

    def cell(self, seed: int = 0, faster: float = 1.0, **changes: Any) -> Cell:
        """A cell of a fraction of a second; its rates may be other ones."""
        phases = (dataclasses.replace(p, lr=p.lr * faster) for p in self.schedule.phases)
        changes |= {"seed": seed, "schedule": Schedule(tuple(phases))}
        if self.of == CAPTIONS:
            return coco.caption_cell(self.task, **changes)
        if self.of in POSTS:
            return posts.text_cell(self.task, architecture=self.of, **changes)
        if self.of == BATCHES:
            changes["network"] = NetworkSettings(normalisation="batch")
        if self.of == HELD:
            changes["alpha"] = 0.6
        return tiny_cell(self.task, **changes)


@pytest.fixture(scope="module")
def data(digits: MosaicTask, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    of_posts = posts.load(posts.write_posts(tmp_path_factory.mktemp("posts")))
    captions = coco.load(coco.write_coco(tmp_path_factory.mktemp("coco") / "data"))
    mosaics = dict.fromkeys((MOSAICS, BATCHES, HELD), digits)
    return mosaics | {CAPTIONS: captions, **dict.fromkeys(POSTS, of_posts)}


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]} {case[1].paradigm}")
def case(request: pytest.FixtureRequest, data: dict[str, Any]) -> Case:
    of, schedule = request.param
    return Case(of, data[of], schedule)


@functools.cache
def alone(cell: Cell, task: Any) -> Outcome:
    """The cell by itself, never interrupted; tests only read it."""
    torch.manual_seed(1)
    return train(cell, task)


def test_every_evaluation_is_recorded_at_its_cost(case):
    cell = case.cell()
    outcome = alone(cell, case.task)
    rows = outcome.evaluations
    splits = ("train", "validation", "test")
    assert outcome.status == "done"
    assert [(row["budget_fraction"], row["split"]) for row in rows] == [
        *itertools.product(cell.evaluation_points, splits)
    ]
    for row in rows:
        assert row["compute_flops"] <= row["budget_fraction"] * cell.budget.amount
        assert row["mosaics_seen"] == row["step"] * cell.batch_size
        assert bool(INSTANCES & row.keys()) == (row is rows[-1])
        if case.of == CAPTIONS:
            assert row["accuracy"] == row["bleu_4"] <= row["bleu_1"]
    assert outcome.steps == rows[-1]["step"] > 3
    if not {"sampled", "running"} & {*re.split("[->]", case.schedule.paradigm)}:
        assert rows[-3]["loss"] < rows[0]["loss"]  # on the train split


def test_packed_equals_separate(case):
    """Bitwise, whatever the global random stream, and beside one that diverges."""
    cells = [case.cell(), case.cell(seed=1, faster=0.3)]
    if case.of != CAPTIONS:  # whose attention is finite at any rate
        cells.insert(1, case.cell(faster=1e21))
    told: list[tuple[str, float]] = []
    torch.manual_seed(2)
    together = train_pack(
        cells,
        case.task,
        on_evaluation=lambda rows: told.extend((c.id, row["loss"]) for c, row in rows.items()),
    )
    for cell, outcome in zip(cells, together, strict=True):
        assert numbers(outcome) == numbers(alone(cell, case.task))
        of_validation = [r["loss"] for r in outcome.evaluations if r["split"] == "validation"]
        assert [loss for cell_id, loss in told if cell_id == cell.id] == of_validation
    assert together[0].evaluations[-1]["loss"] != together[-1].evaluations[-1]["loss"]
    for diverged in together[1:-1]:
        assert diverged.status == "diverged"
        assert "NaN or infinite between steps" in diverged.status_reason
        assert diverged.steps < together[0].steps
        losses = torch.tensor([row["loss"] for row in diverged.evaluations])
        assert losses.isfinite().all()


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
@settings(max_examples=2)
def test_resumed_equals_uninterrupted(case, tmp_path_factory, at):
    """Killed at any steps, any number of times; also where a phase or an evaluation begins."""
    cell = case.cell()
    whole = alone(cell, case.task)
    storage = make_storage(tmp_path_factory.mktemp("results"))
    kills = sorted({1 + place % whole.steps for place in at})
    for step in kills:
        with pytest.raises(Killed):
            train(cell, case.task, checkpoints=Killing(storage, [step]))
    notes: list[str] = []
    outcome = train(cell, case.task, checkpoints=Checkpoints(storage, 1e9, note=notes.append))
    assert numbers(outcome) == numbers(whole)
    (note,) = notes
    assert f"{cell.id} goes on from its checkpoint at step {kills[-1]} of {whole.steps}" in note
    assert min(outcome.train_seconds, outcome.earlier_seconds) > 0


@pytest.mark.parametrize("of", [*POSTS, CAPTIONS])
def test_parts_of_a_batch_add_up(data, of):
    """Of mosaics: tests/study/train/test_step.py."""
    case = Case(of, data[of], SOFT if of == CAPTIONS else Schedule.single("lvml", 0.05))
    plain = dataclasses.replace(coco.SIZES, dropout=0.0)
    cell = case.cell(**({"settings": plain} if of == CAPTIONS else {"epochs": 2}))
    whole, parts = (train(cell, case.task, micro_batch=size).evaluations for size in (16, 5))
    for one, other in zip(whole, parts, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


@pytest.mark.parametrize("micro_batch", [8, 3])
def test_the_running_baseline_follows_the_loss_of_steps(data, micro_batch):
    """Not of the parts in which a step is taken: they depend on the device."""
    schedule = Schedule((Phase("hard-running", 0.01, 1.0, "adam", 1e-3),))
    case = Case(CAPTIONS, data[CAPTIONS], schedule)
    member = Member(case.cell(), case.task, torch.device("cpu"), micro_batch)
    member.enter_phase(0)
    expected = before = 0.0
    for _ in range(2):
        member.step()
        summed = member.state()["summed_loss"].item()
        expected, before = 0.9 * expected + 0.1 * (summed - before), summed
        assert member.state()["baseline"].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("momentum", "lr"), [(0.0, 0.3), (0.8, 0.1)])
def test_optimisers_are_pytorchs_each_for_its_parameters(momentum, lr):
    torch.manual_seed(0)
    ours, theirs = ([torch.zeros(size, requires_grad=True) for size in (3, 2, 4)] for _ in "12")
    targets = [torch.randn(each.shape) for each in ours]
    mine = Together(SGD(ours[:1], lr, momentum), Adam(ours[1:], lr, momentum))
    references = [
        torch.optim.SGD(theirs[:1], lr, momentum),
        torch.optim.Adam(theirs[1:], lr, (momentum, 0.999)),
    ]
    for _ in range(12):
        mine.step([2 * (a.detach() - b) for a, b in zip(ours, targets, strict=True)])
        for each, target in zip(theirs, targets, strict=True):
            each.grad = 2 * (each.detach() - target)
        for reference in references:
            reference.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_a_cell_is_what_its_definition_says_step_by_step(digits):
    """Both phases by PyTorch's optimiser, which starts anew, with the rate of the phase."""
    cell = tiny_cell(digits, Schedule((Phase("soft", 0.1, 0.5), Phase("lvml", 0.03))))
    model = models.build("perceptron", "digits", (1, 8, 8), 3, seed=cell.seed)
    splits, batches = digits.splits(cell), BatchOrder(cell)
    steps = steps_by_phase(cell, timeline(cell, tiny_flops()))
    for phase, count in zip(cell.schedule.phases, steps, strict=True):
        fresh = torch.optim.SGD(model.parameters(), lr=phase.lr, momentum=cell.momentum)
        paradigm = paradigms.get(phase.paradigm)
        for _ in range(count):
            batch = splits["train"].batch(batches.take(1)[0])
            fresh.zero_grad()
            paradigm.loss(model.focus, model.classifier, batch.segments, batch.labels).backward()
            fresh.step()
    expected = evaluate(model, paradigms.get("lvml"), splits["validation"])
    assert expected is not None
    rows = alone(cell, digits).evaluations
    recorded = next(row for row in rows[::-1] if row["split"] == "validation")
    assert recorded["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    assert recorded["accuracy"] == expected["accuracy"]
    assert [row["inference"] for row in rows if row["split"] == "test"] == [
        *["soft"] * 3, *["lvml"] * 2,
    ]  # fmt: skip


def test_paradigms_are_paired(digits):
    """Equal seeds start from equal weights and see equal inputs in equal order."""
    cells = [tiny_cell(digits, each) for each in SINGLE]
    members = [Member(cell, digits, torch.device("cpu"), None) for cell in cells]
    for member in members:
        member.enter_phase(0)
    first, *others = (member.state()["weights"] for member in members)
    assert all(torch.equal(first[key], other[key]) for other in others for key in first)
    rows, *other_rows = (BatchOrder(cell).take(30) for cell in cells)
    assert all(torch.equal(rows, other) for other in other_rows)


@given(n=st.integers(1, 60), batch_size=st.integers(1, 60), takes=st.lists(st.integers(1, 9)))
@settings(max_examples=30)
def test_every_input_is_seen_once_an_epoch(digits, n, batch_size, takes):
    """In another order each time; also where a batch is larger than the data."""
    cell = tiny_cell(digits, n=n, batch_size=batch_size)
    order, count = BatchOrder(cell), 3 * n // batch_size + 1
    stream = torch.cat([order.take(each).flatten() for each in (*takes, count)])
    *epochs, _ = stream.split(n)
    for epoch in epochs:
        assert sorted(epoch.tolist()) == list(range(n))
    at_once, of_other_seed = (
        BatchOrder(dataclasses.replace(cell, seed=seed)).take(sum(takes) + count).flatten()
        for seed in (0, 1)
    )
    assert torch.equal(stream, at_once)
    if n >= 8:
        assert not torch.equal(epochs[0], epochs[1])
        assert not torch.equal(stream, of_other_seed)


def test_inference_changes_predictions_and_no_step(data):
    """The scripts' way: all paradigms are evaluated by soft inference."""
    task, schedule = data[POSTS[0]], Schedule.hybrid(0.001, 0.001, 0.4)  # it hardly looks yet
    own, soft = (posts.text_cell(task, schedule, inference=name) for name in (None, "soft"))
    assert own.comparison_id != soft.comparison_id
    rows = [train(cell, task).evaluations for cell in (own, soft)]
    for one, other in zip(*rows, strict=True):
        assert other["inference"] == "soft"
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-6)
    assert rows[0][-1]["heatmap"] != rows[1][-1]["heatmap"]
