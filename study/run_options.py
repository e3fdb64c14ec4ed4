"""The options of `python -m study.run`."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces import SearchSpace, all_studies
from study.cell.work import DEFAULT_INTERVAL
from study.errors import RequestError, unknown
from study.kinds import KINDS
from study.parts import add_parts, load_parts
from study.plan.axes import resolve
from study.request import Request, Shard
from study.search.space import in_order
from study.terminal.command import Parser
from study.terminal.options import (
    add_places,
    at_least,
    minutes,
    number,
    places_of,
    positive,
    seconds,
)
from study.train.steps import packs


def requested(argv: Sequence[str] | None = None) -> Request:
    """Parses the command line into a request.

    Raises:
        RequestError: an option is unknown or wrong, options contradict each other, or a file of
            parts cannot be imported.
    """
    load_parts(argv)
    options = parser()
    args = options.parse_args(argv)
    asked = vars(args)
    del asked["parts"]
    studies = all_studies()
    name, changes = asked.pop("study"), tuple(asked.pop("set"))
    if name not in studies:
        raise unknown("study", name, studies)
    _refuse_no_use(studies[name], asked, options)
    _refuse_options_as_axes(studies[name], changes, options)
    plan, dry_run = asked.pop("plan"), asked.pop("dry_run")
    places = places_of(args)
    for place in places._fields:
        del asked[place]
    return Request(
        **asked,
        places=places,
        space=studies[name],
        axes=resolve(studies[name], asked["preset"], changes),
        changes=changes,
        then="plan" if plan else "dry run" if dry_run else "train",
    )


def _refuse_no_use(
    space: SearchSpace, asked: Mapping[str, Any], options: argparse.ArgumentParser
) -> None:
    """Refuses options that mean nothing for the cells of a study."""
    no_use = KINDS[space.kind].no_use
    if given := [name for name in no_use if asked[name] != options.get_default(name)]:
        option = "no-share" if given[0] == "share" else given[0].replace("_", "-")
        raise RequestError(f"--{option} is of no use to {space.name}; leave it out.")


def _refuse_options_as_axes(
    space: SearchSpace, changes: Sequence[str], options: argparse.ArgumentParser
) -> None:
    """Refuses --set with an option of the command."""
    known = re.findall(r"--[\w-]+", options.format_usage())
    for change in changes:
        name = re.split("[@=]", change)[0]
        option = f"--{name.replace('_', '-')}"
        if option in known and name not in KINDS[space.kind].axes:
            raise RequestError(f"--set {change}: {name} is no axis but the option {option}.")


def _objective(text: str) -> tuple[str, ...]:
    try:
        return in_order(text.split(","))
    except RequestError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _count(text: str) -> int:
    return at_least(0, text)


def _price(text: str) -> float:
    if not 0 <= number(text) < math.inf:
        raise argparse.ArgumentTypeError(f"must be a price >= 0, got {text!r}")
    return float(text)


def _shard(text: str) -> Shard:
    number, _, of = text.partition("/")
    if not (re.fullmatch(r"[0-9]+/[0-9]+", text) and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(
            f"must be K/N, the K-th of N shards, as 1/16 to 16/16, got {text!r}"
        )
    return Shard(int(number), int(of))


def _share(text: str) -> float:
    gpus = number(text)
    if not (gpus == 0 or 0.01 <= gpus <= 1 or (gpus > 1 and gpus.is_integer())):
        raise argparse.ArgumentTypeError(
            f"must be a fraction of a GPU (0.01 to 1) or a whole number of them, got {text!r}"
        )
    return gpus


def _overview(studies: Mapping[str, SearchSpace]) -> str:
    """Studies with their presets, axes and examples, which follow the options in `--help`."""
    lines = ["studies:"]
    for space in studies.values():
        lines.append(f"  {space.name:<18} {space.about}")
        lines += [
            f"    --preset {name:<8} {preset.about}" for name, preset in space.presets.items()
        ]
    lines.append("\naxes, for --set axis=value,value ... or axis@paradigm=value,value ...:")
    for kind in KINDS.values():
        named = ", ".join(space.name for space in studies.values() if KINDS[space.kind] is kind)
        lines += [f"  of {named}:", *(f"    {n:<21}{axis.about}" for n, axis in kind.axes.items())]
    return "\n".join([*lines, _EXAMPLES])


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    studies = all_studies()
    about = "Runs a study of attention paradigms at equal compute."
    axes = [axis for kind in KINDS.values() for axis in kind.axes]
    built = Parser("study.run", about, _overview(studies), axes)
    add = built.add_argument
    add("study", metavar="STUDY", help=", ".join(studies))
    add("--preset", default="quick", help="quick (default), paper, or another one of the study")
    then = built.add_mutually_exclusive_group().add_argument
    then(
        "--plan", action="store_true", help="print what would run, its cost and time; run nothing"
    )
    then("--dry-run", action="store_true", help="two steps of each kind of cell; record nothing")
    add(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="AXIS[@WHERE]=V,V",
        help="values of axes; AXIS@hard=V is for one paradigm or task, AXIS@m:20=V for a value of "
        "another axis, AXIS@hard@m:20=V where both hold",
    )
    add_parts(built)
    add("--results", default="results", metavar="DIR", help="results directory (./results)")
    add_places(built)
    add(
        "--micro-batch",
        type=positive,
        metavar="N",
        help="mosaics, posts or captions a forward and backward pass; fewer take less memory "
        "(default: by device)",
    )
    add(
        "--checkpoint-every",
        type=seconds,
        default=DEFAULT_INTERVAL,
        metavar="S",
        help=f"seconds of a cell that a kill may cost ({DEFAULT_INTERVAL:g})",
    )
    add(
        "--shard",
        type=_shard,
        metavar="K/N",
        help="train the K-th of N shares of the cells in this process, without Ray and MLflow, "
        "beside the other shards; the same command without it then writes the report",
    )
    add(
        "--minutes",
        type=minutes,
        default=math.inf,
        metavar="M",
        help="of a shard: begin no cell that would not end within so many; the same command goes "
        "on",
    )
    add(
        "--select",
        choices=("accuracy", "saif"),
        default="accuracy",
        help="validation metric that "
        "chooses learning rate and switch point; saif uses the hidden foreground",
    )
    add(
        "--tracking",
        metavar="URI",
        help="MLflow tracking URI, or none; default: "
        "MLFLOW_TRACKING_URI or a database in the results directory (in ./databases, where that "
        "is a URL)",
    )
    add(
        "--pack",
        choices=("auto", *packs.AXES),
        default="auto",
        metavar="AXES",
        help="none, seed or seed,lr: cells that differ in these only train together in one "
        "process; auto: where a GPU is measured to be faster with them",
    )
    add(
        "--search",
        choices=("optuna",),
        help="suggest learning rates, switch points and "
        "paradigms within the ranges of their axes, instead of the grid",
    )
    add("--num-samples", type=positive, metavar="K", help="suggestions of a search, in total")
    add(
        "--objective",
        type=_objective,
        metavar="NAME[,NAME]",
        help="validation metric that a search improves, averaged over seeds: accuracy (default), "
        "saif, or both for a Pareto front",
    )
    add(
        "--scheduler",
        choices=("asha",),
        help="stop options that do worse than others of their paradigm early; they are marked as "
        "censored and cannot be chosen",
    )
    add(
        "--no-share",
        dest="share",
        action="store_false",
        help="train every cell from its start; default: hybrids fork from the soft cell of the "
        "same seed and learning rate, with the same numbers, but no time of their own, which "
        "`analysis.report --axis seconds` needs",
    )
    add(
        "--gpus-per-trial",
        type=_share,
        metavar="G",
        help="GPUs a trial asks for, a fraction to share one; default: 1 where there are any",
    )
    add(
        "--threads",
        type=positive,
        metavar="N",
        help="CPU threads a trial; default: the cores divided among the trials, on a cluster 1",
    )
    add("--max-concurrent", type=positive, metavar="N", help="trials at a time at most")
    add(
        "--max-retries",
        type=_count,
        default=3,
        metavar="N",
        help="how often a trial is tried again whose worker was lost (3)",
    )
    add(
        "--address",
        metavar="ADDR",
        help="of a running Ray cluster, HOST:PORT or auto; default: this machine, in a job of Ray "
        "its cluster",
    )
    add(
        "--price-per-hour",
        type=_price,
        metavar="P",
        help="of a GPU, without GPUs of a core: the plan tells what the study costs",
    )
    return built


_EXAMPLES = """
examples:
  python -m study.run digits
  python -m study.run cifar10 --data-dir ~/data/cifar10 --plan
  python -m study.run images --data-dir DIR --set foreground=heron+stork
  python -m study.run cifar10 --preset paper --set m=5 seed=0-5
  python -m study.run digits --set lr=0.01,0.05 m=5,10 paradigm=soft,hybrid
  python -m study.run digits --set lr=0.01,0.03 lr@hard=0.005 lr@hybrid=0.01 hard_lr=0.005
  python -m study.run cifar10 --preset paper --shard 3/16
  python -m study.run cifar10 --preset paper --shard 1/1 --minutes 30
  python -m study.run digits --with my_parts.py --set paradigm=soft,my-paradigm
  python -m study.run digits --search optuna --num-samples 20 --set lr=0.001,0.3 seed=0-2
"""
