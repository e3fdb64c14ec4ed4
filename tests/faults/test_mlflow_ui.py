"""The summaries in MLflow's own pages: a real server, opened in a real browser.

It makes the pictures in docs/, too, by the last command of docs/results.md.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

from analysis.digest.compare import compare
from analysis.digest.read import load
from analysis.page.sentences import answer
from benchmarks.support.mlflow_server import MLflowServer, serving
from study import track
from study.results import Results
from study.tracking.store import Store
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.sockets import listening, others_hear
from tests.made_up.tracking import client_of, runs_of

pytestmark = pytest.mark.timeout(600)

PARADIGMS = ("hard", "soft", "hybrid", "lvml")
WIDTH, HEIGHT = 1280, 800
"""Of a small laptop's window, with MLflow's side panels as they are in a new browser."""

ASSISTANT = 945
"""Where the panel begins that lies over the right of the page."""


@pytest.fixture(scope="module")
def results(tmp_path_factory, empty_database) -> Results:
    """Four paradigms, six seeds; or a copy of those that are named."""
    folder = tmp_path_factory.mktemp("ui") / "results"
    if named := os.environ.get("MLFLOW_UI_RESULTS"):
        shutil.copytree(named, folder, ignore=shutil.ignore_patterns("mlflow*"))
        return Results(folder)
    made = make_results(folder)
    shutil.copy(empty_database, folder / "mlflow.db")
    for paradigm, saif in zip(PARADIGMS, (0.41, 0.52, 0.73, 0.84), strict=True):
        for seed in range(6):
            write(made, make_cell(paradigm, seed=seed), 0.87 + seed / 100, saif - seed / 70)
    return made


@pytest.fixture(scope="module")
def server(results, tmp_path_factory) -> Iterator[MLflowServer]:
    """MLflow's pages, as the README starts them, of what `study.track` made of the results."""
    assert track.main([results.url]) == track.DONE
    store = ("--backend-store-uri", f"sqlite:///{results.url}/mlflow.db", "--workers", "1")
    with serving(MLflowServer(tmp_path_factory.mktemp("server"), "ui", *store)) as made:
        yield made


@pytest.fixture(scope="module")
def uri(server) -> str:
    return server.uri


def test_the_mlflow_ui_listens_on_the_loopback_only(server):
    found = listening(server.pid)
    assert f"127.0.0.1:{server.port}" in found
    assert others_hear(found) == {}


@pytest.fixture
def page(browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    context.set_default_timeout(60_000)  # MLflow's pages load slowly while a machine is busy
    yield context.new_page()
    context.close()


@pytest.fixture
def view(results, uri) -> str:
    """The address that a study prints, on this server."""
    store = Store(results, "digits", None)
    store.connect()
    assert store.view is not None
    return store.view.replace("http://127.0.0.1:5000", uri)


@pytest.fixture
def names(results) -> dict[str, str]:
    """Paradigm -> name of its run."""
    found = runs_of(client_of(results))["summary"]
    return {run.data.params["paradigm"]: run.info.run_name for run in found}


def is_seen(element: Locator) -> bool:
    """Whether an element lies on the first screen, and under no panel."""
    element.wait_for()
    box = element.bounding_box()
    assert box is not None
    right, bottom = box["x"] + box["width"], box["y"] + box["height"]
    return bool(right <= ASSISTANT and bottom <= HEIGHT and box["y"] >= 0)


def test_the_comparison_is_the_first_thing_seen(results, view, names, page):
    """The answer, four charts and no other, and SAIF and accuracy of all paradigms as bars."""
    page.goto(view)
    (comparison,) = compare(load(results))
    assert is_seen(page.get_by_text("(4)", exact=True))  # charts, beside their section's name
    for name in names.values():
        assert is_seen(page.get_by_role("link", name=name[:12]).first)
    assert is_seen(page.get_by_text(answer([comparison])[0]).first)
    bars = page.locator("text.bartext")
    bars.nth(2 * len(PARADIGMS) - 1).wait_for()
    assert all(is_seen(bar) for bar in bars.all())
    expected = comparison.summary[["saif", "accuracy"]].to_numpy().ravel()
    shown = sorted(map(float, bars.all_text_contents()))
    assert shown == pytest.approx(sorted(expected), abs=0.0051)  # two decimals
    take_picture(page, "mlflow-charts")
    page.get_by_text("accuracy", exact=True).first.hover()
    page.mouse.wheel(0, HEIGHT)  # charts are drawn as they come into view
    for paradigm, name in names.items():
        assert name.startswith(paradigm)
        page.get_by_text(f"{name} (test/saif)").wait_for()


def test_the_table_shows_who_is_best(results, view, names, page):
    (comparison,) = compare(load(results))
    expected = comparison.summary.set_index("paradigm")
    page.goto(view.replace("&compareRunsMode=CHART", ""))
    for paradigm, name in names.items():
        assert name.startswith(f"{paradigm} · SAIF {100 * expected.loc[paradigm, 'saif']:.0f} %")
        link = page.get_by_role("link", name=name)
        assert is_seen(link)
        row = page.get_by_role("row").filter(has=link).get_attribute("row-id")
        cells = page.locator(f".ag-center-cols-container [row-id='{row}']")
        for metric in ("accuracy", "saif"):
            cell = cells.locator(f"[col-id='metrics.`{metric}`']")
            assert is_seen(cell)
            assert float(cell.inner_text()) == pytest.approx(
                expected.loc[paradigm, metric], abs=5e-5
            )
    # The cells are folded into the study's own run.
    shown = page.locator(".ag-pinned-left-cols-container [role=row]")
    assert shown.count() == len(names) + 1
    take_picture(page, "mlflow-runs")


def take_picture(page: Page, name: str) -> None:
    """Into the folder that MLFLOW_UI_PICTURES names, if it does."""
    if folder := os.environ.get("MLFLOW_UI_PICTURES"):
        page.wait_for_timeout(1_500)  # until what moves has come to rest
        page.screenshot(path=Path(folder) / f"{name}.png")
