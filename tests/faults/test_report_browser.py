"""The report in a real browser: from disk, without a network, wide, narrow, dark and printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.conclude import write_report
from tests.made_up.comparisons import make_cell, make_results, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = {"width": 390, "height": 844}
WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every kind of block: verdicts, warnings, figures, cells that ended early."""
    folder = tmp_path_factory.mktemp("browser")
    results = make_results(folder / "results")
    for paradigm, saif in (("soft", 0.5), ("hard", 0.4), ("hybrid", 0.7), ("lvml", 0.6)):
        for lr in (0.1, 0.2):
            for seed in range(6):
                cell = make_cell(paradigm, lr, seed)
                write(results, cell, accuracy=0.9 - lr / 10, saif=saif + 0.01 * ((seed * lr) % 3))
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
        viewport=PHONE if request.param == "phone" else WIDE,  # type: ignore[arg-type]
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


def _brightness(colour: str) -> float:
    """Mean of red, green and blue in 0 to 255 of ``rgb(22, 24, 28)``."""
    values = [float(x) for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(values) / 3
