"""A new field of a cell is one declaration in one file; all that people see of it follows."""

from __future__ import annotations

import shutil

import pandas as pd
from mlflow import MlflowClient

from study.tracking.uris import sqlite_url
from tests.conftest import PROJECT
from tests.made_up.commands import python
from tests.made_up.tiny_studies import TINY

DECLARATION = """    warp: int = declared(
        "made up for a test", Whole(1, 9), 2, column="that a test made up"
    )
"""
BEHIND = "    alpha: float | None = declared("


def test_a_field_is_in_ids_results_mlflow_and_the_report(tmp_path, empty_database):
    """In a copy of the project whose cells have one field more."""
    for name in ("study", "analysis", "search_spaces", "chapters"):
        shutil.copytree(PROJECT / name, tmp_path / name)
    cell = tmp_path / "study" / "cell" / "cell.py"
    before, after = cell.read_text().split(BEHIND)
    cell.write_text(f"{before}{DECLARATION}{BEHIND}{after}")
    store = sqlite_url(shutil.copy(empty_database, tmp_path))
    code = f"""
from analysis.conclude import conclude
from study import run, track
from study.plan import estimate
estimate.MOST_STEPS = 3  # timing takes longer than the study
run.main("{TINY} warp=3,4 --shard 1/1".split())
track.main(["results", "--tracking", "{store}"])
conclude("results").print()
"""
    done = python("-c", code, folder=tmp_path, PYTHONPATH=str(tmp_path))
    cells = pd.read_parquet(tmp_path / "results" / "cells")[["cell_id", "comparison_id", "warp"]]
    cells = cells.drop_duplicates()
    assert sorted(cells["warp"]) == [3, 4], done.stderr
    assert cells["cell_id"].is_unique
    assert cells["comparison_id"].is_unique  # cells that differ in it are not compared
    client = MlflowClient(store)
    runs = client.search_runs([client.get_experiment_by_name("digits").experiment_id])
    assert {run.data.params["warp"] for run in runs if "cell_id" in run.data.tags} == {"3", "4"}
    assert "warp 3" in done.stdout
