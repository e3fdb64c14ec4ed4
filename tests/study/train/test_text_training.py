"""The trainer on posts: the same promises as on mosaics."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import torch

from study.cell import PARADIGMS, Cell, Schedule
from study.tasks.posts.texts import TextTask
from study.train.budget.timeline import timeline
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.loop import train, train_pack
from study.train.steps.pack_member import Outcome
from tests.made_up.posts import load, text_cell, text_flops, write_posts
from tests.made_up.training import Killed, Killing, make_storage, numbers

ARCHITECTURES = ("embedding", "self-attention")
SCHEDULES = [*(Schedule.single(name, 0.1) for name in PARADIGMS), Schedule.hybrid(0.1, 0.03, 0.5)]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TextTask:
    return load(write_posts(tmp_path_factory.mktemp("posts")))


@functools.cache
def alone(cell: Cell, task: TextTask) -> Outcome:
    """The cell by itself, never interrupted; tests only read it."""
    return train(cell, task)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.paradigm)
def test_training_records_every_evaluation_at_its_cost(
    task: TextTask, architecture: str, schedule: Schedule
) -> None:
    cell = text_cell(task, schedule, architecture)
    outcome = alone(cell, task)
    assert outcome.status == "done"
    stops = timeline(cell, text_flops(task, architecture))
    assert outcome.steps == stops[-1].steps_done > 0
    assert len(outcome.evaluations) == 3 * len(cell.evaluation_points)
    for row in outcome.evaluations:
        assert row["compute_flops"] <= row["budget_fraction"] * cell.budget.amount
        assert (row["saif"] is None) == (row["split"] == "train")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_training_learns(task: TextTask, architecture: str) -> None:
    """One kind of word decides: every paradigm but the sampled one finds it."""
    for name in ("soft", "hard", "lvml", "lvml-logits"):
        cell = text_cell(
            task,
            Schedule.single(name, 0.1),
            architecture,
            epochs=20,
            evaluation_points=(0.0, 1.0),
        )
        test = [row for row in train(cell, task).evaluations if row["split"] == "test"]
        assert test[-1]["accuracy"] > test[0]["accuracy"]
        assert test[-1]["loss"] < 0.7 * test[0]["loss"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", PARADIGMS)
def test_packed_equals_separate(task: TextTask, architecture: str, name: str) -> None:
    cells = [
        text_cell(task, Schedule.single(name, lr), architecture, seed=seed)
        for lr, seed in ((0.1, 0), (0.03, 1))
    ]
    together = train_pack(cells, task)
    assert [numbers(each) for each in together] == [numbers(alone(c, task)) for c in cells]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.paradigm)
def test_resumed_equals_uninterrupted(
    task: TextTask, tmp_path: Path, architecture: str, schedule: Schedule
) -> None:
    cell = text_cell(task, schedule, architecture)
    storage = make_storage(tmp_path)
    with pytest.raises(Killed):
        train(cell, task, checkpoints=Killing(storage, [7]))
    resumed = train(cell, task, checkpoints=Checkpoints(storage, 1e9))
    assert numbers(resumed) == numbers(alone(cell, task))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_parts_of_a_batch_add_up(task: TextTask, architecture: str) -> None:
    cell = text_cell(task, Schedule.single("lvml", 0.05), architecture, epochs=2)
    whole, parts = (train(cell, task, micro_batch=size).evaluations for size in (16, 5))
    for one, other in zip(whole, parts, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


def test_inference_changes_predictions_and_no_step(task: TextTask) -> None:
    """The scripts' way: all paradigms are evaluated by soft inference."""
    schedule = Schedule.hybrid(0.001, 0.001, 0.4)  # far from knowing where to look
    own, soft = (text_cell(task, schedule, inference=name) for name in (None, "soft"))
    assert own.id != soft.id
    assert own.comparison_id != soft.comparison_id
    rows = [train(cell, task).evaluations for cell in (own, soft)]
    assert {row["inference"] for row in rows[1]} == {"soft"}
    assert {row["inference"] for row in rows[0]} == {"soft", "hard"}
    for one, other in zip(*rows, strict=True):  # the same weights: the same loss
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-6)
    of_hard = [i for i, row in enumerate(rows[0]) if row["inference"] == "hard"]
    assert any(rows[0][i]["heatmap"] != rows[1][i]["heatmap"] for i in of_hard)


def test_the_focus_and_the_words_start_equal_in_all_paradigms(task: TextTask) -> None:
    def first(cell: Cell) -> dict:
        return next(row for row in train(cell, task).evaluations if row["split"] == "test")

    rows = [first(text_cell(task, Schedule.single(name, 0.1))) for name in ("soft", "lvml")]
    a_z = [row["foreground_attention_mean"] for row in rows]
    assert a_z[0] == pytest.approx(a_z[1], rel=1e-6)


def test_a_cell_diverges_as_on_mosaics(task: TextTask) -> None:
    outcome = train(text_cell(task, Schedule.single("soft", 1e20)), task)
    assert outcome.status == "diverged"
    assert all(torch.isfinite(torch.tensor(row["loss"])) for row in outcome.evaluations)
