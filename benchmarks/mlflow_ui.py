"""How long MLflow's pages take to show a large study: its summaries, and their comparison.

    uv run python -m study.track RESULTS
    uv run python benchmarks/mlflow_ui.py RESULTS --study digits

It opens the database of a results directory with `mlflow ui`, in Chromium, as the command that a
study prints, twice: MLflow's server reads its own code at the first page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from mlflow import MlflowClient
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.mlflow_server import MLflowServer, serving
from study.results import Results
from study.tracking.store import DATABASE, Store
from study.tracking.uris import database_folder, sqlite_url

PATIENCE = 120.0


def main() -> int:
    """Prints the times; the exit status is 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results_dir", help="with an mlflow.db, as `study.track` makes it")
    parser.add_argument("--study", default="digits")
    args = parser.parse_args()
    results = Results(args.results_dir)
    store = Store(results, args.study, None)
    store.connect()
    assert store.view is not None
    uri = sqlite_url(database_folder(results.url) / DATABASE)
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(args.study).experiment_id
    runs = client.search_runs([experiment], "tags.role = 'summary'")
    names = [run.info.run_name for run in runs]
    ids = json.dumps([run.info.run_id for run in runs])
    compared = f"#/compare-runs?runs={quote(ids)}&experiments={quote(json.dumps([experiment]))}"
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(MLflowServer(Path(folder), "ui", "--backend-store-uri", uri)) as server,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for turn in ("first", "second"):
            page = chromium.new_page(viewport={"width": 1400, "height": 700})
            page.set_default_timeout(1000 * PATIENCE)
            view = store.view.replace("http://127.0.0.1:5000", server.uri)
            print(
                f"{turn} opening: {len(names)} summaries {listed(page, view, names):.1f} s", end=""
            )
            print(f", their comparison {comparison(page, f'{server.uri}/{compared}'):.1f} s")
            page.close()
    return 0


def listed(page: Page, url: str, names: list[str]) -> float:
    """Seconds until the table of runs shows all summaries."""
    began = time.perf_counter()
    page.goto(url)
    for name in names:
        page.get_by_role("link", name=name, exact=True).first.wait_for()
    return time.perf_counter() - began


def comparison(page: Page, url: str) -> float:
    """Seconds until the page that compares runs shows their metrics."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(url)
    page.locator("a[title='Plot chart']").first.wait_for()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
