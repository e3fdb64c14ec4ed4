"""How long cells take and how they are packed: by timing, on a GPU in another process."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from study import paradigms
from study.cell import Cell, Schedule
from study.errors import RequestError
from study.evaluate import classification
from study.models.flops import Length, ModelFlops
from study.plan import estimate
from study.plan.plan import Plan
from study.plan.planning import where_it_trains
from study.tasks.mosaics.mosaics import Mosaics, MosaicTask
from study.terminal.working import telling
from study.train.budget.timeline import steps_by_phase, timeline
from study.train.steps import loop, pack_member, packs
from study.train.steps.pack_member import Member
from study.train.steps.packs import Packing, form
from tests.conftest import tiny_cell

CPU = torch.device("cpu")


def plan(
    digits: MosaicTask,
    seeds: int = 4,
    flops: int = 10**4,
    schedules: Sequence[Schedule] = (Schedule.single("soft", 0.1),),
) -> Plan:
    cells = tuple(
        tiny_cell(digits, each, seed=seed) for seed in range(seeds) for each in schedules
    )
    cost = {cell.id: ModelFlops(flops, flops) for cell in cells}
    facts = {(cell.task, cell.options): digits.facts for cell in cells}
    return Plan("digits", "training", "x", cells, frozenset(), (), cost, facts, Packing(), 1, 1)


def test_on_a_cpu_nothing_is_packed_unless_asked_for(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    packing = estimate.choose_packing(plan(digits), "auto")
    assert (packing.choice, packing.reason) == ("none", "on CPUs packed cells only take turns")
    for name in packs.AXES:
        assert estimate.choose_packing(plan(digits), name).choice == name


def test_timing_says_how_far_it_is(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [Schedule.single(name, 0.1) for name in ("soft", "hard")]
    monkeypatch.setattr("study.terminal.working.LINE_EVERY", 0.001)
    given = plan(digits, schedules=both)
    with telling():
        estimate.cell_seconds(given, given.cells)
    assert re.search(r"timing cells: 1 sorts, \d+ s so far\n", capsys.readouterr().err)


@dataclasses.dataclass(frozen=True)
class Gpu:
    """Stands for the timing of a GPU; what follows from it is the real thing.

    Attributes:
        speedup: of a pack of 12, by paradigm; of smaller ones in proportion to its square root.
        fits: paradigm -> most members.
    """

    speedup: Mapping[str, float]
    fits: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def train(self, timings: Any, cells: Sequence[Cell], paradigm: str) -> float:
        if len(cells) > self.fits.get(paradigm, 12):
            raise torch.AcceleratorError("CUDA error: out of memory")
        gained = 1 + (self.speedup[paradigm] - 1) * ((len(cells) - 1) / 11) ** 0.5
        return len(cells) / gained

    def choose(self, plan: Plan, patch: pytest.MonkeyPatch, share: bool = True) -> Packing:
        patch.setattr(torch.cuda, "is_available", lambda: True)
        patch.setattr(estimate.hardware, "set_up", lambda threads, gpu: CPU)
        patch.setattr(estimate._Timings, "_train", lambda *args: self.train(*args))
        patch.setattr(estimate._Timings, "_evaluate", lambda *args: 0.0)
        return estimate.choose_packing(plan, "auto", share)


@pytest.mark.parametrize(
    ("fits", "speedup", "members"), [(12, 2.5, 12), (6, 2.5, 6), (12, 1.05, None), (0, 9.0, None)]
)
def test_on_a_gpu_the_measurement_decides(
    digits: MosaicTask,
    monkeypatch: pytest.MonkeyPatch,
    fits: int,
    speedup: float,
    members: int | None,
) -> None:
    made = plan(digits, seeds=24)
    if fits == 0:
        with pytest.raises(RequestError, match="alone, needs more memory than"):
            Gpu({"soft": speedup}, {"soft": fits}).choose(made, monkeypatch)
        return
    packing = Gpu({"soft": speedup}, {"soft": fits}).choose(made, monkeypatch)
    assert packing.choice == ("seed,lr" if members else "none")
    assert "times as fast" in packing.reason
    if members:
        assert packing.measured_of(made.cells[0]).members == members
        assert {len(pack) for pack in form(made.cells, packing)} == {members}


def test_what_the_choice_of_packs_timed_is_not_timed_again(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan(digits, 12)
    for speedup in (1.0, 3.0):
        packing = Gpu({"soft": speedup}).choose(made, monkeypatch)
        with monkeypatch.context() as patch:
            for name in ("_train", "_evaluate"):
                patch.setattr(estimate._Timings, name, lambda *_: pytest.fail("timed again"))
            seconds = estimate.cell_seconds(dataclasses.replace(made, packing=packing), made.cells)
        assert set(seconds) == {cell.id for cell in made.cells}


def test_packs_have_to_win_more_than_shared_prefixes_save(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four hybrids of a seed, the one that switches last trains the soft steps of all."""
    hybrids = [Schedule.hybrid(0.1, 0.05, point) for point in (0.2, 0.4, 0.6, 0.8)]
    made = plan(digits, 12, schedules=hybrids)
    steps = [steps_by_phase(cell, timeline(cell, made.flops[cell.id])) for cell in made.cells[:4]]
    total, saved = sum(map(sum, steps)), sum(soft for soft, _ in steps[:-1])
    needed = estimate.WORTHWHILE * total / (total - saved)
    assert needed > 1.5
    for speedup, choice in ((needed * 0.98, "none"), (needed * 1.02, "seed,lr")):
        gpu = Gpu({"soft": speedup, "hard": speedup})
        assert gpu.choose(made, monkeypatch).choice == choice
        assert gpu.choose(made, monkeypatch, share=False).choice == "seed,lr"


def test_each_m_and_paradigm_is_timed_and_packed_by_itself(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan(digits, 12, schedules=[Schedule.single(name, 0.1) for name in ("soft", "lvml")])
    gpu = Gpu({"soft": 3.0, "lvml": 0.9}, {"soft": 6})
    packing = gpu.choose(made, monkeypatch)
    assert packing.choice == "seed,lr"
    sizes = {
        name: {len(pack) for pack in form(made.cells, packing) if pack[0].paradigm == name}
        for name in ("soft", "lvml")
    }
    assert sizes == {"soft": {6}, "lvml": {1}}


def test_cells_that_cannot_be_packed_are_not_timed(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(estimate.hardware, "set_up", lambda threads, gpu: CPU)
    for one in (plan(digits, seeds=1), plan(digits, seeds=0)):
        packing = estimate.choose_packing(one, "auto")
        assert packing.choice == "none"
        assert "no two cells to run differ in seed" in packing.reason


def test_the_speedup_of_a_pack_is_timed_by_training_it(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock that counts steps: members of a pack that take turns gain nothing."""
    steps: list[None] = []
    real = pack_member.train_step

    def counted(*arguments: object, **keywords: object) -> torch.Tensor:
        steps.append(None)
        return real(*arguments, **keywords)

    monkeypatch.setattr(pack_member, "train_step", counted)
    for module in (pack_member, loop):
        monkeypatch.setattr(module, "now", lambda device: float(len(steps)))
    timed = plan(digits, flops=10**7)
    timings = estimate._Timings(timed, CPU)
    assert timings.speedup(timed.cells) == 1


@pytest.mark.parametrize(("device", "sizes"), [("cpu", {16}), ("cuda", {40, 50, 60})])
def test_evaluations_are_timed_the_second_time_and_on_a_gpu_at_their_sizes(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch, device: str, sizes: set[int]
) -> None:
    """The first one of a process sets libraries up, and takes long however small it is."""
    cell = tiny_cell(digits, train_metrics_size=40, validation_size=50, test_size=60)
    evaluated: list[int] = []
    clock = 0.0

    def evaluate(model: Any, paradigm: Any, split: Mosaics, *_: Any) -> dict[str, Any]:
        nonlocal clock
        clock += 100.0 if len(evaluated) < 3 else 0.5
        evaluated.append(len(split))
        return {}

    monkeypatch.setattr(classification, "evaluate", evaluate)
    monkeypatch.setattr(pack_member, "now", lambda _: clock)
    monkeypatch.setattr(
        estimate, "Member", lambda cell, task, _, size: Member(cell, task, CPU, size)
    )
    timings = estimate._Timings(plan(digits), torch.device(device))
    assert timings._evaluate(cell, "soft") == pytest.approx(1.5 / sum(evaluated[:3]))
    assert (len(evaluated), set(evaluated)) == (6, sizes)


def test_cells_are_timed_on_a_gpu_in_a_process_of_their_own(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with the timing, and with it all that CUDA keeps."""
    made = plan(digits, 1)
    with where_it_trains(made, None) as call:
        assert call(os.getpid) == os.getpid()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with where_it_trains(dataclasses.replace(made, gpus_per_trial=0), None) as call:
        assert call(os.getpid) == os.getpid()
    with where_it_trains(made, None) as call:
        process = call(os.getpid)
        assert process == call(os.getpid) != os.getpid()
        with pytest.raises(RequestError, match="unknown paradigm 'sooft'"):
            call(paradigms.get, "sooft")
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    died = pytest.raises(RequestError, match="the process that times cells on the GPU died")
    with died, where_it_trains(made, None) as call:
        call(os._exit, 1)


@pytest.mark.parametrize(("flops", "timed"), [(10**6, 16), (10**9, 5), (10**12, 1)])
def test_a_timed_step_of_captions_is_no_longer_than_it_must_be(
    digits: MosaicTask, flops: int, timed: int
) -> None:
    """A batch on an encoder that trains would take minutes on a CPU."""
    cell = tiny_cell(digits, batch_size=16)
    cost = ModelFlops(0, 0, (Length(segments=4, count=1, encoder=6 * flops),))
    plan = SimpleNamespace(
        packing=Packing(),
        facts={(cell.task, cell.options): SimpleNamespace(lengths={4: 1})},
        flops={cell.id: cost},
    )
    assert estimate._Timings(plan, CPU)._batch(cell) == timed
