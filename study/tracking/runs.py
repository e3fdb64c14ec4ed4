"""Runs as MLflow is to hold them, and what its page of a study opens with."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from study.storage.hashed import hashed

METRIC_STEP_FLOPS = 10**6
"""The step of every metric is the training compute in this unit (MFLOPs)."""


Files = Callable[[], Mapping[str, bytes]]
"""Gives files, path -> content."""


class Point(NamedTuple):
    """One value of a metric: at a step, and at a time since the epoch."""

    name: str
    value: float
    milliseconds: int = 0
    step: int = 0


@dataclass(frozen=True, eq=False)
class Run:
    """A run of MLflow.

    Attributes:
        key: what it is of: the id of a cell; or, with a ``/``, one paradigm in one comparison, or
            one network, over its seeds: ``<comparison id>/<name>``.
        state: what it was made of: a run with the same key and another state is outdated.
        name: for people.
        tags, params: name -> text.
        points: of its metrics.
        files: gives its artifacts, path -> content.
    """

    key: str
    state: str
    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    points: Sequence[Point]
    files: Files

    def renamed(self, name: str) -> Run:
        """The same run by another name."""
        return dataclasses.replace(self, name=name, state=f"{self.state} {name}")


@dataclass(frozen=True)
class Answer:
    """What a study answers.

    Attributes:
        text: Markdown, for the experiment's description.
        summaries: over seeds; the first is to be at the top.
        counts: metrics of the study's own run.
        files: to attach to it.
    """

    text: str
    summaries: Sequence[Run]
    counts: Mapping[str, float]
    files: Sequence[Path] = ()

    @property
    def digest(self) -> str:
        """Changes with any number, word or byte."""
        files = [hashlib.sha256(file.read_bytes()).hexdigest() for file in self.files]
        said = [self.text, dict(self.counts), [each.state for each in self.summaries], files]
        return hashed(json.dumps(said).encode())


def view_of(summaries: Sequence[Run]) -> dict[str, Any]:
    """What MLflow's page of a study opens with: who is best, and how it got there.

    That are bars of two metrics, which stand in the table, too, and two curves, in the form in
    which the page itself shares a view.
    """
    names = dict.fromkeys(point.name for summary in summaries for point in summary.points)
    curves = [name for name in names if "/" in name][:2]
    single = [name for name in names if "/" not in name]
    best = [name for name in single if name in ("saif", "accuracy")] or single[:2]
    shared: dict[str, Any] = {"deleted": False, "isGenerated": False}
    chart = {**shared, "metricSectionId": "answer", "runsCountToCompare": 10}
    line = {**chart, "type": "LINE", "xAxisKey": "step", "xAxisScaleType": "linear"}
    line |= {"scaleType": "linear", "lineSmoothness": 0, "useGlobalXaxisKey": False, "range": {}}
    section = {**shared, "isReordered": False, "columns": 2, "cardHeight": 300}
    # Into these MLflow puts charts of its own.
    folded = ["Model metrics", *{name.partition("/")[0]: 0 for name in names if "/" in name}]
    return {
        "selectedColumns": [f"metrics.`{name}`" for name in best],
        "compareRunCharts": [
            *({**chart, "type": "BAR", "uuid": name, "metricKey": name} for name in best),
            *({**line, "uuid": name, "selectedMetricKeys": [name]} for name in curves),
        ],
        "compareRunSections": [
            {**section, "uuid": "answer", "name": "The answer", "display": True},
            *({**section, "uuid": name, "name": name, "display": False} for name in folded),
        ],
        "isAccordionReordered": True,
    }
