"""The request that a person makes of `python -m study.run`: its options, each declared once."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from search_spaces.base import SearchSpace
from study import tasks
from study.cell.axis import Rules, as_typed, fresh_seeds, possible_values
from study.cell.declared import Number, Whole
from study.cell.work import DEFAULT_INTERVAL, MOST_EXAMPLES
from study.errors import RequestError, unknown
from study.kernels import COMPILED, OWN, PYTORCH, Kernels, parsed
from study.storage.urls import protocol
from study.tasks.sources.places import FOLDERS, NO_PLACES, Places, absolute
from study.terminal.options import above_zero, mlflow_uri, option, positive, typed

OBJECTIVES = ("accuracy", "saif")

PACKS = ("none", "seed", "seed,lr")
"""What the members of a pack may differ in, see `study.train.steps.packs.AXES`."""


class Shard(NamedTuple):
    """One of several processes that train a study together, each its share of the cells.

    Attributes:
        number: from 1 to `of`.
        of: how many there are, >= 1.
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def typed(cls, text: str) -> Shard:
        number, _, of = text.partition("/")
        if not (re.fullmatch(r"[0-9]+/[0-9]+", text) and 1 <= int(number) <= int(of)):
            raise argparse.ArgumentTypeError(
                f"must be K/N, the K-th of N shards, as 1/16 to 16/16, got {text!r}"
            )
        return cls(int(number), int(of))


def in_order(text: str) -> tuple[str, ...]:
    """The objectives in a fixed order, so that the order typed does not name another search."""
    given = text.split(",")
    for name in given:
        if name not in OBJECTIVES:
            raise argparse.ArgumentTypeError(str(unknown("objective", name, OBJECTIVES)))
    return tuple(name for name in OBJECTIVES if name in given)


def _for_all_processes(url: str) -> str:
    """A directory that the workers of a study write, too."""
    if protocol(url) in ("memory", "http", "https", "zip", "tar", "dir", "reference"):
        raise argparse.ArgumentTypeError(
            "must be a directory, or a store that all processes can write, such as "
            f"s3://BUCKET/results, got {url!r}"
        )
    return url


def _gpus(text: str) -> float:
    try:
        gpus = float(text)
    except ValueError:
        gpus = math.nan
    if not (gpus == 0 or 0.01 <= gpus <= 1):
        raise argparse.ArgumentTypeError(
            f"must be 0 or a share of a GPU (0.01 to 1), since a trial uses one, got {text!r}"
        )
    return gpus


def _kernels(text: str) -> Kernels | None:
    """The kernels of a text; of `auto` None, which times them."""
    return None if text == "auto" else parsed(text)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A study, its axes, and how to run it.

    Attributes:
        space: the study.
        axes: as `study.plan.axes.resolve` gives them.
        places: of the tasks' files; local paths are absolute.
        changes: the assignments of --set, as typed.
        minutes: of a shard, in which its cells have to end.

    Raises:
        RequestError: options contradict each other.
    """

    space: SearchSpace
    axes: Mapping[str, Rules]
    places: Places = NO_PLACES
    preset: str = option("quick (default), paper, or another one of the study", "quick")
    verb: str = option(
        "",
        "train",
        flags={
            "--plan": ("plan", "print what would run, its cost and time; run nothing"),
            "--show": (
                "show",
                "print the options with all values of the preset; @FILE takes them",
            ),
            "--dry-run": ("dry run", "two steps of each kind of cell; record nothing"),
        },
    )
    again: str | None = option(
        "train a recorded cell of the study once more, alone, and compare every number; its id, "
        "or the beginning of it",
        metavar="CELL",
    )
    changes: tuple[str, ...] = option(
        "values of axes; AXIS@hard=V is for one paradigm or task, AXIS@m:20=V for a value of "
        "another axis, AXIS@hard@m:20=V where both hold",
        (),
        flag="--set",
        nargs="+",
        action="extend",
        metavar="AXIS[@WHERE]=V,V",
    )
    results: str = option(
        "results directory (./results)", "results", type=_for_all_processes, metavar="DIR"
    )
    shard: Shard | None = option(
        "train the K-th of N shares of the cells in this process, without Ray and MLflow, beside "
        "the other shards; the same command without it then writes the report",
        type=Shard.typed,
        metavar="K/N",
    )
    minutes: float = option(
        "of a shard: start no cell that would not end within M minutes; the same command "
        "continues",
        math.inf,
        type=above_zero,
        metavar="M",
    )
    select: str = option(
        "validation metric that chooses learning rate and switch point; saif uses the hidden "
        "foreground",
        "accuracy",
        of="choice",
        choices=OBJECTIVES,
    )
    search: str | None = option(
        "suggest learning rates and switch points of each paradigm within the ranges of axes, "
        "instead of the grid",
        of="choice",
        choices=("optuna",),
    )
    num_samples: int | None = option(
        "suggestions of a search for each paradigm",
        of="choice",
        type=positive,
        metavar="K",
    )
    tracking: str | None = option(
        "MLflow tracking URI, or none; default: MLFLOW_TRACKING_URI or a database in the results "
        "directory (in ./databases, if that is a URL)",
        type=mlflow_uri,
        metavar="URI",
    )
    address: str | None = option(
        "of a running Ray cluster: HOST:PORT or auto; default: this machine, or in a Ray job its "
        "cluster",
        metavar="ADDR",
    )
    objective: tuple[str, ...] | None = option(
        "validation metric that a search improves, averaged over seeds: accuracy (default), "
        "saif, or both for a Pareto front",
        of="choice",
        type=in_order,
        metavar="NAME[,NAME]",
    )
    scheduler: str | None = option(
        "stop options that do worse than others of their paradigm early; they are marked as "
        "censored and cannot be chosen",
        of="choice",
        choices=("asha",),
    )
    pack: str = option(
        "none, seed or seed,lr: cells that differ only in these train together in one process; "
        "auto: where a GPU is measured to be faster that way",
        "auto",
        of="training",
        choices=("auto", *PACKS),
        metavar="AXES",
    )
    share: bool = option(
        "train every cell from its start; default: hybrids fork from the soft cell of the same "
        "seed and learning rate, which gives the same numbers, but not the times that "
        "`analysis.report --axis seconds` needs",
        True,
        of="training",
        flag="--no-share",
        action="store_false",
    )
    kernels: Kernels | None = option(
        f"of a step on a GPU: auto (default) takes those of {','.join(OWN)} that are measured to "
        f"be faster than PyTorch's; or some of them, {COMPILED} (torch.compile) or {PYTORCH}",
        of="training",
        type=_kernels,
        metavar="NAMES",
    )
    micro_batch: int | None = option(
        "mosaics, posts or captions in a forward and backward pass; fewer take less memory "
        "(default: by device)",
        of="training",
        type=positive,
        metavar="N",
    )
    checkpoint_every: float = option(
        f"seconds of a cell's training that a kill may cost ({DEFAULT_INTERVAL:g})",
        DEFAULT_INTERVAL,
        type=above_zero,
        metavar="S",
    )
    examples: int | None = option(
        f"test inputs of each cell to record with where it looks, at most {MOST_EXAMPLES} "
        f"(default: {MOST_EXAMPLES}; 0 of a task that warns of its inputs)",
        of="choice",
        type=typed(Whole(0, MOST_EXAMPLES)),
        metavar="N",
    )
    keep_weights: bool = option(
        "keep the trained networks of confirming cells, or of all cells of a study with one "
        "stage, in networks/ of the results directory",
        False,
        of="choice",
        action="store_true",
    )
    gpus_per_trial: float | None = option(
        "share of a GPU for a trial: 1 (default, if there are any), less to run several on one, "
        "or 0 for CPUs alone",
        of="training",
        type=_gpus,
        metavar="G",
    )
    threads: int | None = option(
        "CPU threads per trial; default: the cores divided among the trials, 1 on a cluster, "
        "OMP_NUM_THREADS of a shard",
        type=positive,
        metavar="N",
    )
    max_concurrent: int | None = option("most trials at a time", type=positive, metavar="N")
    max_retries: int = option(
        "how often a trial whose worker was lost is tried again (3)",
        3,
        type=typed(Whole(0)),
        metavar="N",
    )
    price_per_hour: float | None = option(
        "of a GPU, or of a core without GPUs: the plan says what the study costs",
        type=typed(Number(0, ends="[)")),
        metavar="P",
    )

    def __post_init__(self) -> None:
        if self.search and not self.num_samples:
            raise RequestError("--search needs --num-samples K, the number of its suggestions.")
        if self.num_samples and not self.search:
            raise RequestError("--num-samples belongs to a search: add --search optuna.")
        if self.objective and not self.search:
            raise RequestError(
                "--objective belongs to a search: add --search optuna --num-samples K."
            )
        if self.search and self.scheduler and len(self.metrics) > 1:
            raise RequestError(
                "--scheduler asha ranks by one metric: give one --objective, or leave it out."
            )
        if self.pack not in ("auto", "none") and (self.search or self.scheduler):
            other = "--search" if self.search else "--scheduler"
            raise RequestError(
                f"--pack {self.pack} cannot be combined with {other}: leave one out."
            )
        if self.confirm:
            _require_fresh(self.axes)
        if self.shard:
            self._require_shard()
        elif self.minutes < math.inf:
            raise RequestError("--minutes belongs to a shard: add --shard 1/1.")
        if self.scheduler and possible_values(self.axes["alpha"]) != (None,):
            raise RequestError(
                "--scheduler asha compares options at equal compute, which cells with a held "
                "attention are not: leave it out."
            )

    def _require_shard(self) -> None:
        """Refuses options that mean nothing for a process that trains a fixed share by itself."""
        alone = "a shard trains in this process, without Ray"
        at_end = "the same command without --shard does, once all shards have ended"
        for flag, given, reason in (
            ("--search", self.search, "what a search suggests depends on all that ended before"),
            ("--scheduler", self.scheduler, "it compares cells that train at the same time"),
            ("--address", self.address, alone),
            ("--max-concurrent", self.max_concurrent, f"{alone}, one trial at a time"),
            ("--max-retries", self.max_retries != 3, f"{alone}, whose workers could be lost"),
            ("--gpus-per-trial", self.gpus_per_trial, f"{alone}, on one GPU; 0 trains on CPUs"),
            ("--tracking", self.tracking not in (None, "none"), f"no shard logs; {at_end}"),
            ("--dry-run", self.verb == "dry run", "it is of the whole study"),
        ):
            if given:
                raise RequestError(
                    f"{flag} cannot be combined with --shard {self.shard}: {reason}. Leave one "
                    "out."
                )

    @property
    def confirm(self) -> tuple[int, ...]:
        """Seeds that confirm the chosen options; empty: the study has one stage."""
        asked = possible_values(self.axes.get("confirm", ()))
        return () if asked == (None,) else asked

    @property
    def about(self) -> str:
        """The preset's one line."""
        return self.space.presets[self.preset].about

    @property
    def departures(self) -> str:
        """What makes the cells others than the preset's, as options of the command."""
        options = [f"--set {' '.join(self.changes)}"] if self.changes else []
        if self.search:
            options.append(f"--search {self.search} --num-samples {self.num_samples}")
            options.append(f"--objective {','.join(self.metrics)}")
        if self.scheduler:
            options.append(f"--scheduler {self.scheduler}")
        return " ".join(options)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The validation metrics that a search improves."""
        return self.objective or ("accuracy",)

    @property
    def judged_by(self) -> str:
        """The validation metric by which a scheduler stops options."""
        return self.metrics[0] if self.search else self.select


def _require_fresh(axes: Mapping[str, Rules]) -> None:
    """Refuses confirming seeds that are none, or on which options are chosen, too."""
    seeds, confirm = (possible_values(axes[name]) for name in ("seed", "confirm"))
    if None in confirm:
        raise RequestError("--set confirm takes seeds or none, not both, such as confirm=100-111.")
    if both := set(seeds) & set(confirm):
        fresh = as_typed(fresh_seeds({*seeds, *confirm}, len(confirm)))
        raise RequestError(
            f"seed and confirm have {as_typed(both)} in common: a choice must not be judged on "
            f"the seeds that made it. Give fresh ones, e.g. --set confirm={fresh}, or leave the "
            "second stage out with confirm=none."
        )
    without = [name for name, task in tasks.TASKS.items() if not task.chooses]
    if possible_values(axes["alpha"]) != (None,) or {*without} & {*possible_values(axes["task"])}:
        raise RequestError(
            f"where attention is held, and in {', '.join(without)}, no option is chosen, so none "
            "can be confirmed. Use one stage with --set confirm=none seed=0-5."
        )


def add_places(parser: Any, further: Any = None) -> None:
    """Adds the options that say where the files of the tasks lie.

    Args:
        parser: of the command, or a group of its options.
        further: a group for all but `--data-dir`; None: they are in the same.
    """
    add = (further or parser).add_argument
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where the data set is: a directory, or a URL such as s3://bucket/folder that every "
        "machine copies to its cache once; default: downloaded",
    )
    add(
        "--cache-dir",
        metavar="DIR",
        help="for downloads and prepared data; a URL shares the downloads among machines, each "
        "of which keeps the rest in its own cache",
    )
    for name, about in tasks.places().items():
        add(f"--{name.replace('_', '-')}", metavar="FILE", help=about)


def named_places(args: argparse.Namespace) -> dict[str, str | None]:
    """Name -> place, as typed, of the options of `add_places`."""
    return {name: getattr(args, name) for name in (*FOLDERS, *tasks.places())}


def places_of(args: argparse.Namespace) -> Places:
    """The places that the options of `add_places` name, as absolute paths.

    Raises:
        RequestError: a file does not exist, or a URL has a mistake.
    """
    places = {name: absolute(place) for name, place in named_places(args).items()}
    found = Places.of(places)
    for name, file in found.files:
        if not os.path.isfile(file):
            raise RequestError(f"--{name.replace('_', '-')} {file}: there is no such file.")
    return found
