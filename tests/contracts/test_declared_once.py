"""A new field of a cell is one declaration in one file; all that people see of it follows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient

from study.tracking.uris import sqlite_url
from tests.conftest import PROJECT
from tests.made_up.tiny_studies import TINY

DECLARATION = """    warp: int = declared(
        "made up for a test", Whole(1, 9), 2, column="that a test made up"
    )
"""
BEHIND = "    alpha: float | None = declared("


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project whose cells have one field more."""
    folder = tmp_path_factory.mktemp("house")
    for name in ("study", "analysis", "search_spaces", "chapters"):
        shutil.copytree(PROJECT / name, folder / name)
    cell = folder / "study" / "cell" / "cell.py"
    before, after = cell.read_text().split(BEHIND)
    cell.write_text(f"{before}{DECLARATION}{BEHIND}{after}")
    return folder


def said_by(house: Path, code: str) -> str:
    """What Python prints that runs code in the copy."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=house, env={**os.environ, "PYTHONPATH": str(house)}, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_a_field_is_in_the_help_and_its_bounds_are_checked(house):
    said = said_by(
        house,
        """
from study.run import main
main(["digits", "--set", "warp=10"])
main(["digits", "--set", "wrap=3"])
for words in ["--help"], ["digits", "--help"]:
    try:
        main(words)
    except SystemExit:
        pass
""",
    )
    assert "warp must be at most 9, got 10" in said
    assert "Did you mean 'warp'" in said
    assert "  warp               made up for a test [from 1 to 9; 2]\n" in said
    assert " warp=2" in said


def test_a_field_is_in_ids_results_mlflow_and_the_report(house, empty_database):
    store = sqlite_url(shutil.copy(empty_database, house))
    printed = said_by(
        house,
        f"""
from analysis.conclude import conclude
from study import run, track
from study.plan import estimate
estimate.MOST_STEPS = 3  # timing takes longer than the study
run.main("{TINY} warp=3,4 --shard 1/1".split())
track.main(["results", "--tracking", "{store}"])
conclude("results").print()
""",
    )
    cells = pd.read_parquet(house / "results" / "cells")[["cell_id", "comparison_id", "warp"]]
    cells = cells.drop_duplicates()
    assert sorted(cells["warp"]) == [3, 4], printed
    assert cells["cell_id"].is_unique
    assert cells["comparison_id"].is_unique  # cells that differ in it are not compared
    client = MlflowClient(store)
    runs = client.search_runs([client.get_experiment_by_name("digits").experiment_id])
    assert {run.data.params["warp"] for run in runs if "cell_id" in run.data.tags} == {"3", "4"}
    assert "warp 3" in printed
