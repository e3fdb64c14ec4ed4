"""The summaries in MLflow's own pages: a real server, opened in a real browser.

The pictures in docs/ are made by it, of the README's digits study in `results`:

    MLFLOW_UI_RESULTS=results MLFLOW_UI_PICTURES=docs \\
        uv run pytest -m faults tests/faults/test_mlflow_ui.py
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from mlflow import MlflowClient
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as NotShown

from analysis.comparison.compare import compare
from analysis.reading import load
from benchmarks.support.mlflow_server import MLflowServer, serving
from study import track
from study.results import Results
from study.tracking.store import RunStore
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.sockets import listening, others_hear

pytestmark = pytest.mark.timeout(600)

PARADIGMS = ("hard", "soft", "hybrid", "lvml")
COLUMNS = (
    "saif", "saif_low", "saif_high", "accuracy", "accuracy_low", "accuracy_high", "n_seeds",
)  # fmt: skip
ROUNDING = 0.0005 + 0.00005 + 1e-9
"""MLflow's comparison shows three decimals, of the four that it was given."""

ROW_HEIGHT = 45
"""Of the comparison's table of metrics, in pixels."""

_METRIC_ROWS = """async offset => {
    const links = () => [...document.querySelectorAll('a[title="Plot chart"]')];
    let box = links()[0].closest('[role=grid]');
    while (box.querySelectorAll('[role=grid]').length < 2) box = box.parentElement;
    const values = [...box.querySelectorAll('[role=grid]')].at(-1);
    for (const top of [offset, offset + 1]) {  // the names follow one event late
        values.scrollTop = top;
        await new Promise(resolve => setTimeout(resolve, 300));
    }
    const rows = {};
    for (const link of links()) {
        const cells = [...values.querySelectorAll('[role=rowgroup] > div')]
            .filter(cell => cell.style.top === link.parentElement.style.top)
            .sort((a, b) => parseInt(a.style.left) - parseInt(b.style.left));
        if (cells.length) rows[link.innerText.trim()] = cells.map(cell => cell.innerText);
    }
    return rows;
}"""
"""Scrolls the comparison's table of metrics and reads what is in view: name -> values."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Results:
    """Four paradigms, six seeds, two learning rates; or a copy of those that are named."""
    folder = tmp_path_factory.mktemp("ui") / "results"
    if named := os.environ.get("MLFLOW_UI_RESULTS"):
        shutil.copytree(named, folder, ignore=shutil.ignore_patterns("mlflow*"))
        return Results(folder)
    made = make_results(folder)
    shutil.copy(empty_database, folder / "mlflow.db")
    for paradigm, saif in zip(PARADIGMS, (0.41, 0.52, 0.73, 0.84), strict=True):
        for lr, loss in ((0.1, 0.3), (0.3, 0.5)):
            for seed in range(6):
                cell = make_cell(paradigm, lr, seed=seed)
                write(made, cell, 0.9 - loss / 10 + seed / 100, saif - seed / 70, loss)
    return made


@pytest.fixture(scope="module")
def server(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MLflowServer]:
    """MLflow's pages, as the README starts them, of what `study.track` made of the results."""
    assert track.main([results.url]) == track.DONE
    store = ("--backend-store-uri", f"sqlite:///{results.url}/mlflow.db", "--workers", "1")
    with serving(MLflowServer(tmp_path_factory.mktemp("server"), "ui", *store)) as made:
        yield made


@pytest.fixture(scope="module")
def uri(server: MLflowServer) -> str:
    return server.uri


def test_the_mlflow_ui_listens_on_the_loopback_only(server: MLflowServer) -> None:
    found = listening(server.pid)
    assert f"127.0.0.1:{server.port}" in found
    assert others_hear(found) == {}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 700})
    context.set_default_timeout(60_000)  # MLflow's pages load slowly while a machine is busy
    yield context.new_page()
    context.close()


def test_four_summaries_are_compared_in_the_browser(
    results: Results, uri: str, page: Page
) -> None:
    client = MlflowClient(f"sqlite:///{results.url}/mlflow.db")
    (comparison,) = compare(load(results))
    expected = comparison.summary.rename(columns={"num_seeds": "n_seeds"}).set_index("paradigm")
    assert len(expected) == len(PARADIGMS)
    experiment = client.get_experiment_by_name("digits").experiment_id
    runs = client.search_runs([experiment], "tags.role = 'summary'")
    names = {run.info.run_name: run.data.params["paradigm"] for run in runs}

    store = RunStore(results, "digits", None)
    store.connect()
    assert store.view is not None
    page.goto(store.view.replace("http://127.0.0.1:5000", uri))
    for name in names:
        page.get_by_role("link", name=name).wait_for()
    # At the top are the summaries and the study's own run; the cells are folded into it.
    shown = page.locator(".ag-pinned-left-cols-container [role=row]")
    assert shown.count() == len(names) + 1
    page.get_by_role("button", name="Toggle sidebar").click()
    close_assistant(page)
    page.locator(f"[col-id='metrics.`{COLUMNS[-1]}`']").first.wait_for()
    take_picture(page, "mlflow-runs")
    for name, paradigm in names.items():
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name))
        cells = page.locator(f".ag-center-cols-container [row-id='{row.get_attribute('row-id')}']")
        for column in COLUMNS:
            shown_value = float(cells.locator(f"[col-id='metrics.`{column}`']").inner_text())
            assert shown_value == pytest.approx(expected.loc[paradigm, column], abs=ROUNDING)
        row.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Compare").click()

    page.get_by_text("Comparing 4 Runs from 1 Experiment").wait_for()
    run_ids = re.findall(r"[0-9a-f]{32}", unquote(page.url))
    paradigms = [client.get_run(run_id).data.params["paradigm"] for run_id in run_ids]
    assert sorted(paradigms) == sorted(PARADIGMS)
    rows = metric_rows(page)
    for metric in COLUMNS:
        held = dict(zip(paradigms, map(float, rows[metric]), strict=True))
        for paradigm in PARADIGMS:
            assert held[paradigm] == pytest.approx(expected.loc[paradigm, metric], abs=ROUNDING)
    show_what_differs(page, [name for name, values in rows.items() if len(set(values)) > 1])
    take_picture(page, "mlflow-comparison")


def test_a_summary_shows_the_table_and_the_pictures(
    results: Results, uri: str, page: Page
) -> None:
    client = MlflowClient(f"sqlite:///{results.url}/mlflow.db")
    experiment = client.get_experiment_by_name("digits").experiment_id
    run = client.search_runs([experiment], "tags.role = 'summary'")[0]
    page.goto(f"{uri}/#/experiments/{experiment}/runs/{run.info.run_id}")
    page.get_by_role("columnheader", name="SAIF %").wait_for()
    page.goto(f"{uri}/#/experiments/{experiment}/runs/{run.info.run_id}/artifacts")
    page.get_by_text("figures", exact=True).click()
    page.get_by_text("heatmaps-test.png").click()
    page.locator("img[src^='blob:'], img[src*='heatmaps-test.png']").first.wait_for()


def metric_rows(page: Page) -> dict[str, list[str]]:
    """The comparison's metrics: name -> values, one a run, in the order of the columns."""
    page.locator("a[title='Plot chart']").first.wait_for()
    rows: dict[str, list[str]] = {}
    for offset in range(0, 1_500, 150):
        rows |= page.evaluate(_METRIC_ROWS, offset)
    return rows


def show_what_differs(page: Page, metrics: list[str]) -> None:
    """Folds the plots, leaves out what is equal in all runs, and scrolls to the answer."""
    page.get_by_text("Visualizations", exact=True).click()
    for switch in page.get_by_role("switch").all()[:2]:
        switch.click()
    page.evaluate(_METRIC_ROWS, ROW_HEIGHT * metrics.index("saif"))
    page.get_by_text("paradigm", exact=True).first.evaluate(
        "row => row.scrollIntoView({block: 'start'})"
    )


def close_assistant(page: Page) -> None:
    """It opens beside the runs on a first visit, a moment after them."""
    close = page.get_by_role("button", name="Close", exact=True).last
    with contextlib.suppress(NotShown):
        close.click(timeout=10_000)


def take_picture(page: Page, name: str) -> None:
    """Into the folder that MLFLOW_UI_PICTURES names, if it does."""
    if folder := os.environ.get("MLFLOW_UI_PICTURES"):
        page.wait_for_timeout(1_500)  # until what moves has come to rest
        page.screenshot(path=Path(folder) / f"{name}.png")
