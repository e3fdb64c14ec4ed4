"""Figures that answer to a reader show the numbers of the tables and of the static figures.

What they do in a browser, tests/faults/test_report_browser.py sees.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from bokeh.models import CategoricalSlider, ColumnDataSource, Legend, LegendItem
from bokeh.plotting import figure

import analysis
from analysis.comparison.compare import Comparison, compare
from analysis.comparison.curves import learning_curve
from analysis.comparison.heat_maps import saif_by_threshold
from analysis.comparison.report.interactive import interactive_blocks
from analysis.figures.interactive import curve_panels
from analysis.figures.style import line_styles
from analysis.groups import PARADIGM_ORDER, paradigm_order
from analysis.rendering import markdown
from analysis.section.blocks import Interactive, Text
from analysis.words import METRICS
from study.results import Results
from study.tasks import CAPTIONS
from tests.made_up.captions import make_caption_cell
from tests.made_up.comparisons import make_cell, make_text_cell, write, write_text

OWN = ("lvml-logits", "mine", "ours", "theirs", "yours")
"""Paradigms of a user, and one of the registered ones that no order names."""


@pytest.fixture
def varied(results: Results) -> Results:
    """Two paradigms with other heat maps on every seed, one of which diverged; a third is lost."""
    random = np.random.default_rng(0)
    for paradigm in ("lvml", "soft"):
        for seed in range(4):
            heatmap = random.dirichlet(np.full(25, 0.3))
            cell = make_cell(paradigm, seed=seed)
            write(results, cell, saif=heatmap[-1], heatmap=heatmap.tolist())
    for seed in range(4):
        write(results, make_cell("hard", seed=seed), status="diverged", points=(0.25,))
    write(results, make_cell("soft", seed=4), status="diverged", points=())
    return results


def _comparison(results: Results, threshold: float | None = None) -> Comparison:
    (comparison,) = compare(analysis.load(results), threshold=threshold)
    return comparison


def _block(comparison: Comparison) -> Interactive:
    (block,) = interactive_blocks([comparison])
    assert isinstance(block, Interactive)
    return block


@pytest.mark.parametrize("threshold", [0.2, 0.4, 0.6, 0.8])
def test_saif_is_that_of_a_report_at_the_threshold(varied: Results, threshold: float) -> None:
    """Also where seeds diverged, of which there are no heat maps."""
    usual, summary = _comparison(varied), _comparison(varied, threshold).summary
    shares = saif_by_threshold(usual.chosen, usual.choice, usual.task)
    found = shares[shares["threshold"] == threshold]
    assert found["paradigm"].tolist() == summary["paradigm"].tolist() == ["hard", "soft", "lvml"]
    assert found["num_seeds"].tolist() == summary["num_seeds"].tolist() == [4, 5, 4]
    expected = summary.set_axis(found.index)
    np.testing.assert_allclose(found["mean"], expected["saif"])
    varying = found["paradigm"] != "hard"  # seeds that all diverged agree, of which a t test is 0
    for end in ("low", "high"):
        np.testing.assert_allclose(found[end][varying], expected[f"saif_{end}"][varying])


@pytest.mark.parametrize("threshold", [None, 0.4])
def test_they_begin_as_the_tables_and_curves_are(varied: Results, threshold: float | None) -> None:
    comparison = _comparison(varied, threshold)
    (figures,) = _block(comparison).figures.values()
    (slider,) = figures.select({"type": CategoricalSlider})
    assert slider.value == f"{comparison.threshold:g}"
    (shown,) = figures.select({"name": "saif"})
    assert isinstance(shown, ColumnDataSource)
    summary = comparison.summary.set_index("paradigm")["saif"]
    means = dict(zip(shown.data["paradigm"], shown.data["mean"], strict=True))
    assert means == pytest.approx(dict(100 * summary))

    curves = [learning_curve(comparison.evaluations, metric) for metric in METRICS]
    legend, other = figures.select({"type": Legend})
    assert [item.label.value for item in legend.items] == ["hard", "soft", "lvml"]
    for item in legend.items:
        assert isinstance(item, LegendItem)
        colour = line_styles(["hard", "soft", "lvml"])[item.label.value].colour
        marks = [each for each in item.renderers if each.name == "hover"]
        for mark, curve in zip(marks, curves, strict=True):
            line = curve[curve["paradigm"] == item.label.value]
            np.testing.assert_array_equal(mark.data_source.data["mean"], 100 * line["mean"])
            assert mark.glyph.line_color == mark.glyph.fill_color == colour
    assert [item.renderers for item in other.items] == [item.renderers for item in legend.items]


def test_every_paradigm_has_its_look() -> None:
    names = [*PARADIGM_ORDER, *OWN]
    curve = pd.DataFrame({"paradigm": names, "compute_flops": 1e6, "budget_fraction": 1.0})
    curve = curve.assign(num_seeds=1, mean=0.5, low=np.nan, high=np.nan)
    (legend,) = curve_panels({"saif": curve}).select({"type": Legend})
    assert [item.label.value for item in legend.items] == paradigm_order(names)
    marks = [item.renderers[-1].glyph for item in legend.items]
    looks = {(mark.line_color, mark.marker) for mark in marks[: len(PARADIGM_ORDER) + 1]}
    assert len(looks) == len(PARADIGM_ORDER) + 1


def test_what_is_not_known_is_left_out(results: Results) -> None:
    """Posts without any rationale have accuracy alone; an option without numbers nothing."""
    shares = {"train": 0.0, "validation": 0.0, "test": 0.0}
    write_text(results, make_text_cell(), 0.5, np.nan, shares=shares)
    (figures,) = _block(_comparison(results)).figures.values()
    (panel,) = figures.select({"type": figure})
    assert panel.yaxis.axis_label == "accuracy (% of instances)"
    assert interactive_blocks([]) == []


def test_thresholds_are_those_of_the_task(results: Results) -> None:
    for seed in range(2):
        write(results, make_caption_cell(seed=seed), accuracy=0.2)
    (figures,) = _block(_comparison(results)).figures.values()
    (slider,) = figures.select({"type": CategoricalSlider})
    assert slider.categories == [f"{edge:g}" for edge in CAPTIONS.heatmap_edges[1:-1]]


def test_markdown_is_as_without_them(varied: Results) -> None:
    text = Text("below")
    assert markdown.render("", [_block(_comparison(varied)), text]) == markdown.render("", [text])
