"""Writes finished runs straight into MLflow's database, a batch at a time, and finds them there.

MLflow's client needs some ten transactions a run and makes several objects of each number, so that
it took three fourths of all that a cell cost the driver (docs/scaling.md). The rows are the same.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from study.tracking.artifacts import in_folder
from study.tracking.runs import CellRun

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Metric, Run


def database_of(client: MlflowClient) -> Any:
    """The database that a client writes to; None if it asks a server or another kind of store."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = client._tracking_client.store
    return store if type(store) is SqlAlchemyStore else None


def read(database: Any, experiment: Experiment) -> Iterator[Run]:
    """The runs of an experiment that are not deleted, without parameters.

    Metrics are those of the study's own run alone: MLflow's client reads those of all runs, which
    takes 20 s for 10,000.
    """
    from mlflow.entities import Metric, Run, RunData, RunInfo, RunTag
    from mlflow.store.tracking.dbmodels.models import SqlLatestMetric, SqlRun, SqlTag
    from sqlalchemy import select

    mine = (
        SqlRun.experiment_id == int(experiment.experiment_id),
        SqlRun.lifecycle_stage == "active",
    )
    tags: defaultdict[str, list[RunTag]] = defaultdict(list)
    metrics: defaultdict[str, list[Metric]] = defaultdict(list)
    with database.ManagedSessionMaker() as session:
        of_runs = select(SqlTag.run_uuid, SqlTag.key, SqlTag.value).join(SqlRun).where(*mine)
        for run_id, key, value in session.execute(of_runs):
            tags[run_id].append(RunTag(key, value))
        runs = session.execute(
            select(SqlRun.run_uuid, SqlRun.status, SqlRun.start_time).where(*mine)
        ).all()
        of_study = select(SqlTag.run_uuid).where(SqlTag.key == "role", SqlTag.value == "study")
        of_metrics = (
            select(SqlLatestMetric.run_uuid, SqlLatestMetric.key, SqlLatestMetric.value)
            .join(SqlRun)
            .where(*mine, SqlLatestMetric.run_uuid.in_(of_study))
        )
        for run_id, key, value in session.execute(of_metrics):
            metrics[run_id].append(Metric(key, value, 0, 0))
    for run_id, status, started in runs:
        info = RunInfo(run_id, experiment.experiment_id, "", status, started or 0, None, "active")
        yield Run(info, RunData(metrics[run_id], tags=tags[run_id]))


def write(database: Any, experiment: Experiment, runs: Mapping[str, CellRun]) -> None:
    """Writes finished runs: all of them, or none if it raises, when artifacts may stay of no run.

    Args:
        database: as `database_of` gives it.
        experiment: of the runs.
        runs: by new run id.

    Raises:
        Exception: whatever MLflow raises. If it does not answer, they may be there all the same.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
    from mlflow.store.tracking.dbmodels import models

    for run_id, run in runs.items():
        with in_folder(run.files) as folder:
            get_artifact_repository(_artifact_uri(experiment, run_id)).log_artifacts(folder)
    now = int(1000 * time.time())
    rows: dict[Any, list[dict[str, Any]]] = {
        models.SqlRun: [_run_row(experiment, *each, now) for each in runs.items()],
        models.SqlTag: [row for each in runs.items() for row in _tag_rows(*each)],
        models.SqlParam: [row for each in runs.items() for row in _param_rows(*each)],
    }
    metrics = {run_id: list(_metric_rows(run_id, run.metrics)) for run_id, run in runs.items()}
    rows[models.SqlMetric] = [row for of_run in metrics.values() for row in of_run]
    rows[models.SqlLatestMetric] = [row for of_run in metrics.values() for row in _latest(of_run)]
    with database.ManagedSessionMaker(read_only=False) as session:
        for model, of_model in rows.items():
            if of_model:
                session.connection().execute(model.__table__.insert(), of_model)


def _artifact_uri(experiment: Experiment, run_id: str) -> str:
    """Where MLflow's client expects the artifacts of a run."""
    from mlflow.utils.uri import append_to_uri_path

    return append_to_uri_path(experiment.artifact_location, run_id, "artifacts")


def _run_row(experiment: Experiment, run_id: str, run: CellRun, now: int) -> dict[str, Any]:
    return {
        "run_uuid": run_id,
        "name": run.name,
        "experiment_id": int(experiment.experiment_id),
        "artifact_uri": _artifact_uri(experiment, run_id),
        "user_id": "unknown",
        "status": "FINISHED",
        "start_time": now,
        "end_time": now,
        "lifecycle_stage": "active",
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "source_version": "",
    }


def _tag_rows(run_id: str, run: CellRun) -> Iterator[dict[str, Any]]:
    from mlflow.utils.validation import _validate_tag

    for name, text in {**run.tags, "mlflow.runName": run.name}.items():
        tag = _validate_tag(name, text)  # cuts off what is too long
        yield {"run_uuid": run_id, "key": tag.key, "value": tag.value}


def _param_rows(run_id: str, run: CellRun) -> Iterator[dict[str, Any]]:
    from mlflow.utils.validation import _validate_param

    for name, text in run.params.items():
        param = _validate_param(name, text)
        yield {"run_uuid": run_id, "key": param.key, "value": param.value}


def _metric_rows(run_id: str, metrics: Iterable[Metric]) -> Iterator[dict[str, Any]]:
    """The rows of metrics, each once."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    seen = set()
    for metric in metrics:
        is_nan, value = SqlAlchemyStore.sanitize_metric_value(None, metric.value)
        key = (metric.key, metric.step, metric.timestamp, value, is_nan)
        if key not in seen:
            seen.add(key)
            names = ("key", "step", "timestamp", "value", "is_nan")
            yield {"run_uuid": run_id, **dict(zip(names, key, strict=True))}


def _latest(rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Of each metric of a run, the row that MLflow shows beside the run: the last one."""
    latest: dict[str, dict[str, Any]] = {}
    for row in rows:
        held = latest.setdefault(row["key"], row)
        if _age(row) > _age(held):
            latest[row["key"]] = row
    return latest.values()


def _age(row: Mapping[str, Any]) -> tuple[int, int, float]:
    return row["step"], row["timestamp"], row["value"]
