"""What tests of MLflow share: groups with chosen numbers, what a store must hold, lost calls."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from study.cell import Cell
from study.results import Results
from study.tracking.runs import METRIC_STEP_FLOPS
from study.tracking.tracker import MLflowTracker, open_tracker

SUMMARY = {"digits/m4/soft/saif": 0.5}


@dataclasses.dataclass(frozen=True)
class Summary:
    """A group as `analysis.section.summary` gives it, with chosen numbers."""

    paradigm: str = "soft"
    saif: float = 0.5
    comparison_id: str = "0123"
    name: str = "digits m=10"
    note: str = "| a table |"
    broken: bool = False

    @property
    def key(self) -> str:
        return f"{self.comparison_id}/{self.paradigm}"

    @property
    def digest(self) -> str:
        return str(self.saif)

    @property
    def params(self) -> dict[str, str]:
        return {"paradigm": self.paradigm}

    @property
    def metrics(self) -> dict[str, float]:
        return {"saif": self.saif, "n_seeds": 6.0}

    @property
    def curves(self) -> dict[str, list[tuple[float, float]]]:
        return {"test/saif": [(0.0, 0.1), (2.5 * METRIC_STEP_FLOPS, self.saif)]}

    def files(self) -> dict[str, bytes]:
        if self.broken:
            raise ValueError("it cannot be drawn")
        return {"figures/a.png": b"png", "tables/b.csv": f"saif\n{self.saif}\n".encode()}


GROUPS = (Summary("hard", 0.25), Summary("soft", 0.5), Summary("lvml", 0.75))


def ids(cells: list[Cell]) -> list[str]:
    return sorted(cell.id for cell in cells)


def start(results: Results, uri: str | None = None) -> MLflowTracker:
    tracker = open_tracker(results, "digits", uri)
    assert isinstance(tracker, MLflowTracker)
    return tracker


def track(
    results: Results,
    cells: list[Cell],
    files: tuple[Path, ...] = (),
    groups: Sequence[Summary] = (),
) -> str:
    tracker = start(results)
    tracker.log_cells([cell.id for cell in cells])
    tracker.finish(SUMMARY, files, groups)
    return tracker.ui_command.split()[-1]


def client_of(results: Results) -> MlflowClient:
    return MlflowClient(tracking_uri=f"sqlite:///{results.url}/mlflow.db")


def runs(results: Results) -> tuple[MlflowClient, list[Run], Run]:
    """A client, the runs of cells and the only parent run."""
    client = client_of(results)
    return client, *runs_of(client)


def runs_of(client: MlflowClient, study: str = "digits") -> tuple[list[Run], Run]:
    experiment = client.get_experiment_by_name(study)
    found = client.search_runs([experiment.experiment_id])
    (parent,) = (run for run in found if run.data.tags.get("role") == "study")
    return [run for run in found if "cell_id" in run.data.tags], parent


def assert_exactly_once(
    results: Results,
    cells: list[Cell],
    client: MlflowClient | None = None,
    study: str = "digits",
    summary: Mapping[str, float] = SUMMARY,
) -> None:
    """One finished run a cell, below one finished parent, with all that the results hold."""
    client = client or client_of(results)
    children, parent = runs_of(client, study)
    assert sorted(run.data.tags["cell_id"] for run in children) == ids(cells)
    evaluations = results.evaluations(ids(cells))
    for run in children:
        cell_id = run.data.tags["cell_id"]
        assert run.info.status == "FINISHED"
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert run.data.params["paradigm"] == run.data.tags["paradigm"]
        mine = evaluations[evaluations["cell_id"] == cell_id]
        accuracy = mine.loc[mine["split"] == "test", "accuracy"]
        history = client.get_metric_history(run.info.run_id, "test/accuracy")
        assert sorted(entry.value for entry in history) == sorted(accuracy)
        artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert artifacts == {"heatmap.png", "cell.json"}
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics == summary


def summaries(results: Results) -> list[Run]:
    client = client_of(results)
    experiment = client.get_experiment_by_name("digits").experiment_id
    found = client.search_runs([experiment], order_by=["attributes.start_time DESC"])
    return [run for run in found if run.data.tags.get("role") == "summary"]


def assert_groups_exactly_once(results: Results, groups: Sequence[Summary]) -> None:
    """One finished run a group, below none, with all that the group holds."""
    client, found = client_of(results), summaries(results)
    assert sorted(run.data.tags["group"] for run in found) == sorted(g.key for g in groups)
    by_key = {group.key: group for group in groups}
    for run in found:
        group, run_id = by_key[run.data.tags["group"]], run.info.run_id
        assert run.info.status == "FINISHED"
        assert "mlflow.parentRunId" not in run.data.tags
        assert run.data.params == group.params
        assert run.data.metrics == {**group.metrics, "test/saif": group.saif}
        history = client.get_metric_history(run_id, "test/saif")
        assert sorted((m.step, m.value) for m in history) == [(0, 0.1), (2, group.saif)]
        folder = Path(url2pathname(urlsplit(run.info.artifact_uri).path))
        held = {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*.*")}
        assert held == group.files()


class Failing:
    """Makes a method of MLflow's client raise, before or after it did what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.calls = 0
        self.failures = 0

    def patch(self, name: str, fails: Callable[[int], str | None]) -> None:
        """`fails` is asked for each call, by its number from 1: "before", "after" or None."""
        original = getattr(MlflowClient, name)

        @functools.wraps(original)
        def call(client: MlflowClient, *args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            when = fails(self.calls)
            self.failures += when is not None
            if when == "before":
                raise ConnectionError("the request was lost")
            answer = original(client, *args, **kwargs)
            if when == "after":
                raise ConnectionError("the answer was lost")
            return answer

        self._patch.setattr(MlflowClient, name, call)
