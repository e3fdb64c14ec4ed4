"""How long MLflow's pages take to show a large study: its summaries, and their comparison.

    uv run python -m study.track RESULTS
    uv run python benchmarks/mlflow_ui.py RESULTS --study digits

It opens the database of a results directory with `mlflow ui`, in Chromium, as the command that a
study prints, twice: MLflow's server reads its own code at the first page.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from mlflow import MlflowClient
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from study.results import Results
from study.tracking.store import RunStore

PORT = 5577
PATIENCE = 120.0


def main() -> int:
    """Prints the times; the exit status is 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results_dir", help="with an mlflow.db, as `study.track` makes it")
    parser.add_argument("--study", default="digits")
    args = parser.parse_args()
    results = Results(args.results_dir)
    store = RunStore(results, args.study, None)
    store.connect()
    assert store.view is not None
    uri = f"sqlite:///{results.url}/mlflow.db"
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(args.study).experiment_id
    runs = client.search_runs([experiment], "tags.role = 'summary'")
    names = [run.info.run_name for run in runs]
    ids = json.dumps([run.info.run_id for run in runs])
    compared = f"#/compare-runs?runs={quote(ids)}&experiments={quote(json.dumps([experiment]))}"
    with served(uri) as address, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for turn in ("first", "second"):
            page = chromium.new_page(viewport={"width": 1400, "height": 700})
            page.set_default_timeout(1000 * PATIENCE)
            view = store.view.replace("http://127.0.0.1:5000", address)
            print(
                f"{turn} opening: {len(names)} summaries {listed(page, view, names):.1f} s", end=""
            )
            print(f", their comparison {comparison(page, f'{address}/{compared}'):.1f} s")
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


@contextmanager
def served(uri: str) -> Iterator[str]:
    """Gives the address of MLflow's pages for a database."""
    command = ["ui", "--backend-store-uri", uri, "--port", str(PORT)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *command], stdout=log, stderr=log
        )
        address = f"http://127.0.0.1:{PORT}"
        try:
            deadline = time.monotonic() + PATIENCE
            while process.poll() is None and time.monotonic() < deadline:
                try:
                    urllib.request.urlopen(f"{address}/health").close()
                    break
                except OSError:
                    time.sleep(0.2)
            yield address
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
