"""Runs of MLflow as cells, studies and groups: names, parameters, tags, metrics."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pandas as pd

from study.kinds import kind_of
from study.results import (
    CAPTIONING,
    DYNAMICS,
    FURTHER,
    METRICS,
    NETWORK,
    OF_DATA,
    RECORDED,
    TRAINED,
)

METRIC_STEP_FLOPS = 10**6
"""The step of every metric is the training compute in this unit (MFLOPs)."""


PARENT = ""
"""Stands for the cell id of the parent run."""


PARAMS = (
    "task", "num_classes", "n", "precision", *TRAINED, "paradigm", "schedule", "lr", "last_lr",
    "switch_point", "seed", "stage", *OF_DATA, *CAPTIONING, "budget_amount", "budget_unit",
    *NETWORK,
)  # fmt: skip


TAGS = (
    "cell_id", "comparison_id", "paradigm", "m", "alpha", "seed", "stage", "lr", "switch_point",
    "method", "variant", "paths", "network_width", "status", "status_reason", "data_digest",
    "device", "threads", "pack", "micro_batch", "code_version",
)  # fmt: skip


_SOLVED = ("accuracy_error", "accuracy_diagonal")
"""Numbers of an evaluation that only cells have which solve or sample."""


_OF_A_CELL = ("residual", "r_hat", "effective_sample_size")
"""Their numbers of the whole cell."""


VIEW = "answer"
"""Name of the view of an experiment that shows what a study answers, in addresses."""

_VIEWED = ["params.`paradigm`"] + [
    f"metrics.`{name}`"
    for name in (
        "saif", "saif_low", "saif_high", "accuracy", "accuracy_low", "accuracy_high", "n_seeds",
    )
]  # fmt: skip

VIEW_TAGS = {f"mlflow.sharedViewState.{VIEW}": json.dumps({"selectedColumns": _VIEWED})}
"""Tags of an experiment by which MLflow's page knows the view, as those that it shares itself."""


class Group(Protocol):
    """The summary of one paradigm in one comparison, see `analysis.section.summary`."""

    @property
    def key(self) -> str:
        """The group's name in its study; holds a ``/``, unlike a cell id."""
        ...

    @property
    def comparison_id(self) -> str:
        """Of a comparison, all groups are shown or none."""
        ...

    @property
    def name(self) -> str:
        """The name of the run."""
        ...

    @property
    def note(self) -> str:
        """Markdown for the run's page."""
        ...

    @property
    def digest(self) -> str:
        """A digest of the numbers."""
        ...

    @property
    def params(self) -> Mapping[str, str]:
        """Settings."""
        ...

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metric -> value, without missing ones."""
        ...

    @property
    def curves(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Metric -> (training FLOPs, value)."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """Path of an artifact -> its content, made by this call."""
        ...


class KnownRun(NamedTuple):
    """A run that MLflow holds."""

    run_id: str
    parent_id: str | None
    complete: bool
    state: str | None
    """The cell's status when the run was logged; of a group, its digest."""
    is_group: bool
    metrics: frozenset[str]
    """Names of the parent run's metrics; empty for other runs."""
    origin: str | None
    """The results directory that it was logged from; None: not known."""
    started: float
    """When, in seconds since the epoch."""


def name_of(run: Any) -> str | None:
    """The cell id or group key of a run, or `PARENT`; None for a run of another origin."""
    tags = run.data.tags
    return PARENT if tags.get("role") == "study" else tags.get("cell_id") or tags.get("group")


def known_run(run: Any) -> KnownRun:
    """The facts to keep of a run of MLflow."""
    tags = run.data.tags
    return KnownRun(
        run_id=run.info.run_id,
        parent_id=tags.get("mlflow.parentRunId"),
        complete=run.info.status == "FINISHED",
        state=tags.get("digest" if "group" in tags else "status"),
        is_group="group" in tags,
        metrics=frozenset(run.data.metrics if name_of(run) == PARENT else ()),
        origin=tags.get("results"),
        started=run.info.start_time / 1000,
    )


@dataclass(frozen=True)
class CellRun:
    """The run of a cell.

    Attributes:
        name: of the run.
        tags, params: name -> text.
        metrics: of MLflow's entities.
        files: path of an artifact -> its content.
    """

    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Sequence[Any]
    files: Mapping[str, bytes]


def run_of(cell: Mapping[str, Any], evaluations: pd.DataFrame) -> CellRun:
    """The run of a cell.

    Args:
        cell: a row of `study.results.CELLS_SCHEMA`.
        evaluations: its rows of `study.results.EVALUATIONS_SCHEMA`.
    """
    values = {name: as_text(cell[name]) for name in {*PARAMS, *TAGS} if is_known(cell[name])}
    kind = None if cell["kind"] == RECORDED else kind_of(cell)
    files = {"cell.json": json.dumps(json.loads(cell["cell"]), indent=2).encode()}
    return CellRun(
        name=kind.run_name(cell) if kind else _recorded_name(cell),
        tags={name: values[name] for name in TAGS if name in values},
        params={name: values[name] for name in PARAMS if name in values},
        metrics=list(metrics_of(cell, evaluations)),
        files=files | (kind.artifacts(cell, evaluations) if kind else {}),
    )


def metrics_of(cell: Mapping[str, Any], evaluations: pd.DataFrame) -> Iterator[Any]:
    """One MLflow metric an evaluation, split and measure; its step is the compute.

    Missing values are left out, but a NaN loss is kept. Runs that were recorded without their
    compute have the examples or seconds that they were trained for as steps.
    """
    from mlflow.entities import Metric

    finished = datetime.datetime.fromisoformat(cell["finished_at"]).timestamp()
    if cell["kind"] == RECORDED:
        yield from _metrics_of_recorded(evaluations, int(1000 * finished))
        return
    for row in records(evaluations):
        step = row["compute_flops"] // METRIC_STEP_FLOPS
        seconds = finished - cell["total_train_seconds"] + row["train_seconds"]
        milliseconds = int(1000 * seconds)
        for name in (*METRICS, *FURTHER, *_SOLVED):
            if name == "loss" or _says(name, row[name]):
                yield Metric(f"{row['split']}/{name}", row[name], milliseconds, step)
        if row["split"] == "train":
            for name in ("budget_fraction", "train_seconds"):
                yield Metric(name, row[name], milliseconds, step)
            for name in DYNAMICS:
                if is_known(row[name]):
                    yield Metric(f"train/{name}", row[name], milliseconds, step)
            for name in _OF_A_CELL:
                if is_known(cell[name]):
                    yield Metric(name, cell[name], milliseconds, step)


def _metrics_of_recorded(evaluations: pd.DataFrame, milliseconds: int) -> Iterator[Any]:
    """The same of a run that was recorded at a time."""
    from mlflow.entities import Metric

    for row in records(evaluations):
        spent = (row[name] for name in ("compute_flops", "mosaics_seen", "train_seconds"))
        step = int(next(value for value in spent if is_known(value)))
        step //= METRIC_STEP_FLOPS if is_known(row["compute_flops"]) else 1
        own = json.loads(row["measures"]) if is_known(row["measures"]) else {}
        for name, value in ({name: row[name] for name in METRICS} | own).items():
            if is_known(value):
                yield Metric(f"{row['split']}/{name}", value, milliseconds, step)


def _recorded_name(cell: Mapping[str, Any]) -> str:
    """The name of the run of a cell that was recorded."""
    return " ".join(filter(None, [cell["paradigm"], cell["schedule"], f"seed={cell['seed']}"]))


def _says(name: str, value: Any) -> bool:
    """Whether a metric is worth logging: known, and no `foreground_share` of 1."""
    return is_known(value) and not (name == "foreground_share" and value == 1)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as dictionaries."""
    # `DataFrame.to_dict` takes five times as long for the few rows of a cell.
    columns = {str(name): table[name].tolist() for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def is_equal(held: float, value: float) -> bool:
    """Whether two numbers are equal; NaN equals NaN."""
    return held == value or (math.isnan(held) and math.isnan(value))


def is_known(value: Any) -> bool:
    """Whether a value is neither missing nor an empty text."""
    return not pd.isna(value) and value != ""


def as_text(value: Any) -> str:
    """A value as the text of a tag or parameter."""
    return f"{value:g}" if isinstance(value, float) else str(value)
