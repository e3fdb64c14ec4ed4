"""The command `python -m study.trial --cells FILE`: trains listed cells here, without Ray."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from study.errors import RequestError
from study.parts import add_parts, load_parts
from study.terminal.command import (
    DONE,
    FAILED,
    Parser,
    guarded,
    importing,
    run_as_command,
    terminating,
)
from study.terminal.options import add_training_options, minutes, places_of, positive

if TYPE_CHECKING:
    from study.launch.failures import Failure
    from study.launch.workplace import Workplace
    from study.plan.plan import Plan


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done, 1 cells failed, 2 unusable request."""
    stopped = "stopped; the same command goes on where this one ended"
    return guarded("study.trial", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    began = time.monotonic()
    args = _parser().parse_args(argv)
    with importing():
        from study.launch.cell_list import CellList

    load_parts(argv)
    listed = CellList.read(args.cells)
    with importing():
        from study import hardware
        from study.kinds import KINDS
        from study.launch.workplace import opened_here
        from study.plan.divide import usable_cores
        from study.plan.listed import plan_listed

    args.places = places_of(args)
    cores = usable_cores()
    if (args.threads or 0) > cores:
        raise RequestError(f"--threads {args.threads}, but this machine has {cores} cores.")
    args.threads = args.threads or cores
    trains = KINDS[listed.kind].trains
    if args.device == "cuda" and not trains:
        raise RequestError("--device cuda, but these cells run on CPUs alone. Leave it out.")
    device = hardware.set_up(args.threads, args.device != "cpu" and trains)
    args.gpu = device.type == "cuda"
    if args.device == "cuda" and not args.gpu:
        raise RequestError("--device cuda, but there is no CUDA device here. Leave it out.")
    with terminating(), opened_here(args.results) as place:
        plan = plan_listed(listed, args.threads, args.gpu, args.places, args.micro_batch)
        place.prepare()
        plan = plan.resumed(place.finished)
        done, left = len(plan.finished), len(plan.to_run)
        print(f"{len(plan.cells)} cells of {plan.study}: {done} done already, {left} to run")
        name = hardware.device_name(device)
        return _train(args, listed.kind, plan, place, name, began) if left else DONE


def _train(
    args: argparse.Namespace, kind: str, plan: Plan, place: Workplace, device: str, began: float
) -> int:
    """Trains what is left to run, and says what is still left; the exit status."""
    with importing():
        from study import tasks
        from study.cell.version import code_version
        from study.cell.work import Work
        from study.launch.in_turn import train_in_turn
        from study.launch.pace import Pace
        from study.plan.estimate import cell_seconds
        from study.plan.listed import in_packs
        from study.terminal.progress import Progress
        from study.terminal.working import duration
        from study.train.steps.packs import Packing

    work = Work(
        study=plan.study,
        kind=kind,
        results=place.results.url,
        code_version=code_version(),
        confirm=plan.confirm,
        threads=args.threads,
        gpu=args.gpu,
        **args.places._asdict(),
        micro_batch=args.micro_batch,
        checkpoint_every=args.checkpoint_every,
        mark=place.results.mark(),
    )
    packing, packs = in_packs(plan, args.pack)
    alone = cell_seconds(replace(plan, packing=Packing(timed=packing.timed)), plan.to_run)
    largest = max(map(len, packs))
    what = "none, each cell trains alone" if largest == 1 else f"{len(packs)} of up to {largest}"
    print(f"packs: {what} ({packing.reason})", flush=True)
    shares = {c.id: alone[c.id] / packing.measured_of(c).speedup for c in plan.to_run}
    score = tasks.modality(plan.cells[0].task).score
    progress = Progress(plan.to_run, shares, 1, len(plan.finished), score=score)
    pace = Pace(alone, 60 * args.minutes - (time.monotonic() - began))
    if args.gpu and place.survey.statuses:  # the name of a CPU does not say which one it is
        rows = place.results.cells()
        pace.learn(rows[(rows["device"] == device) & (rows["threads"] == args.threads)])
    with progress.shown():
        failures, left = train_in_turn(packs, work, progress, pace)
    if left:
        shortest = duration(min(pace.seconds([cell]) for cell in left))
        why = f"would not have ended in time (the shortest takes about {shortest})"
        if any(failure.ends_process for failure in failures):
            why = "wait for another process, as this one cannot use its GPU any more"
        print(f"{len(left)} cells {why}: the same command goes on")
    return _close(failures, place.results.url)


def _close(failures: Sequence[Failure], results: str) -> int:
    """Says what failed and where the results are; the exit status."""
    for failure in failures:
        ids = ", ".join(failure.cell_ids)
        print(f"cell {ids} failed: {failure.kind}: {failure.reason}", file=sys.stderr)
    bug = next((failure for failure in failures if failure.kind == "bug"), None)
    if bug is not None:
        print(f"\nthe first bug:\n{bug.text}", file=sys.stderr)
    if failures:
        print("the same command tries the failed cells again", file=sys.stderr)
    print(f"results: {results}; `python -m analysis.report {results}` compares them")
    return FAILED if failures else DONE


def _members(text: str) -> int | None:
    return None if text == "auto" else positive(text)


def _parser() -> Parser:
    parser = Parser("study.trial", _ABOUT, _EXAMPLES)
    add = parser.add_argument
    add("--cells", required=True, metavar="FILE", help="of study.run --plan --write-cells FILE")
    add_parts(parser)
    add_training_options(parser)
    add("--device", choices=("cpu", "cuda"), help="default: a GPU if there is one")
    add("--threads", type=positive, metavar="N", help="CPU threads; default: all cores")
    add(
        "--pack",
        type=_members,
        metavar="N",
        help="train up to N cells at a time that differ in seed and learning rates only; auto "
        "(default): as many as are measured to be fastest on a GPU",
    )
    add(
        "--minutes",
        type=minutes,
        default=math.inf,
        metavar="M",
        help="start no cell that would not end so soon; default: train all",
    )
    return parser


_ABOUT = """Trains a list of cells in this process, with neither Ray nor MLflow: it needs torch,
numpy, pandas, pyarrow and fsspec, and what reads the data. The results directory is as study.run
would leave it, and the same command goes on with it. Exit status: 0 done, or no time left; 1 cells
failed; 2 unusable request."""

_EXAMPLES = """
examples:
  python -m study.run cifar10 --preset paper --data-dir DIR --plan --write-cells cells.json
  python -m study.trial --cells cells.json --data-dir DIR --results results
  python -m study.trial --cells cells.json --data-dir DIR --results results --minutes 30 --pack 4
  python -m analysis.report results
"""

if __name__ == "__main__":
    run_as_command(main)
