"""Steps of one CUDA graph are the steps in turns; without a GPU, on a stand-in for graphs."""

from __future__ import annotations

import contextlib
import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch

from chapters.captions.data.captions import CaptionTask
from chapters.captions.data.encoded_images import ImageFiles
from chapters.texts.texts import Texts, TextTask
from study.cell import PARADIGMS, Cell, Phase, Schedule
from study.evaluate import classification
from study.launch.failures import failure_of
from study.train.steps import loop, pack_member, side_by_side
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.pack_member import Member
from study.train.steps.step import train_step
from tests.chapters.captions import coco_files as coco_data
from tests.chapters.texts.post_files import load, text_cell, write_posts
from tests.conftest import needs_cuda, tiny_cell
from tests.made_up import cuda_graphs
from tests.made_up.gpu import padding_computed, waiting_refused
from tests.made_up.training import Killed, Killing, make_storage, numbers

CPU = torch.device("cpu")
POSTS = ("embedding", "self-attention")


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs step as on a GPU."""
    cuda_graphs.stand_in(monkeypatch)
    monkeypatch.setattr(loop, "stepping_on", side_by_side.Captured)


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> TextTask:
    return load(write_posts(tmp_path_factory.mktemp("posts")))


class InMemory(ImageFiles):
    """Not mapped to be read, since the stand-in writes to what a step reads."""

    def pixels(self, m: int) -> torch.Tensor:
        return super().pixels(m).clone()


@pytest.fixture(scope="module")
def coco(tmp_path_factory: pytest.TempPathFactory) -> CaptionTask:
    task = coco_data.load(coco_data.write_coco(tmp_path_factory.mktemp("coco") / "data"))
    task.images = InMemory(**vars(task.images))
    return task


def cell_of(task: Any, name: str, lr: float, seed: int, of: str = "embedding") -> Cell:
    """A cell of a task's kind; one of captions trains its encoder, too."""
    if isinstance(task, CaptionTask):
        return coco_data.caption_cell(
            task,
            Schedule((Phase(name, lr, encoder_lr=lr),)),
            seed=seed,
            settings=replace(coco_data.SIZES, dropout=0.0),  # whose draws depend on the width
        )
    if isinstance(task, TextTask):
        return text_cell(task, schedule(name, lr), of, seed=seed, batch_size=4, epochs=2)
    return tiny_cell(task, schedule(name, lr), seed=seed)


def schedule(name: str, lr: float = 0.1) -> Schedule:
    return Schedule.hybrid(lr, lr / 2, 0.5) if name == "hybrid" else Schedule.single(name, lr)


@pytest.mark.parametrize(
    ("of", "name"),
    [
        *(("digits", name) for name in (*PARADIGMS, "hybrid")),
        *(("embedding", name) for name in ("hard", "hybrid")),
        *(("self-attention", name) for name in ("soft", "lvml")),
        ("coco", "lvml"),
    ],
)
def test_a_replayed_pack_equals_its_cells_in_turns(
    of,
    name,
    request,
    monkeypatch,
    captured,
):
    """Weights, momentum, loss, random streams and rows all go on from replay to replay.

    Bitwise; up to rounding where batches are padded to one of a few widths, each with its graph.
    """
    task = request.getfixturevalue("posts" if of in POSTS else of)
    monkeypatch.setattr(side_by_side, "FED_STEPS", 3)
    monkeypatch.setattr(Texts, "width_step", 2)
    made: list[side_by_side.Captured] = []
    captured = side_by_side.Captured
    monkeypatch.setattr(loop, "stepping_on", lambda on: made.append(captured(on)) or made[-1])
    rates = (0.1, 0.03) if of == "digits" else (0.01, 0.01)
    cells = [cell_of(task, name, lr, seed, of) for seed, lr in enumerate(rates)]
    with contextlib.nullcontext() if of == "digits" else padding_computed():
        replayed = loop.train_pack(cells, task)
    assert (len(made[0]._graphs) > 1) == (of in POSTS)
    monkeypatch.undo()
    for one, other in zip(replayed, loop.train_pack(cells, task), strict=True):
        assert one.steps == other.steps > 3
        if of == "digits":
            assert numbers(one) == numbers(other)
        losses = [[row["loss"] for row in each.evaluations] for each in (one, other)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_after_a_checkpoint_the_graph_is_recorded_anew_for_those_behind(
    digits, tmp_path, captured
):
    """One member comes from a checkpoint, steps ahead of the other; both equal cells alone."""
    storage = make_storage(tmp_path)
    cells = [tiny_cell(digits, schedule("hybrid"), seed=seed) for seed in (0, 1)]
    with pytest.raises(Killed):
        loop.train(cells[0], digits, checkpoints=Killing(storage, [5]))
    together = loop.train_pack(cells, digits, checkpoints=Checkpoints(storage))
    for cell, outcome in zip(cells, together, strict=True):
        assert numbers(outcome) == numbers(loop.train(cell, digits))


@pytest.mark.parametrize("fails", [False, True])
def test_members_branch_off_together_and_join_also_when_memory_runs_out(
    fails, digits, monkeypatch, captured
):
    """A step is one launch then, and one copy serves many."""
    copies: list[int] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda rows: copies.append(len(rows)) or rows)
    monkeypatch.setattr(side_by_side, "FED_STEPS", 4)
    stepping, pack = side_by_side.Captured(CPU), members(digits, 3)
    if fails:
        failing_member(monkeypatch, pack[1])
    with pytest.raises(torch.OutOfMemoryError) if fails else contextlib.nullcontext():
        stepping.prepare(pack)
    forks, joins = cuda_graphs.Stream.waits[:3], cuda_graphs.Stream.waits[3:]
    (main,) = {of for _, of in forks}
    branches = [waiting for waiting, _ in forks]
    assert len({main, *branches}) == 4
    assert joins == [(main, branch) for branch in branches]
    assert bool(stepping._graphs) != fails
    for graph in stepping._graphs.values():
        assert [graph.replays, *(member.steps for member in pack)] == [0] * 4
        assert len(list(stepping.steps(pack, 10))) == 10
        assert [graph.replays, *(member.steps for member in pack)] == [10] * 4
        assert copies == [4, 4, 2]


def test_a_graph_keeps_what_it_replays_on(digits, monkeypatch, captured):
    """It holds addresses alone: freed weights would be somebody else's memory.

    Nor are kernels tried in a recording: only in the steps before it.
    """
    tuned: list[bool] = []

    def noting(*args: Any, **named: Any) -> torch.Tensor:
        tuned.append(torch.backends.cudnn.benchmark)
        return train_step(*args, **named)

    monkeypatch.setattr(pack_member, "train_step", noting)
    pack = members(digits, 1)
    held = [weakref.ref(parameter) for parameter in pack[0]._model.parameters()]
    holder = side_by_side.Captured(CPU)
    holder.prepare(pack)
    holder._graphs.clear()  # unlike a real graph, the recording holds tensors
    del pack
    assert tuned == [True] * (len(tuned) - 1) + [False] != [False]
    gc.collect()
    assert all(each() is not None for each in held)
    del holder
    gc.collect()
    assert not any(each() is not None for each in held)


def test_evaluations_are_not_autotuned(digits, monkeypatch, captured):
    """They differ in the size of their passes."""
    tuned: list[bool] = []
    real = classification.evaluate
    monkeypatch.setattr(
        classification,
        "evaluate",
        lambda *a, **named: tuned.append(torch.backends.cudnn.benchmark) or real(*a, **named),
    )
    loop.train(tiny_cell(digits), digits)
    assert set(tuned) == {False}


def test_recordings_are_no_training_time(posts, monkeypatch, captured):
    """Those of further widths, too, which are met while steps are timed."""
    monkeypatch.setattr(Texts, "width_step", 2)
    clock = 0.0
    warm_up = Member.warm_up

    def slow(member: Member, width: int | None = None) -> None:
        nonlocal clock
        clock += 100
        warm_up(member, width)

    monkeypatch.setattr(Member, "warm_up", slow)
    for module in (loop, side_by_side, pack_member):
        monkeypatch.setattr(module, "now", lambda _: clock)
    with padding_computed():
        outcome = loop.train(text_cell(posts, schedule("hybrid", 0.01), batch_size=4), posts)
    assert clock > 4 * 100
    assert outcome.train_seconds == 0


def failing_member(monkeypatch: pytest.MonkeyPatch, failing: Member) -> None:
    """Lets memory run out when a step of it is recorded."""
    take = Member.take

    def take_or_fail(member: Member, *more: Any) -> None:
        if member is failing:
            raise torch.OutOfMemoryError("CUDA out of memory")
        take(member, *more)

    monkeypatch.setattr(Member, "take", take_or_fail)


@needs_cuda
@pytest.mark.parametrize("of", ["digits", "posts", "coco"])
def test_steps_on_a_gpu_wait_for_nothing(of, request):
    pack = members(request.getfixturevalue(of), 2, "cuda")
    stepping = side_by_side.Captured(torch.device("cuda"))
    stepping.prepare(pack)
    list(stepping.steps(pack, 200))  # records the graphs of all widths
    with waiting_refused():
        list(stepping.steps(pack, 200))
        with pytest.raises(RuntimeError, match="synchronizing CUDA operation"):
            torch.ones((), device="cuda").item()


@needs_cuda
@pytest.mark.parametrize("of", ["digits", "posts", "coco"])
@pytest.mark.parametrize("name", PARADIGMS)
def test_replayed_equals_eager_on_a_gpu(of, name, request):
    """Replayed kernels are the eager ones: bitwise, but for kernels that add in any order."""
    task = request.getfixturevalue(of)
    (eager,), (replayed,) = (members(task, 1, "cuda", name) for _ in range(2))
    for _ in range(20):
        rows = eager.next_rows(1)
        eager.take(rows[0].cuda(), *eager.widths(rows))
    stepping = side_by_side.Captured(torch.device("cuda"))
    stepping.prepare([replayed])
    list(stepping.steps([replayed], 20))
    losses = [member.state()["summed_loss"].item() for member in (eager, replayed)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@needs_cuda
def test_after_memory_ran_out_in_a_recording_the_process_trains_on(digits, monkeypatch):
    pack = members(digits, 3, "cuda")
    stepping = side_by_side.Captured(torch.device("cuda"))
    with monkeypatch.context() as patch:
        failing_member(patch, pack[2])
        with pytest.raises(torch.OutOfMemoryError) as error:
            stepping.prepare(pack)
    assert failure_of(error.value).kind == "out of memory"
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    del stepping, pack, error
    gc.collect()
    before = torch.cuda.memory_reserved()
    block = torch.empty(2**28, dtype=torch.uint8, device="cuda")
    del block
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before
    cells = [tiny_cell(digits, seed=seed) for seed in (0, 1)]
    assert {each.status for each in loop.train_pack(cells, digits, "cuda")} == {"done"}


def members(task: Any, count: int, device: str = "cpu", name: str = "soft") -> list[Member]:
    """Cells of several seeds in their first phase."""
    cells = [cell_of(task, name, 0.01, seed) for seed in range(count)]
    made = [Member(cell, task, torch.device(device), None) for cell in cells]
    for member in made:
        member.enter_phase(0)
    return made
