"""The command `python -m study.trial --cells FILE`: trains listed cells here, without Ray."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from study.errors import RequestError
from study.parts import add_parts, load_parts
from study.terminal import counted
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
        from study.in_process import set_up
        from study.kinds import KINDS
        from study.launch.workplace import opened_here
        from study.plan.listed import plan_listed

    args.places = places_of(args)
    trains = KINDS[listed.kind].trains
    if args.device == "cuda" and not trains:
        raise RequestError("--device cuda, but these cells run on CPUs alone. Leave it out.")
    args.threads, device = set_up(args.threads, args.device != "cpu" and trains)
    args.gpu = device.type == "cuda"
    if args.device == "cuda" and not args.gpu:
        raise RequestError("--device cuda, but there is no CUDA device here. Leave it out.")
    with terminating(), opened_here(args.results) as place:
        plan = plan_listed(listed, args.threads, args.gpu, args.places, args.micro_batch)
        place.prepare()
        plan = plan.resumed(place.finished)
        done, left = len(plan.finished), len(plan.to_run)
        cells = counted(len(plan.cells), "cell")
        print(f"{cells} of {plan.study}: {done} done already, {left} to run")
        return _train(args, plan, place, hardware.device_name(device), began) if left else DONE


def _train(
    args: argparse.Namespace, plan: Plan, place: Workplace, device: str, began: float
) -> int:
    """Trains what is left to run, and says what is still left; the exit status."""
    with importing():
        from study.cell.version import code_version
        from study.cell.work import Work
        from study.in_process import packs_of, tell, train_here
        from study.launch.pace import Pace
        from study.plan.estimate import cell_seconds
        from study.plan.listed import packed
        from study.train.steps.packs import Packing

    work = Work(
        study=plan.study,
        kind=plan.kind,
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
    plan = packed(plan, args.pack)
    packing, packs = plan.packing, packs_of(plan)
    alone = cell_seconds(replace(plan, packing=Packing(timed=packing.timed)), plan.to_run)
    largest = max(map(len, packs))
    what = "none, each cell trains alone" if largest == 1 else f"{len(packs)} of up to {largest}"
    print(f"packs: {what} ({packing.reason})", flush=True)
    shares = {c.id: alone[c.id] / packing.measured_of(c).speedup for c in plan.to_run}
    pace = Pace(alone, 60 * args.minutes - (time.monotonic() - began))
    if args.gpu and place.survey.statuses:  # the name of a CPU does not say which one it is
        rows = place.results.cells()
        pace.learn(rows[(rows["device"] == device) & (rows["threads"] == args.threads)])
    failures = train_here(replace(plan, seconds=shares), work, pace)
    tell(failures)
    results = place.results.url
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
