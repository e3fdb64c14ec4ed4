"""How long cells take and how they are packed: by timing, on a GPU in another process."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from study import paradigms
from study.cell import Cell, Schedule
from study.errors import RequestError
from study.models.flops import ModelFlops
from study.plan import estimate
from study.plan.plan import Division, Plan, rows_of
from study.plan.planning import where_it_trains
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.sources.places import NO_PLACES
from study.train.budget.cost import TRAINING_PASSES
from study.train.budget.timeline import steps_by_phase, timeline
from study.train.steps import loop, pack_member, packs
from study.train.steps.packs import Measured, Packing, form
from tests.conftest import tiny_cell

CPU = torch.device("cpu")
SOFT, HARD, LVML = (Schedule.single(name, 0.1) for name in ("soft", "hard", "lvml"))


def plan(
    digits: MosaicTask, seeds: int, *schedules: Schedule, flops: int = 10**4, evaluated: int = 50
) -> Plan:
    sizes = dict.fromkeys(("train_metrics_size", "validation_size", "test_size"), evaluated)
    cells = [
        tiny_cell(digits, each, seed=seed, **sizes)
        for seed in range(seeds)
        for each in schedules or (SOFT,)
    ]
    rows = rows_of(cells, [ModelFlops(flops, flops)] * len(cells))
    return Plan("digits", "training", "x", rows, {("digits", cells[0].options): digits.facts})


def on_cpu(plan: Plan) -> Plan:
    return dataclasses.replace(plan, how=Division(gpus_per_trial=0))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """There seems to be one; what computes is the CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(estimate.hardware, "set_up", lambda threads, gpu: CPU)
    return monkeypatch


def test_on_a_cpu_nothing_is_packed_unless_asked_for(digits, monkeypatch):
    made = plan(digits, 4)
    for name in packs.AXES:
        assert estimate.choose_packing(made, NO_PLACES, name).choice == name
    for here in (False, True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda here=here: here)
        cpu = on_cpu(made) if here else made
        packing = estimate.choose_packing(cpu, NO_PLACES, "auto")
        assert (packing.choice, packing.reason) == ("none", "on CPUs packed cells only take turns")


def choose(
    plan: Plan,
    gpu: pytest.MonkeyPatch,
    speedup: Mapping[str, float],
    fits: Mapping[str, int] | None = None,
    share: bool = True,
) -> Packing:
    """Made-up timing; what follows from it is the real thing.

    Args:
        plan: whose cells to pack.
        gpu: the patch.
        speedup: of a pack of 12, by paradigm; of smaller ones less.
        fits: paradigm -> most members.
        share: whether cells share prefixes.
    """

    def rate(_: object, cells: Sequence[Cell]) -> float:
        paradigm = cells[0].schedule.phases[0].paradigm
        if len(cells) > (fits or {}).get(paradigm, 12):
            raise torch.AcceleratorError("CUDA error: out of memory")
        return 1 + (speedup[paradigm] - 1) * ((len(cells) - 1) / 11) ** 0.5

    gpu.setattr(estimate._Timing, "rate", rate)
    return estimate.choose_packing(plan, NO_PLACES, "auto", share)


@pytest.mark.parametrize(
    ("speedup", "fits", "sizes"),
    [
        ({"soft": 2.5, "lvml": 2.5}, {}, {"soft": 12, "lvml": 12}),
        ({"soft": 3.0, "lvml": 0.9}, {"soft": 6}, {"soft": 6, "lvml": 1}),
        ({"soft": 1.05, "lvml": 1.05}, {}, {"soft": 1, "lvml": 1}),
    ],
)
def test_on_a_gpu_the_measurement_decides_for_each_sort_of_cell(
    digits,
    gpu,
    speedup,
    fits,
    sizes,
):
    """Cells that cannot be packed are not timed at all."""
    made = plan(digits, 24, SOFT, LVML)
    packing = choose(made, gpu, speedup, fits)
    assert "times as fast" in packing.reason
    assert packing.choice == ("seed,lr" if max(sizes.values()) > 1 else "none")
    found = {(pack[0].paradigm, len(pack)) for pack in form(made.cells, packing)}
    assert found == {*sizes.items()}
    gpu.setattr(estimate._Timing, "rate", lambda *_: pytest.fail("timed"))
    unlike = estimate.choose_packing(plan(digits, 1, SOFT, HARD), NO_PLACES, "auto")
    assert (unlike.choice, "no two cells" in unlike.reason) == ("none", True)
    with pytest.raises(RequestError, match="alone, needs more memory than"):
        choose(plan(digits, 2), gpu, {"soft": 9.0}, {"soft": 0})


def test_packs_have_to_win_more_than_shared_prefixes_save(digits, gpu):
    """Of four hybrids of a seed, the one that switches last trains the soft steps of all."""
    hybrids = (Schedule.hybrid(0.1, 0.05, point) for point in (0.2, 0.4, 0.6, 0.8))
    made = plan(digits, 12, *hybrids, evaluated=1)
    stops = [timeline(cell, made.flops[cell.id]) for cell in made.cells[:4]]
    total = sum(of_cell[-1].compute_flops for of_cell in stops)
    soft = [max(s.compute_flops for s in of_cell if s.phase == 0) for of_cell in stops]
    saved = sum(soft) - max(soft)
    needed = estimate.WORTHWHILE * total / (total - saved)
    assert needed > 1.5
    for share, by, choice in (
        (True, 0.98 * needed, "none"),
        (True, 1.02 * needed, "seed,lr"),
        (False, 0.98 * needed, "seed,lr"),
        (False, 1.02, "none"),
    ):
        found = choose(made, gpu, {"soft": by, "hard": by}, share=share)
        assert found.choice == choice


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The steps that are taken, each of which lasts a second."""
    taken: list[object] = []
    real = pack_member.train_step

    def counted(*arguments: Any, **keywords: Any) -> Any:
        taken.append(None)
        return real(*arguments, **keywords)

    monkeypatch.setattr(pack_member, "train_step", counted)
    for module in (pack_member, loop):
        monkeypatch.setattr(module, "now", lambda device: float(len(taken)))
    return taken


@pytest.mark.parametrize(
    ("speedup", "broken", "chosen", "reason"),
    [
        (
            {"pooling": 1.5, "aligned": 1.01, "flat": 1.1},
            (),
            ("pooling", "flat"),
            "at least 1.28 times",
        ),
        ({"pooling": 0.9, "aligned": 0.9, "flat": 0.9}, (), (), "1.00 times"),
        ({"aligned": 1.2, "flat": 1.0}, ("pooling",), ("aligned",), "pooling failed: KeyError"),
    ],
)
def test_the_kernels_are_those_that_are_faster(speedup, broken, chosen, reason, digits, gpu):
    """Each beside those before it, in the cell that costs most; what breaks is left out."""
    cells = []

    def rate(timing: estimate._Timing, some: Sequence[Cell]) -> float:
        cells.extend(some)
        # A GPU that takes a while to its clock makes the first kernel look fast once.
        clock = min(1.0, 0.5 + 0.2 * len(cells))
        return clock * math.prod(speedup[name] for name in timing.plan.how.kernels)

    gpu.setattr(estimate._Timing, "rate", rate)
    made = plan(digits, 2, SOFT, LVML)
    kernels, why = estimate.choose_kernels(made, NO_PLACES, None)
    assert kernels == chosen
    assert reason in why
    assert {cell.paradigm for cell in cells} == {"soft"}  # of equal FLOPs the first
    assert estimate.choose_kernels(made, NO_PLACES, ("flat",)) == (("flat",), "as asked")


def test_kernels_are_of_a_gpu(digits, monkeypatch):
    monkeypatch.setattr(estimate._Timing, "rate", lambda *_: pytest.fail("timed"))
    for made in (plan(digits, 1), on_cpu(plan(digits, 1))):
        assert estimate.choose_kernels(made, NO_PLACES, None) == ((), "")
        with pytest.raises(RequestError, match="--kernels are of a GPU, and none is used"):
            estimate.choose_kernels(made, NO_PLACES, ("flat",))
    gpu = plan(digits, 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(estimate, "has_triton", lambda: False)
    with pytest.raises(RequestError, match="--kernels pooling needs Triton"):
        estimate.choose_kernels(gpu, NO_PLACES, ("pooling",))


def test_members_of_a_pack_that_take_turns_gain_nothing(digits, steps):
    timed = plan(digits, 4, flops=10**7)
    timing = estimate._Timing(timed, NO_PLACES, CPU)
    assert timing.rate_of_pack(timed.cells) == pytest.approx(timing.rate(timed.cells[:1]))


def test_a_small_cell_is_timed_on_a_gpu_as_long_as_takes_more_than_its_start(
    digits, steps, monkeypatch
):
    """Of a second each, so that 100 steps are too short."""
    timed = plan(digits, 2, flops=1)
    timing = estimate._Timing(timed, NO_PLACES, CPU)
    rate = timing.rate_of_pack(timed.cells)
    monkeypatch.setitem(estimate.LEAST_SECONDS, "cpu", 1_000.0)
    steps.clear()
    assert timing.rate_of_pack(timed.cells) == pytest.approx(rate)
    assert 2 * 600 < len(steps) < 2 * 800


def test_a_cell_takes_its_flops_at_the_rate_of_its_shape(digits, steps):
    """Its evaluations, too; a fork those after its first phase. A shape is timed once."""
    timed = plan(digits, 3, SOFT, LVML, Schedule.hybrid(0.1, 0.05, 0.5))
    timed = timed.timed(estimate.cell_seconds(timed, NO_PLACES))
    assert len(steps) <= 3 * estimate.MOST_STEPS + 4  # a phase has a step to warm up
    for cell, alone, forked in timed.rows[["cell", "alone", "forked"]].itertuples(index=False):
        taken = steps_by_phase(cell, timeline(cell, timed.flops[cell.id]))
        evaluated = len(cell.evaluation_points) * 3 * 50 / TRAINING_PASSES / cell.batch_size
        if len(taken) == 1:
            assert (alone, forked) == (pytest.approx(taken[0] + evaluated), 0)
        else:
            assert taken[1] / sum(taken) / 2 < forked / alone < 1


def test_a_pack_takes_the_time_of_its_speedup(digits, steps):
    made = plan(digits, 2)
    measured = {packs.shape(made.cells[0]): Measured(2, 4.0)}
    packed = dataclasses.replace(made, how=Division(Packing("seed", measured=measured)))
    alone, together = (estimate.cell_seconds(each, NO_PLACES)["alone"] for each in (made, packed))
    assert together.tolist() == pytest.approx((alone / 4).tolist())


def test_cells_are_timed_on_a_gpu_in_a_process_of_their_own(digits, monkeypatch):
    """With which all ends that CUDA keeps; if it dies, one line says so."""
    made = plan(digits, 1)
    for here in (False, True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda here=here: here)
        with where_it_trains(on_cpu(made), None) as call:
            assert call(os.getpid) == os.getpid()
    died = pytest.raises(RequestError, match="the process that times cells on the GPU died")
    with died, where_it_trains(made, None) as call:
        process = call(os.getpid)
        assert process == call(os.getpid) != os.getpid()
        with pytest.raises(RequestError, match="unknown paradigm 'sooft'"):
            call(paradigms.get, "sooft")
        call(os._exit, 1)


@pytest.mark.parametrize(("flops", "timed"), [(10**3, 16), (10**8, 6), (10**12, 2)])
def test_a_timed_step_is_no_longer_than_it_must_be(digits, flops, timed):
    """A batch of images on an encoder that trains would take minutes on a CPU."""
    made = plan(digits, 1, flops=flops)
    short = estimate._Timing(made, NO_PLACES, CPU)._short(made.cells[0])
    assert short.batch_size == timed
    assert estimate.FEWEST_STEPS <= short.budget.amount / timed <= estimate.MOST_STEPS
