"""The request that a person makes of `python -m study.run`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from search_spaces.base import By, SearchSpace, Values
from study.cell.axis import as_typed, fresh_seeds, possible_values
from study.errors import RequestError
from study.tasks.sources.places import NO_PLACES, Places

LINEAR = "linear-orthogonal"
"""The task of learning dynamics."""


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


@dataclass(frozen=True, kw_only=True)
class Request:
    """A study, its axes, and how to run it.

    Attributes:
        space: the study.
        preset: name of its preset.
        axes: as `study.plan.axes.resolve` gives them.
        changes: the assignments of --set, as typed.
        results: results directory, local path or fsspec URL, as typed.
        places: of the tasks' files; local paths are absolute.
        then: `train`; `plan`: only print the plan; `dry run`: two steps of each kind of cell.
        shard: trains its share alone, in this process; None: the whole study, with Ray.
        minutes: of a shard, in which its cells have to end.
        select: validation metric that chooses options.
        tracking: MLflow tracking URI, or `none`; None: by the environment.
        pack: `auto`, or one of `study.train.steps.packs.AXES`.
        share: whether cells may share a common first phase.
        micro_batch: inputs a forward and backward pass; None: by device.
        search: suggests the options; None: the grid.
        num_samples: suggestions of a search in total, >= 1; None without a search.
        objective: validation metrics that a search improves; None: accuracy.
        scheduler: stops worse options early; None: all run to their end.
        gpus_per_trial: see `study.launch.job_queue.Resources`.
        threads: CPU threads a trial; None: the machine divided.
        max_concurrent: most trials at a time; None: no limit.
        max_retries: how often a trial whose worker was lost is tried again.
        checkpoint_every: seconds of a cell's training that a kill may cost.
        address: of a running Ray cluster; None: this machine, or in a job of Ray its cluster.
        price_per_hour: of a GPU; of a core if there are no GPUs.

    Raises:
        RequestError: options contradict each other.
    """

    space: SearchSpace
    preset: str
    axes: Mapping[str, Values | By]
    changes: tuple[str, ...] = ()
    results: str = "results"
    places: Places = NO_PLACES
    then: Literal["train", "plan", "dry run"] = "train"
    shard: Shard | None = None
    minutes: float = math.inf
    select: Literal["accuracy", "saif"] = "accuracy"
    tracking: str | None = None
    pack: str = "auto"
    share: bool = True
    micro_batch: int | None = None
    search: Literal["optuna"] | None = None
    num_samples: int | None = None
    objective: tuple[str, ...] | None = None
    scheduler: Literal["asha"] | None = None
    gpus_per_trial: float | None = None
    threads: int | None = None
    max_concurrent: int | None = None
    max_retries: int = 3
    checkpoint_every: float
    address: str | None = None
    price_per_hour: float | None = None

    def __post_init__(self) -> None:
        if self.search and not self.num_samples:
            raise RequestError("--search needs --num-samples K, the number of its suggestions.")
        if self.num_samples and not self.search:
            raise RequestError("--num-samples is of a search: add --search optuna.")
        if self.objective and not self.search:
            raise RequestError("--objective is of a search: add --search optuna --num-samples K.")
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
            raise RequestError("--minutes is of a shard: add --shard 1/1.")
        if self.scheduler and possible_values(self.axes["alpha"]) != (None,):
            raise RequestError(
                "--scheduler asha compares options at equal compute, which cells with a held "
                "attention are not: leave it out, or --set alpha=none."
            )

    def _require_shard(self) -> None:
        """Refuses options that mean nothing for a process that trains a fixed share by itself."""
        alone = "a shard trains in this process, without Ray"
        at_end = "the same command without --shard does, once all shards have ended"
        for option, given, reason in (
            ("--search", self.search, "what a search suggests depends on all that ended before"),
            ("--scheduler", self.scheduler, "it compares cells that train at the same time"),
            ("--address", self.address, alone),
            ("--max-concurrent", self.max_concurrent, f"{alone}, one trial at a time"),
            ("--max-retries", self.max_retries != 3, f"{alone}, whose workers could be lost"),
            ("--gpus-per-trial", self.gpus_per_trial, f"{alone}, on one GPU; 0 trains on CPUs"),
            ("--tracking", self.tracking not in (None, "none"), f"no shard logs; {at_end}"),
            ("--dry-run", self.then == "dry run", "it is of the whole study"),
        ):
            if given:
                raise RequestError(
                    f"{option} cannot be combined with --shard {self.shard}: {reason}. Leave one "
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

    @property
    def trains(self) -> bool:
        """Whether anything is recorded."""
        return self.then == "train"


def _require_fresh(axes: Mapping[str, Values | By]) -> None:
    """Refuses confirming seeds that are none, or on which options are chosen, too."""
    seeds, confirm = (possible_values(axes[name]) for name in ("seed", "confirm"))
    if None in confirm:
        raise RequestError("--set confirm takes seeds or none, not both: confirm=100-111.")
    if not all(0 <= seed < 2**63 for seed in confirm):
        wrong = next(seed for seed in confirm if not 0 <= seed < 2**63)
        raise RequestError(
            f"confirm must be seeds >= 0 and < 2^63, got {wrong}. Change it with --set "
            "confirm=100-111."
        )
    if both := set(seeds) & set(confirm):
        fresh = as_typed(fresh_seeds({*seeds, *confirm}, len(confirm)))
        raise RequestError(
            f"seed and confirm have {as_typed(both)} in common: a choice is not judged on the "
            f"seeds that it was made on. Give fresh ones, e.g. --set confirm={fresh}, or leave "
            "the second stage out with confirm=none."
        )
    if possible_values(axes["alpha"]) != (None,) or LINEAR in possible_values(axes["task"]):
        raise RequestError(
            f"where attention is held, and in {LINEAR}, no option is chosen, so that none can be "
            "confirmed. Take one stage with --set confirm=none seed=0-5."
        )
