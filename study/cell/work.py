"""The work that a worker is given: jobs, and what all jobs of a study have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from study.cell.any_cell import AnyCell

TUNE, CONFIRM = "tune", "confirm"
"""The stages of a study: options are tried, the chosen ones are tried on fresh seeds."""

RECORDED = "recorded"
"""In place of the name of a kind: another training loop trained the cell, and `analysis.record`
recorded it."""

DEFAULT_INTERVAL = 60.0
"""Seconds of training that a kill may cost."""

MOST_EXAMPLES = 12
"""Test inputs that a cell records with where it looks."""


@dataclass(frozen=True)
class Job:
    """What one trial does: packs, one after the other, whose cells train side by side.

    Attributes:
        packs: at least one, each of cells that differ only in seed and learning rates.
        share: whether cells may start, in memory, from states that earlier ones pass through.
        watched: whether its cells are the seeds of one option, whose mean a search or a scheduler
            follows.
    """

    packs: tuple[tuple[Any, ...], ...]
    share: bool = False
    watched: bool = False

    @property
    def cells(self) -> tuple[Any, ...]:
        return tuple(cell for pack in self.packs for cell in pack)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(cell.id for cell in self.cells)

    def to_config(self) -> dict[str, Any]:
        """The job as plain values of a Tune trial's configuration, those that people read first.

        A value that its cells do not share is a text of all values.
        """
        columns = [{**cell.columns, "seed": cell.seed} for cell in self.cells]
        shown = {name: _all_of(columns, name) for name in _SHOWN}
        named = {name: value for name, value in shown.items() if value is not None}
        return {
            **named,
            "group": "/".join(self.cells[0].group),
            "ids": list(self.ids),
            "first": len(self.packs[0]),
            "packs": json.dumps([[cell.to_dict() for cell in pack] for pack in self.packs]),
            "share": self.share,
            "watched": self.watched,
        }

    @classmethod
    def of_config(cls, config: Mapping[str, Any], cell: type[AnyCell]) -> Job:
        """The job that `to_config` gave; `cell` is the type of its cells."""
        packs = json.loads(config["packs"])
        made = (tuple(cell.from_dict(each) for each in pack) for pack in packs)
        return cls(tuple(made), config["share"], config["watched"])


_SHOWN = ("paradigm", "m", "lr", "switch_point", "seed")


def _all_of(columns: Sequence[Mapping[str, Any]], name: str) -> Any:
    values = {each.get(name): None for each in columns}
    return next(iter(values)) if len(values) == 1 else ", ".join(map(str, values))


@dataclass(frozen=True, kw_only=True)
class Work:
    """All that a worker needs to run the jobs of a study.

    Args:
        study: name of the study, recorded beside each cell.
        kind: of its cells, one of `study.kinds.KINDS`.
        results: results directory, path or URL.
        code_version: recorded beside each cell.
        confirm: seeds that confirm the chosen options; empty: the study has one stage.
        threads: CPU threads of the worker, >= 1.
        gpu: whether to use a GPU if there is one.
        places: a `study.tasks.sources.places.Places`, or its values.
        micro_batch: inputs a forward and backward pass; None: chosen by the device.
        kernels: of a step on a GPU, see `study.kernels`.
        checkpoint_every: seconds between checkpoints.
        examples: test inputs of a cell to record with where it looks, at most `MOST_EXAMPLES`;
            None: so many, but none of a task whose readers are warned.
        keep_weights: whether to keep the networks of cells that test an option.
        origin: of the results directory, see `study.results.Results.origin`, so that a worker
            notices that it sees another one. None: not compared.
        source: `study.cell.version.source_digest` of the command; None: not compared.
        networks: results directory with the networks that cells take apart; None: `results`.
        parts: files of parts (`study.parts.PartFile`), which a worker imports before it makes the
            cells.
        dry_run: whether to record nothing.
    """

    study: str
    kind: str = "training"
    results: str
    code_version: str
    confirm: tuple[int, ...] = ()
    threads: int = 1
    gpu: bool = True
    places: Sequence[Any] = ()
    micro_batch: int | None = None
    kernels: tuple[str, ...] = ()
    checkpoint_every: float = DEFAULT_INTERVAL
    examples: int | None = None
    keep_weights: bool = False
    origin: str | None = None
    source: str | None = None
    networks: str | None = None
    parts: Sequence[Any] = ()
    dry_run: bool = False

    def stage(self, cell: AnyCell) -> str | None:
        """The stage of one of its cells, as `study.results` records it; None: there is but one."""
        if not self.confirm:
            return None
        return CONFIRM if cell.seed in self.confirm else TUNE

    def planned_seeds(self, cell: AnyCell) -> int | None:
        """How many seeds were to confirm when a confirming cell ran; None of others."""
        return len(self.confirm) if self.stage(cell) == CONFIRM else None
