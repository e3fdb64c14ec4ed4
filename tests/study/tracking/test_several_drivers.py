"""Several drivers log to one experiment, each from its own results directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient

from study.tracking.store import ABANDONED_SECONDS, RunStore
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.tracking import Summary


@pytest.fixture
def uri(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a store that two directories may log to."""
    monkeypatch.chdir(tmp_path)  # where MLflow puts artifacts
    shutil.copy(empty_database, tmp_path / "both.db")
    return f"sqlite:///{tmp_path / 'both.db'}"


@pytest.fixture
def stores(tmp_path: Path, uri: str) -> tuple[RunStore, RunStore]:
    one, two = (RunStore(make_results(tmp_path / name), "digits", uri) for name in ("a", "b"))
    one.look_up()
    two.look_up()
    return one, two


def runs(uri: str) -> dict[str, str]:
    """Id -> the directory that it was logged from, of all runs that are not deleted."""
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("digits").experiment_id
    return {
        r.info.run_id: r.data.tags.get("results", "") for r in client.search_runs([experiment])
    }


def test_a_run_that_another_driver_logs_is_let_alone(
    stores: tuple[RunStore, RunStore], uri: str, tmp_path: Path
) -> None:
    one, two = stores
    begun = one._new_run("begun", {"cell_id": "0123"}).info.run_id
    assert f":{tmp_path / 'a'} " in runs(uri)[begun]
    two.summarise({}, [])
    assert begun in runs(uri)
    one.summarise({}, [])  # its own, of a kill
    assert begun not in runs(uri)


def test_a_run_that_was_given_up_long_ago_is_deleted_by_any_driver(
    stores: tuple[RunStore, RunStore], uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = stores
    begun = one._new_run("begun", {"cell_id": "0123"}).info.run_id
    monkeypatch.setattr("study.tracking.store.ABANDONED_SECONDS", -ABANDONED_SECONDS)
    two.summarise({}, [])
    assert begun not in runs(uri)


def test_a_cell_of_both_has_one_run_and_a_group_its_latest_numbers(
    stores: tuple[RunStore, RunStore], uri: str
) -> None:
    for saif, store in zip((0.25, 0.75), stores, strict=True):
        cell = write(store._results, make_cell())
        assert [error for _, error in store.log({cell.id: None})] == [None]
        assert [error for _, error in store.log_groups([Summary(saif=saif)])] == [None]
    for store in stores:
        store.summarise({}, [])
    assert len(runs(uri)) == 3
    client = MlflowClient(uri)
    found = [client.get_run(run_id).data for run_id in runs(uri)]
    assert sum("cell_id" in run.tags for run in found) == 1
    assert [run.metrics["saif"] for run in found if "group" in run.tags] == [0.75]
