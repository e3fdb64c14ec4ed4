"""A cell, a study, a group as MLflow's runs have it: names, parameters, tags, metrics."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pandas as pd

from study.results import DYNAMICS, METRICS, RATIONALES

METRIC_STEP_FLOPS = 10**6
"""The step of every metric is the training compute in this unit (MFLOPs)."""


_PARENT = ""
"""Stands for the cell id of the parent run."""


_PARAMS = (
    "task", "m", "num_classes", "n", "architecture", "batch_size", "precision", "alpha",
    "paradigm", "schedule", "lr", "last_lr", "switch_point", "seed", "split_scheme", "label_rule",
    "rationale_rule", "min_count", "budget_amount", "budget_unit",
)  # fmt: skip


_TAGS = (
    "cell_id", "comparison_id", "paradigm", "m", "alpha", "seed", "lr", "switch_point", "status",
    "status_reason", "data_digest", "device", "threads", "pack", "micro_batch", "code_version",
)  # fmt: skip


class Group(Protocol):
    """What MLflow shows of one paradigm in one comparison, see `analysis.section.summary`."""

    @property
    def key(self) -> str:
        """Names the group in its study; holds a ``/``, unlike the id of a cell."""
        ...

    @property
    def comparison_id(self) -> str:
        """Groups of one comparison are shown all, or none of them."""
        ...

    @property
    def name(self) -> str:
        """Of the run."""
        ...

    @property
    def note(self) -> str:
        """Markdown, shown on the page of the run."""
        ...

    @property
    def digest(self) -> str:
        """Changes with the numbers."""
        ...

    @property
    def params(self) -> Mapping[str, str]:
        """Settings."""
        ...

    @property
    def metrics(self) -> Mapping[str, float]:
        """Numbers that are known."""
        ...

    @property
    def curves(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Metric -> (training FLOPs, value)."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """Path of an artifact -> what it holds; made when it is asked for."""
        ...


class _Run(NamedTuple):
    """What is known of a run that MLflow holds."""

    run_id: str
    parent_id: str | None
    complete: bool
    state: str | None
    """How the cell ended, when the run was logged; of a group, its digest."""
    is_group: bool
    metrics: frozenset[str]
    """Of the parent run, none of others."""


def _name(run: Any) -> str | None:
    """The cell id or the key of a run, `_PARENT`, or None for somebody else's run."""
    tags = run.data.tags
    return _PARENT if tags.get("role") == "study" else tags.get("cell_id") or tags.get("group")


def _known_run(run: Any) -> _Run:
    tags = run.data.tags
    return _Run(
        run_id=run.info.run_id,
        parent_id=tags.get("mlflow.parentRunId"),
        complete=run.info.status == "FINISHED",
        state=tags.get("digest" if "group" in tags else "status"),
        is_group="group" in tags,
        metrics=frozenset(run.data.metrics if _name(run) == _PARENT else ()),
    )


def _metrics(cell: Mapping[str, Any], evaluations: pd.DataFrame) -> Iterator[Any]:
    """One MLflow metric an evaluation, split and measure, stepped by compute.

    What is missing is no metric; a loss that is not a number is one.
    """
    from mlflow.entities import Metric

    finished = datetime.datetime.fromisoformat(cell["finished_at"]).timestamp()
    for row in _records(evaluations):
        step = row["compute_flops"] // METRIC_STEP_FLOPS
        seconds = finished - cell["total_train_seconds"] + row["train_seconds"]
        milliseconds = int(1000 * seconds)
        for name in (*METRICS, *RATIONALES):
            if name == "loss" or _says(name, row[name]):
                yield Metric(f"{row['split']}/{name}", row[name], milliseconds, step)
        if row["split"] == "train":
            for name in ("budget_fraction", "train_seconds"):
                yield Metric(name, row[name], milliseconds, step)
            for name in DYNAMICS:
                if _known(row[name]):
                    yield Metric(f"train/{name}", row[name], milliseconds, step)


def _says(name: str, value: Any) -> bool:
    """Whether a metric is known and, as the share of known foregrounds, not of course."""
    return _known(value) and not (name == "foreground_share" and value == 1)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _equal(held: float, value: float) -> bool:
    return held == value or (math.isnan(held) and math.isnan(value))


def _known(value: Any) -> bool:
    return not pd.isna(value) and value != ""


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
