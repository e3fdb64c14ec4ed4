"""The report in a real browser: from disk, without a network, wide, narrow, dark and printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from analysis.comparison.compare import Comparison, compare_results
from analysis.comparison.curves import learning_curve
from analysis.comparison.heat_maps import mean_heatmaps
from analysis.conclude import write_report
from analysis.figures.interactive import curve_panels
from analysis.rendering import html
from analysis.section.blocks import Interactive, Text
from tests.made_up.comparisons import make_cell, make_results, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

PHONE: ViewportSize = {"width": 390, "height": 844}
WIDE: ViewportSize = {"width": 1280, "height": 900}
MOST_BYTES = 3_000_000

FIGURES = "Bokeh.documents.at(-1)"
SHOWN_SAIF = f"""
(({{data}}) => Object.fromEntries(data.paradigm.map((name, i) => [name, data.mean[i]])))(
  {FIGURES}.get_model_by_name("saif"))"""
VISIBLE = f"""
[...{FIGURES}._all_models.values()].filter(m => m.type == "GlyphRenderer" && m.visible).length"""
PLACE = f"""
([title, x, y]) => {{
  const panel = [...{FIGURES}._all_models.values()].find(m => m.title?.text == title);
  const [{{el, frame}}] = Bokeh.index.query(view => view.model === panel);
  const box = el.getBoundingClientRect();
  return [box.x + frame.x_scale.compute(x), box.y + frame.y_scale.compute(y)];
}}"""
"""Where on the screen a point of a panel is; the first panel of curves has no title."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every kind of block: verdicts, warnings, figures, cells that ended early."""
    folder = tmp_path_factory.mktemp("browser")
    results = make_results(folder / "results")
    random = np.random.default_rng(0)
    for paradigm in ("soft", "hard", "hybrid", "lvml"):
        for lr in (0.1, 0.2):
            for seed in range(6):
                heatmap = random.dirichlet(np.full(25, 0.5))
                scores = {"accuracy": 0.9 - lr / 10, "saif": heatmap[-1]}
                write(results, make_cell(paradigm, lr, seed), **scores, heatmap=heatmap.tolist())
    write(results, make_cell("soft", m=5))
    reason = "loss_is_not_finite_" * 12  # a word longer than a phone is wide
    write(results, make_cell("lvml", 0.4), status="diverged", points=(0.25,), status_reason=reason)
    return write_report(results, folder / "out")


class Visit:
    """An open page, and what happened while it was open."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", lambda request: self.problems.append(request.url[:200]))
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(path.as_uri())


@pytest.fixture(params=["wide", "phone", "dark"])
def visit(request: pytest.FixtureRequest, browser: Browser, report: Path) -> Iterator[Visit]:
    context = browser.new_context(
        viewport=PHONE if request.param == "phone" else WIDE,
        is_mobile=request.param == "phone",
        color_scheme="dark" if request.param == "dark" else "light",
        offline=True,
    )
    yield Visit(context.new_page(), report)
    context.close()


def test_it_loads_and_shows_everything(visit: Visit, report: Path, tmp_path: Path) -> None:
    page = visit.page
    widths = page.eval_on_selector_all("img", "images => images.map(i => i.naturalWidth)")
    assert len(widths) >= 6
    assert min(widths) > 0
    assert page.eval_on_selector_all("img", "images => images.every(i => i.complete)")
    assert visit.problems == []
    # The page itself, and the pictures inside it.
    assert {url.partition(":")[0] for url in visit.requests} <= {"file", "data"}
    assert [url for url in visit.requests if url.startswith("file:")] == [report.as_uri()]
    screenshot = page.screenshot(path=tmp_path / "report.png", full_page=True)
    assert len(screenshot) > 50_000


def test_nothing_is_wider_than_the_screen(visit: Visit) -> None:
    page = visit.page
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    # What is wider scrolls by itself, and only tables are.
    outside = page.eval_on_selector_all(
        "body > *, figure, img, p, h1, h2, h3, pre",
        "items => items.filter(i => i.getBoundingClientRect().right > window.innerWidth + 1)"
        ".map(i => i.outerHTML.slice(0, 80))",
    )
    assert outside == []


def test_dark_and_light_follow_the_reader(browser: Browser, report: Path) -> None:
    for scheme, is_dark in (("dark", True), ("light", False)):
        page = browser.new_page(color_scheme=scheme, offline=True)  # type: ignore[arg-type]
        page.goto(report.as_uri())
        back, text = page.evaluate(
            "(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))"
        )
        assert (_brightness(back) < 64) is is_dark
        assert abs(_brightness(back) - _brightness(text)) > 150
        page.close()


def test_it_prints(browser: Browser, report: Path, tmp_path: Path) -> None:
    page = browser.new_page(color_scheme="dark", offline=True)
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert _brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) > 250
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 within its margins
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    pdf = page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 30
    page.close()


# --- figures that answer to a reader


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    """A page whose figures are drawn."""
    context = browser.new_context(viewport=WIDE, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator(".noUi-handle").wait_for()
    yield page
    context.close()


@pytest.fixture(scope="module")
def comparison(report: Path) -> Comparison:
    """The one with m=10."""
    return compare_results(report.parents[1] / "results")[1]


def test_the_page_is_small_enough_to_be_sent(report: Path) -> None:
    assert report.stat().st_size < MOST_BYTES


def test_the_slider_recomputes_saif(page: Page, comparison: Comparison) -> None:
    """As NumPy does from the heat maps, and at first as the table has it."""
    _choose(page, comparison)
    summary = comparison.summary.set_index("paradigm")
    assert page.evaluate(SHOWN_SAIF) == pytest.approx(dict(100 * summary["saif"]))
    heatmaps = mean_heatmaps(comparison.chosen, comparison.choice)
    page.locator(".noUi-handle").focus()
    for first in (3, 2, 1):
        page.keyboard.press("ArrowLeft")
        page.get_by_text(f"attention and score: 0.{2 * first}").wait_for()
        shares = {name: 100 * each[first:, first:].sum() for name, each in heatmaps.items()}
        assert page.evaluate(SHOWN_SAIF) == pytest.approx(shares)


def test_a_mark_and_a_cell_say_their_numbers(page: Page, comparison: Comparison) -> None:
    _choose(page, comparison)
    last = learning_curve(comparison.evaluations, "saif").groupby("paradigm").last()
    mean, low, high = 100 * last.loc["lvml", ["mean", "low", "high"]].to_numpy(float)
    page.mouse.move(*page.evaluate(PLACE, ["", 10, mean]))
    for said in ("lvml (n=6)", f"{mean:.1f} %", f"{low:.1f} to {high:.1f}", "1e6 training FLOPs"):
        page.get_by_text(said, exact=True).first.wait_for()
    heatmaps = mean_heatmaps(comparison.chosen, comparison.choice)
    page.locator(".interactive figcaption").scroll_into_view_if_needed()
    for name in ("hybrid", "lvml"):
        page.mouse.move(*page.evaluate(PLACE, [f"{name} (n=6)", 4.5, 4.5]))
        page.get_by_text(f"{100 * heatmaps[name][-1, -1]:.1f} %").wait_for()
    page.get_by_text("attention on the foreground:").wait_for()


def test_a_click_in_a_legend_hides_a_paradigm(page: Page, comparison: Comparison) -> None:
    """Its band, its line and its marks, in both panels; another one shows them again."""
    _choose(page, comparison)
    before = page.evaluate(VISIBLE)
    of_both = page.locator(".interactive").get_by_text("soft", exact=True)
    of_both.nth(0).click()
    assert page.evaluate(VISIBLE) == before - 6
    of_both.nth(1).click()
    assert page.evaluate(VISIBLE) == before


def test_it_asks_for_nothing(browser: Browser, report: Path, comparison: Comparison) -> None:
    """With a network at hand, whatever a reader does."""
    page = browser.new_page(viewport=WIDE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition(":")[0]))
    page.goto(report.as_uri())
    _choose(page, comparison)
    page.locator(".noUi-handle").press("ArrowLeft")
    page.mouse.move(*page.evaluate(PLACE, ["soft (n=6)", 4.5, 4.5]))
    page.wait_for_timeout(300)
    assert set(asked) <= {"file", "data"}
    assert asked.count("file") == 1
    page.close()


def test_a_name_runs_no_code(browser: Browser, tmp_path: Path) -> None:
    """In a legend, and in what a mark says."""
    name = '<img src="x" onerror="document.title = 1">'
    curve = {"paradigm": [name], "compute_flops": [1e6], "budget_fraction": [1.0]}
    curve |= {"num_seeds": [1], "mean": [0.5], "low": [0.5], "high": [0.5]}
    figures = curve_panels({"saif": pd.DataFrame(curve)})
    path = tmp_path / "report.html"
    path.write_text(html.render("safe", [Interactive(name, name, {name: figures})]))
    page = browser.new_page(viewport=WIDE, offline=True)
    page.goto(path.as_uri())
    page.locator(".bk-label").get_by_text(name).wait_for()
    page.mouse.move(*page.evaluate(PLACE, ["", 1, 50]))
    page.get_by_text(f"{name} (n=1)").wait_for()
    assert page.title() == "safe"
    page.close()


@pytest.mark.parametrize("how", ["printed", "without scripts"])
def test_pictures_stay_where_nothing_answers(browser: Browser, report: Path, how: str) -> None:
    page = browser.new_page(java_script_enabled=how == "printed", offline=True)
    page.goto(report.as_uri())
    if how == "printed":
        page.emulate_media(media="print")
    assert not page.locator(".interactive").is_visible()
    pictures = page.locator("figure img")
    assert pictures.count() >= 6
    assert all(pictures.nth(i).is_visible() for i in range(pictures.count()))
    page.close()


def test_a_watched_page_loads_itself_again(browser: Browser, tmp_path: Path) -> None:
    """But not while someone is at work with it."""
    path = tmp_path / "report.html"
    path.write_text(html.render("watched", [Text("first")], reload=1))
    page = browser.new_page(offline=True)
    page.goto(path.as_uri())
    path.write_text(html.render("watched", [Text("second")]))
    for step in range(15):
        page.mouse.move(step, step)
        page.wait_for_timeout(100)
    assert page.get_by_text("first").is_visible()
    page.get_by_text("second").wait_for()
    page.close()


def _choose(page: Page, comparison: Comparison) -> None:
    """Shows the figures of one of the comparisons."""
    page.get_by_label("setting").select_option(comparison.name)
    page.locator(".interactive").get_by_text("lvml", exact=True).first.wait_for()


def _brightness(colour: str) -> float:
    """Mean of red, green and blue in 0 to 255 of ``rgb(22, 24, 28)``."""
    values = [float(x) for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(values) / 3
