"""How long a training step takes beside a research script's, or beside other cells of a pack.

    python benchmarks/train_step.py --device cpu --m 5 --paradigm soft
    python benchmarks/train_step.py --device cpu --m 20 --micro-batch 10 21 85 256
    python benchmarks/train_step.py --device cuda --m 5 20 --paradigm soft hard lvml
    python benchmarks/train_step.py --device cuda --architecture embedding --m 64 --members 4 12
    python benchmarks/train_step.py --device cuda --m 5 --kernels pooling,aligned,flat compiled

It needs only torch, NumPy and pyarrow. All ways to take a step take turns, so that conditions are
equal: "x" is the time of the first way of the same precision, relative to theirs, and "x float32"
that of the first way in float32. The first way is

- the baseline, `benchmarks/support/baseline.py` in a process of its own, with the default settings
  of PyTorch and the C library; "memory kept" is the same with `keep_freed_memory`;
- with `--members`, one cell alone: the others are cells of a pack, in turns or as one CUDA graph.

Times are of one step of one cell, on made-up data. "% of ceiling" is the counted FLOP/s as a share
of what a large matrix product reaches in the same precision. "Host us" is what a step takes of the
host until the GPU has got it; on a CPU, all of it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import stepping
from benchmarks.support.baseline import ResearchScript
from benchmarks.support.measure import in_a_process, table, write
from study import hardware
from study.cell import PRECISIONS, Budget, Cell, Schedule
from study.cell.declared import Whole
from study.kernels import Kernels, parsed, text_of
from study.terminal.options import positive, typed
from study.train.budget.cost import training_flops
from study.train.steps.pack_member import Member
from study.train.steps.side_by_side import stepping_on

INPUTS = 1_024
LR, MOMENTUM = 0.001, 0.9

MATRIX_SIZE = {"cpu": 2_048, "cuda": 8_192}
EMULATED_SIZE = 512
"""Of a product in bfloat16 on a CPU without its instructions; a larger one takes seconds."""

COPIED_BYTES = {"cpu": 2**28, "cuda": 2**30}

CLOCK_SECONDS = 1.0
"""Work after which a GPU runs at the clock that it keeps."""

Timer = Callable[[], tuple[float, float]]
"""Takes steps; returns the seconds of a step of one cell, and those of the host."""


def main() -> None:
    """Measures what the command line asks for and prints one table a paradigm and m."""
    args = arguments()
    found: dict[str, Any] = {
        "device": hardware.device_name(args.device),
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
        "date": str(date.today()),
        "options": {name: str(value) for name, value in vars(args).items()},
        "figures": [],
    }
    print("{device}, {threads} CPU threads, torch {torch}, {date}".format_map(found))
    ceilings = {precision: ceiling(precision, args.device) for precision in args.precision}
    for precision, flops in ceilings.items():
        print(f"ceiling: matrix product {flops / 1e12:.3g} TFLOP/s {precision}", flush=True)
    rate = bandwidth(args.device)
    print(f"bandwidth: a copy reads and writes {rate / 1e12:.3g} TB/s", flush=True)
    found["figures"].append({"ceilings": ceilings, "bandwidth": rate})
    for m, paradigm in itertools.product(args.m, args.paradigm):
        cells = [cell_of(paradigm, m, precision, args) for precision in args.precision]
        found["figures"] += compare(cells, ceilings, args)
        if args.json:
            write(args.json, json.dumps(found, indent=1))


def arguments() -> argparse.Namespace:
    """The options; this process is set up like a trial's on the device asked for.

    Ends the program with status 2 if the device is missing.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--m", nargs="+", type=typed(Whole(2)), default=[5])
    add("--paradigm", nargs="+", choices=("soft", "hard", "lvml"), default=["soft"])
    add("--architecture", choices=stepping.TASKS, default="scripts")
    add("--precision", nargs="+", choices=PRECISIONS, help="all here; of packs float32")
    add("--batch-size", type=positive, default=256, help="256")
    add("--micro-batch", nargs="+", type=positive, default=[], help="mosaics a pass, too")
    add("--kernels", nargs="+", type=parsed, default=[], help="of ours, or compiled, too")
    add("--members", nargs="+", type=positive, default=[], help="of packs, measured instead")
    add("--threads", type=positive, default=torch.get_num_threads(), help="of the CPU")
    add("--rounds", type=positive, default=7, help="7")
    add("--steps", type=positive, help="of each in a round (1, on a GPU 20)")
    add("--json", type=Path, metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    on_gpu = args.device == "cuda"
    if on_gpu and not hardware.has_gpu():
        parser.exit(2, f"{parser.prog}: no CUDA device here\n")
    every = ["float32"] if args.members else [p for p in PRECISIONS if p != "tf32" or on_gpu]
    args.precision = args.precision or every
    for needed in ("tf32" in args.precision, any("pooling" in each for each in args.kernels)):
        if needed and not on_gpu:
            parser.error("tf32 and --kernels pooling need --device cuda")
    args.steps = args.steps or (20 if on_gpu else 1)
    args.device = hardware.set_up(args.threads, gpu=on_gpu)
    return args


def cell_of(paradigm: str, m: int, precision: str, args: argparse.Namespace) -> Cell:
    """The cell whose steps are taken."""
    n = max(INPUTS, args.batch_size)
    return Cell(
        task=stepping.TASKS[args.architecture], data_digest="noise", n=n, m=m, seed=0,
        architecture=args.architecture, batch_size=args.batch_size, precision=precision,
        schedule=Schedule.single(paradigm, LR), momentum=MOMENTUM, budget=Budget(n, "mosaics"),
    )  # fmt: skip


def compare(
    cells: list[Cell], ceilings: dict[str, float], args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Times all ways to take a step, of cells that differ in precision, and prints them."""
    with contextlib.ExitStack() as children:
        timers: dict[tuple[str, str], Timer] = {
            (cell.precision, name): timer
            for cell in cells
            for name, timer in ways(cell, args, children)
        }
        rounds = [[timer() for timer in timers.values()] for _ in range(1 + args.rounds)]
    # Of each way (2, rounds): seconds, and those of the host. The first round warms up.
    found = dict(zip(timers, np.array(rounds[1:]).transpose(1, 2, 0), strict=True))
    first = {precision: seconds for (precision, _), (seconds, _) in reversed(found.items())}
    paradigm, m = cells[0].paradigm, cells[0].m
    facts = stepping.facts_of(args.architecture, m)
    of_model = stepping.build_model(args.architecture).flops(facts.input_shape, facts.lengths, m)
    flops = args.batch_size * float(training_flops(paradigm, of_model, m))
    sizes = f"m={m}, batch {args.batch_size}, {args.architecture}"
    print(f"\n{paradigm}, {sizes}: {flops / 1e9:.3g} GFLOP\n")
    figures, rows = [], []
    for (precision, name), (seconds, of_host) in found.items():
        times, rate = first[precision] / seconds, flops / float(np.median(seconds))
        to_float32 = np.median(first.get("float32", np.nan) / seconds)
        rows.append(
            (
                f"{precision}, {name}", f"{1000 * np.median(seconds):.2f}",
                f"{np.median(times):.2f}", f"{times.min():.2f} to {times.max():.2f}",
                f"{to_float32:.2f}", f"{100 * rate / ceilings[precision]:.1f}",
                f"{1e6 * np.median(of_host):.1f}",
            )
        )  # fmt: skip
        figures.append(
            {
                "paradigm": paradigm, "m": m, "precision": precision, "step": name,
                "seconds": [*seconds], "host_seconds": [*of_host], "times_first": [*times],
                "flops_per_second": rate,
            }
        )  # fmt: skip
    head = ("step", "ms", "x", "  least to most", "x float32", "% of ceiling", "host us")
    table(head, rows)
    return figures


def ways(
    cell: Cell, args: argparse.Namespace, children: contextlib.ExitStack
) -> Iterator[tuple[str, Timer]]:
    """Names of ways to take a step, and their timers, the baseline's in processes of its own."""
    keeps = [False, True] if args.device.type == "cpu" and cell.precision == "float32" else [False]
    for keep_memory in [] if args.members else keeps:
        child = in_a_process(baseline, cell, args, keep_memory)
        yield f"baseline{', memory kept' * keep_memory}", children.enter_context(child)
    yield "study", study_steps(cell, args)
    for size in args.micro_batch:
        yield f"passes of {size}", study_steps(cell, args, micro_batch=size)
    for kernels in args.kernels:
        name = f"kernels {text_of(kernels)}"
        try:
            yield name, study_steps(cell, args, kernels=kernels)
        except Exception as error:  # whatever a compiler raises: the others are measured
            print(f"{name} failed: {type(error).__name__}: {error}", flush=True)
    for count in args.members:
        yield f"{count} side by side", study_steps(cell, args, members=count)


def study_steps(
    cell: Cell,
    args: argparse.Namespace,
    members: int = 1,
    micro_batch: int | None = None,
    kernels: Kernels = (),
) -> Timer:
    """Steps as studies take them, of so many cells that differ in seed."""
    task, device = stepping.noise_task(cell, args.device), args.device
    pack = [
        Member(replace(cell, seed=i), task, device, micro_batch, kernels) for i in range(members)
    ]
    for member in pack:
        member.enter_phase(0)
    together = stepping_on(args.device)
    precise = functools.partial(hardware.products, cell.precision, args.device)
    with precise():
        together.prepare(pack)

    def take() -> None:
        with precise():
            for _ in together.steps(pack, args.steps):
                pass

    return functools.partial(timed, take, args.device, args.steps * members)


def baseline(cell: Cell, args: argparse.Namespace, keep_memory: bool) -> Timer:
    """Steps of the research script, for a process of its own."""
    torch.set_num_threads(args.threads)
    if keep_memory:
        hardware.keep_freed_memory()
    whole = stepping.noise_task(cell, torch.device("cpu")).train.batch(torch.arange(cell.n))
    mosaics = TensorDataset(whole.segments.contiguous(), whole.labels)
    loader = DataLoader(mosaics, cell.batch_size, shuffle=True, drop_last=True)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    model = stepping.build_model(cell.architecture)
    script = ResearchScript(
        cell.paradigm, model.focus, model.classifier, LR, MOMENTUM, args.device.type,
        cell.precision,
    )  # fmt: skip

    def take() -> None:
        for x, y in itertools.islice(batches, args.steps):
            script.step(x, y)

    return functools.partial(timed, take, args.device, args.steps)


def timed(take: Callable[[], object], device: torch.device, count: int) -> tuple[float, float]:
    """Seconds of a step, of so many that are taken, and those of the host."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    started = time.perf_counter()
    take()
    host = time.perf_counter() - started
    wait()
    return (time.perf_counter() - started) / count, host / count


def ceiling(precision: str, device: torch.device) -> float:
    """FLOP/s of a large matrix product, at the clock that the device keeps."""
    half = precision == "bfloat16"
    emulated = half and not hardware.has_bfloat16(device)
    size = EMULATED_SIZE if emulated else MATRIX_SIZE[device.type]
    a = torch.randn(size, size, device=device).to(torch.bfloat16 if half else torch.float32)
    found, end = [], time.perf_counter() + CLOCK_SECONDS
    with hardware.products(precision, device):
        while time.perf_counter() < end:
            found.append(timed(lambda: a @ a, device, 1)[0])
    return 2 * size**3 / min(found)


def bandwidth(device: torch.device) -> float:
    """Bytes/s that a large copy reads and writes."""
    source = torch.zeros(COPIED_BYTES[device.type] // 4, device=device)
    target = torch.empty_like(source)
    took = min(timed(lambda: target.copy_(source), device, 1)[0] for _ in range(10))
    return 2 * COPIED_BYTES[device.type] / took


if __name__ == "__main__":
    main()
