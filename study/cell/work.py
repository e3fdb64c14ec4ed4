"""The work that a worker is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from study.cell.any_cell import AnyCell
from study.cell.declared import Declared, Whole, checked

TUNE, CONFIRM = "tune", "confirm"
"""The stages of a study: options are tried, the chosen ones are tried on fresh seeds."""

RECORDED = "recorded"
"""In place of the name of a kind: another training loop trained the cell, and `analysis.record`
recorded it."""

DEFAULT_INTERVAL = 60.0
"""Seconds of training that a kill may cost."""


@dataclass(frozen=True, kw_only=True)
class Work(Declared):
    """Cells to run, and all that a worker needs for that.

    Args:
        study: name of the study, recorded beside each cell.
        kind: of its cells, one of `study.kinds.KINDS`.
        results: results directory, path or URL.
        code_version: recorded beside each cell.
        cells: of that kind; several train as one pack and differ only in seed and learning rates.
            Empty in the work that all trials of a study share.
        confirm: seeds that confirm the chosen options; empty: the study has one stage.
        fork_steps: steps after which other cells fork from this one.
        share: whether to start from fork points of other cells.
        threads: CPU threads of the worker, >= 1.
        gpu: whether to use a GPU if there is one.
        data_dir, cache_dir, weights, category_words: see `study.tasks.sources.places.Places`.
        micro_batch: inputs a forward and backward pass; None: chosen by the device.
        checkpoint_every: seconds between checkpoints.
        origin: of the results directory, see `study.results.Results.origin`, so that a worker
            notices that it sees another one. None: not compared.
        source: `study.cell.version.source_digest` of the command; None: not compared.
        networks: results directory with the networks that cells take apart; None: `results`.
        parts: files of parts, name and text, which a worker imports before it makes the cells
            (`study.parts.PartFile`).
        dry_run: whether to record nothing.

    Raises:
        ValueError: a value is out of range.
    """

    study: str
    kind: str = "training"
    results: str
    code_version: str
    cells: tuple[Any, ...] = ()
    confirm: tuple[int, ...] = ()
    fork_steps: tuple[int, ...] = ()
    share: bool = False
    threads: int = checked(Whole(1), 1)
    gpu: bool = True
    data_dir: str | None = None
    cache_dir: str | None = None
    weights: str | None = None
    category_words: str | None = None
    micro_batch: int | None = checked(Whole(1), None)
    checkpoint_every: float = DEFAULT_INTERVAL
    origin: str | None = None
    source: str | None = None
    networks: str | None = None
    parts: tuple[tuple[str, str], ...] = ()
    dry_run: bool = False

    def stage(self, cell: AnyCell) -> str | None:
        """The stage of one of its cells, as `study.results` records it; None: there is but one."""
        if not self.confirm:
            return None
        return CONFIRM if cell.seed in self.confirm else TUNE

    def planned_seeds(self, cell: AnyCell) -> int | None:
        """How many seeds were to confirm when a confirming cell ran; None of others."""
        return len(self.confirm) if self.stage(cell) == CONFIRM else None

    @classmethod
    def of_plain(cls, values: Mapping[str, Any], cell: type[AnyCell]) -> Work:
        """The work that `to_dict` gave; other keys, such as a trial's name, are ignored.

        Args:
            values: plain values, which Tune passes to a worker.
            cell: type of the cells of its kind, see `study.kind.Kind`.
        """
        known = {each.name: values[each.name] for each in fields(cls) if each.name in values}
        cells = tuple(cell.from_dict(each) for each in known.pop("cells", ()))
        return dataclasses.replace(cls.from_dict(known), cells=cells)
