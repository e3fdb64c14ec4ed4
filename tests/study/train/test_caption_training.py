"""The trainer on captions: the same promises as on mosaics, with Adam and rates by phase."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from study.cell import Cell, Phase, Schedule
from study.tasks.captions.captions import CaptionTask
from study.train.budget.timeline import timeline
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.loop import train, train_pack
from study.train.steps.pack_member import Member, Outcome
from study.train.steps.step import SGD, Adam, Together
from tests.made_up.coco import SIZES, caption_cell, caption_flops, load, write_coco
from tests.made_up.training import Killed, Killing, make_storage, numbers

SOFT = Schedule(Phase("soft", 0.01, optimiser="adam", encoder_lr=1e-3).dropping(0, 0.5))
RUNNING = Schedule(
    (
        Phase("soft", 0.01, 0.3, "adam", 1e-3),
        *Phase("hard-running", 0.01, 1.0, "adam", 1e-4, 0.7).dropping(0.3, 0.4),
    )
)
SAMPLED = Schedule((Phase("hard-sampled", 0.01, optimiser="adam", encoder_lr=1e-3),))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> CaptionTask:
    return load(write_coco(tmp_path_factory.mktemp("coco") / "data"))


@functools.cache
def alone(cell: Cell, task: CaptionTask) -> Outcome:
    """The cell by itself, never interrupted; tests only read it."""
    return train(cell, task)


@pytest.mark.parametrize("schedule", [SOFT, SAMPLED, RUNNING], ids=lambda s: s.paradigm)
def test_training_records_every_evaluation_at_its_cost(
    task: CaptionTask, schedule: Schedule
) -> None:
    cell = caption_cell(task, schedule)
    outcome = alone(cell, task)
    assert outcome.status == "done"
    assert outcome.steps == timeline(cell, caption_flops(cell, task))[-1].steps_done > 3
    assert len(outcome.evaluations) == 3 * len(cell.evaluation_points)
    for row in outcome.evaluations:
        assert row["compute_flops"] <= row["budget_fraction"] * cell.budget.amount
        assert row["accuracy"] == row["bleu_4"] <= row["bleu_1"]
        shown = row["split"] == "test" and row["budget_fraction"] == 1
        assert ("examples" in row) == ("instance_saif" in row) == shown
    losses = [row["loss"] for row in outcome.evaluations if row["split"] == "validation"]
    assert losses[-1] < losses[0]


def test_packed_equals_separate(task: CaptionTask) -> None:
    cells = [
        caption_cell(
            task, Schedule(tuple(replace(p, lr=p.lr * f) for p in RUNNING.phases)), seed=s
        )
        for f, s in ((1, 0), (0.3, 1))
    ]
    together = train_pack(cells, task)
    assert [numbers(each) for each in together] == [numbers(alone(c, task)) for c in cells]


@pytest.mark.parametrize("at", [2, 7])
def test_resumed_equals_uninterrupted(task: CaptionTask, tmp_path: Path, at: int) -> None:
    """In the middle of a phase of each paradigm: moments of Adam and running baseline included."""
    cell = caption_cell(task, RUNNING)
    storage = make_storage(tmp_path)
    with pytest.raises(Killed):
        train(cell, task, checkpoints=Killing(storage, [at]))
    resumed = train(cell, task, checkpoints=Checkpoints(storage, 1e9))
    assert numbers(resumed) == numbers(alone(cell, task))


def test_parts_of_a_batch_add_up(task: CaptionTask) -> None:
    cell = caption_cell(task, SOFT, decoder=replace(SIZES, dropout=0.0))
    whole, parts = (train(cell, task, micro_batch=size).evaluations for size in (8, 3))
    for one, other in zip(whole, parts, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


@pytest.mark.parametrize("micro_batch", [8, 3])
def test_the_running_baseline_follows_the_loss_of_steps(
    task: CaptionTask, micro_batch: int
) -> None:
    """Not of the parts in which a step is taken: they depend on the device."""
    cell = caption_cell(task, Schedule((Phase("hard-running", 0.01, 1.0, "adam", 1e-3),)))
    member = Member(cell, task, torch.device("cpu"), micro_batch)
    member.enter_phase(0)
    expected = before = 0.0
    for _ in range(2):
        member.step()
        summed = member.state()["summed_loss"].item()
        expected, before = 0.9 * expected + 0.1 * (summed - before), summed
        assert member.state()["baseline"].item() == pytest.approx(expected, rel=1e-5)


def test_adam_is_pytorchs() -> None:
    torch.manual_seed(0)
    target = torch.randn(5)
    ours, theirs = (torch.zeros(5, requires_grad=True) for _ in range(2))
    mine, reference = Adam([ours], 0.1, 0.8), torch.optim.Adam([theirs], 0.1, (0.8, 0.999))
    for _ in range(12):
        mine.step(torch.autograd.grad(((ours - target) ** 2).sum(), [ours]))
        reference.zero_grad()
        ((theirs - target) ** 2).sum().backward()
        reference.step()
        assert torch.equal(ours, theirs)


def test_optimisers_together_are_each_alone() -> None:
    torch.manual_seed(0)
    gradients = [torch.randn(3), torch.randn(2), torch.randn(4)]
    parts = [torch.zeros(3), torch.zeros(2), torch.zeros(4)]
    alone = [each.clone() for each in parts]
    joined = Together(SGD(parts[:1], 0.5, 0.9), Adam(parts[1:], 0.1, 0.9))
    single = [SGD(alone[:1], 0.5, 0.9), Adam(alone[1:], 0.1, 0.9)]
    for _ in range(3):
        joined.step(gradients)
        single[0].step(gradients[:1])
        single[1].step(gradients[1:])
    assert all(torch.equal(a, b) for a, b in zip(parts, alone, strict=True))
    assert len(joined.state) == 1 + 3 * 2
