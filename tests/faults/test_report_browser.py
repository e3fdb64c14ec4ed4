"""The report in a real browser: from disk, without a network, wide, narrow, dark and printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.conclude import conclude
from analysis.section.templates import Table
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.pages import page_of

PHONE = {"width": 390, "height": 844}
WIDE = {"width": 1280, "height": 900}
MOST_BYTES = 1_500_000
"""Of two comparisons."""


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A report with every kind of block: verdicts, warnings, figures, cells that ended early."""
    folder = tmp_path_factory.mktemp("browser")
    results = make_results(folder / "results")
    random = np.random.default_rng(0)

    def scattered(_):
        return {"heatmap": random.dirichlet(np.full(25, 0.5)).tolist()}

    for paradigm in ("soft", "hard", "hybrid", "lvml"):
        for lr in (0.1, 0.2):
            for seed in range(6):
                scores = {"accuracy": 0.9 - lr / 10, "saif": random.uniform(0, 0.1)}
                write(results, make_cell(paradigm, lr, seed), **scores, further=scattered)
    write(results, make_cell("soft", m=5))
    reason = "loss_is_not_finite_" * 12  # a word longer than a phone is wide
    write(results, make_cell("lvml", 0.4), status="diverged", points=(0.25,), status_reason=reason)
    return Path(conclude(results).write(folder / "out"))


@pytest.mark.parametrize("screen", [WIDE, PHONE], ids=["wide", "phone"])
def test_it_loads_shows_everything_and_is_no_wider_than_the_screen(
    screen, browser, report, tmp_path
):
    page = browser.new_page(viewport=screen, is_mobile=screen is PHONE, offline=True)
    requests, problems = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("requestfailed", lambda request: problems.append(request.url[:200]))
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(report.as_uri())
    widths = page.eval_on_selector_all(
        "figure svg", "figures => figures.map(f => f.getBoundingClientRect().width)"
    )
    assert len(widths) >= 6
    assert min(widths) > 100
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    # What is wider scrolls by itself: tables, and figures of many panels.
    outside = page.eval_on_selector_all(
        "body > *, figure, p, h1, h2, h3, pre",
        "items => items.filter(i => i.getBoundingClientRect().right > window.innerWidth + 1)"
        ".map(i => i.outerHTML.slice(0, 80))",
    )
    assert outside == []
    screenshot = page.screenshot(path=tmp_path / "report.png", full_page=True)
    assert len(screenshot) > 50_000
    assert problems == []
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
    page.close()


def test_a_table_folds_its_cells_before_it_scrolls(browser, tmp_path):
    path = tmp_path / "wide.html"
    intervals = Table(["paradigm", *["95 % interval"] * 10], [["soft", *["69.2 to 84.5"] * 10]])
    path.write_text(page_of([("table", intervals)]))
    for size, scrolls in ((WIDE, False), (PHONE, True)):
        page = browser.new_page(viewport=size, offline=True)
        page.goto(path.as_uri())
        beyond = page.locator(".scroll").evaluate("div => div.scrollWidth - div.clientWidth")
        assert (beyond > 0) is scrolls
        page.close()


def test_dark_and_light_follow_the_reader(browser, report):
    for scheme, is_dark in (("dark", True), ("light", False)):
        page = browser.new_page(color_scheme=scheme, offline=True)  # type: ignore[arg-type]
        page.goto(report.as_uri())
        back, text = page.evaluate(
            "(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))"
        )
        assert (_brightness(back) < 64) is is_dark
        assert abs(_brightness(back) - _brightness(text)) > 150
        page.close()


def test_it_prints(browser, report, tmp_path):
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


def test_the_page_is_small_enough_to_be_sent(report):
    assert report.stat().st_size < MOST_BYTES


def test_every_mark_says_its_numbers_without_a_script(browser, report):
    """What is under the pointer is in an element with a title."""
    page = browser.new_page(viewport=WIDE, offline=True)
    page.goto(report.as_uri())
    assert page.locator("script").count() == 0
    page.eval_on_selector_all("details", "items => items.forEach(i => { i.open = true })")
    ids = page.eval_on_selector_all("[id]", "items => items.map(i => i.id)")
    assert len({*ids}) == len(ids)
    found = page.evaluate(
        """() => [...document.querySelectorAll("figure svg g > title")].map(title => {
          const mark = title.nextElementSibling;
          mark.scrollIntoView({block: "center"});
          const box = mark.getBoundingClientRect();
          const at = [box.x + box.width / 2, box.y + box.height / 2];
          const under = document.elementsFromPoint(...at);
          return [title.textContent, under.some(each => each.closest("g")?.contains(title)
            || title.parentNode.contains(each))];
        })"""
    )
    dots = [is_there for text, is_there in found if "seed" in text]
    assert len(dots) > 100
    assert all(dots)
    assert any(text.startswith("lvml − hard") for text, _ in found)
    page.close()


def test_a_watched_page_loads_itself_again(browser, tmp_path):
    """But not while someone is at work with it."""
    path = tmp_path / "report.html"
    path.write_text(page_of([("text", "first")], reload=1))
    page = browser.new_page(offline=True)
    page.goto(path.as_uri())
    path.write_text(page_of([("text", "second")]))
    for step in range(15):
        page.mouse.move(step, step)
        page.wait_for_timeout(100)
    assert page.get_by_text("first").is_visible()
    page.get_by_text("second").wait_for()
    page.close()


def _brightness(colour: str) -> float:
    """Mean of red, green and blue in 0 to 255 of ``rgb(22, 24, 28)``."""
    values = [float(x) for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(values) / 3
