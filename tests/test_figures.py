"""Figures show the numbers they were given, and depend on nothing drawn before them."""

from __future__ import annotations

import io
import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import analysis
from analysis.compare import Comparison, compare
from analysis.figures import (
    compute_figure,
    figure_png,
    heatmap_figure,
    learning_curve,
    mean_heatmaps,
)
from study.results import Results
from tests.synthetic_results import BUDGET, NUM_CLASSES, POINTS, make_cell, make_results, write


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return make_results(tmp_path)


def _comparison(results: Results, budget: float | None = None) -> Comparison:
    (comparison,) = compare(analysis.load(results), budget)
    return comparison


def test_heat_map_has_foreground_attention_to_the_right_and_score_upwards() -> None:
    heatmap = np.arange(25).reshape(5, 5) / 300
    figure = heatmap_figure({"soft": heatmap}, "test split")
    (axes,) = figure.axes
    printed = {(t.get_position()[0], t.get_position()[1]): t.get_text() for t in axes.texts}
    assert printed[(4, 0)] == f"{100 * heatmap[4, 0]:.1f}"
    assert printed[(0, 4)] == f"{100 * heatmap[0, 4]:.1f}"
    np.testing.assert_array_equal(axes.images[0].get_array(), heatmap.T)
    assert axes.images[0].origin == "lower"
    assert axes.get_ylim()[0] < axes.get_ylim()[1]
    (outline,) = axes.patches
    assert (outline.get_x(), outline.get_y()) == (3.5, 3.5)


def test_one_panel_a_paradigm_in_order() -> None:
    heatmaps = {name: np.full((5, 5), 0.04) for name in ("lvml", "hard", "other>soft")}
    figure = heatmap_figure(heatmaps, "$ not mathematics $")
    assert [axes.get_title() for axes in figure.axes] == ["hard", "lvml", "other>soft"]
    figure_png(figure)


@pytest.mark.parametrize(("heatmaps", "message"), [({}, "none"), ({"soft": np.zeros(25)}, "25")])
def test_refuses_what_is_no_heat_map(heatmaps: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        heatmap_figure(heatmaps, "")


def test_mean_heat_map_is_over_the_seeds_of_the_chosen_option(results: Results) -> None:
    for seed, saif in enumerate((0.4, 0.6)):
        write(results, make_cell(lr=0.1, seed=seed), accuracy=0.9, saif=saif)
        write(results, make_cell(lr=0.2, seed=seed), accuracy=0.8, saif=0.9)
    write(results, make_cell(lr=0.1, seed=2), accuracy=1, status="diverged", points=(0.5,))
    write(results, make_cell(lr=0.2, seed=2), accuracy=0, saif=0)
    write(results, make_cell("hard"), status="diverged", points=())
    comparison = _comparison(results)
    heatmaps = mean_heatmaps(comparison.at_budget, comparison.choice)
    assert list(heatmaps) == ["soft"]
    assert heatmaps["soft"][4, 4] == pytest.approx(0.5)
    assert heatmaps["soft"].sum() == pytest.approx(1)


def test_curve_by_hand(results: Results) -> None:
    for seed, saif in enumerate((0.4, 0.6)):
        write(results, make_cell(seed=seed), saif=saif)
    curve = learning_curve(_comparison(results).evaluations, "saif")
    assert curve["budget_fraction"].tolist() == list(POINTS)
    assert curve["compute_flops"].tolist() == [BUDGET * point - 1 for point in POINTS]
    assert curve["mean"].tolist() == pytest.approx([0.5 * point for point in POINTS])
    assert (curve["num_seeds"] == 2).all()
    assert ((curve["low"] < curve["mean"]) & (curve["mean"] < curve["high"])).all()


def test_curve_ends_at_the_number_of_the_table(results: Results) -> None:
    for seed in range(3):
        write(results, make_cell("soft", seed=seed), saif=0.5 + 0.1 * seed)
    write(results, make_cell("soft", seed=3), status="diverged", points=(0.25, 0.5))
    write(results, make_cell("soft", seed=4), status="diverged", points=())
    for budget in (None, BUDGET / 2):
        comparison = _comparison(results, budget)
        for metric in ("saif", "accuracy"):
            last = learning_curve(comparison.evaluations, metric).iloc[-1]
            row = comparison.summary.iloc[0]
            assert last["mean"] == pytest.approx(row[metric])
            assert last["low"] == pytest.approx(row[f"{metric}_low"])
            assert last["num_seeds"] == row["num_seeds"] == 5


def test_curve_counts_a_diverged_cell_from_its_first_missing_evaluation(results: Results) -> None:
    write(results, make_cell(seed=0), accuracy=0.8)
    write(results, make_cell(seed=1), accuracy=0.8, status="diverged", points=(0.25, 0.5))
    curve = learning_curve(_comparison(results).evaluations, "accuracy")
    floor = 1 / NUM_CLASSES
    expected = [0.2, 0.4, (0.6 + floor) / 2, (0.8 + floor) / 2]
    assert curve["mean"].tolist() == pytest.approx(expected)


def test_curve_refuses_an_unknown_metric(results: Results) -> None:
    write(results, make_cell())
    with pytest.raises(ValueError, match="metric must be one of saif, accuracy, got 'loss'"):
        learning_curve(_comparison(results).evaluations, "loss")


def test_compute_figure_has_a_line_a_paradigm_that_can_be_told_apart_in_grey(
    results: Results,
) -> None:
    for paradigm in ("soft", "hard", "hybrid", "lvml", "hard-sampled"):
        for seed in range(2):
            write(results, make_cell(paradigm, seed=seed), saif=0.5 + 0.1 * seed)
    figure = compute_figure(_comparison(results).evaluations, "saif")
    (axes,) = figure.axes
    labels = [line.get_label() for line in axes.lines]
    assert labels == [f"{p} (n=2)" for p in ("hard", "soft", "hybrid", "lvml", "hard-sampled")]
    assert len({(line.get_linestyle(), line.get_marker()) for line in axes.lines}) == 5
    assert len({line.get_color() for line in axes.lines}) == 5
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(55)
    assert "FLOPs" in axes.get_xlabel()
    assert "%" in axes.get_ylabel()
    assert -2 <= axes.get_ylim()[0] < axes.get_ylim()[1] <= 102
    assert axes.lines[0].get_xdata()[-1] == pytest.approx((BUDGET - 1) / 1e5)


@pytest.mark.parametrize("points", [None, ()])
def test_compute_figure_of_one_seed_or_none_that_lived(
    results: Results, points: tuple[float, ...] | None
) -> None:
    write(results, make_cell(), status="done" if points is None else "diverged", points=points)
    assert figure_png(compute_figure(_comparison(results).evaluations, "accuracy"))


def test_png_is_the_same_for_the_same_figure_and_leaves_no_global_state() -> None:
    before = dict(mpl.rcParams)
    heatmaps = {"soft": np.full((5, 5), 0.04)}
    first, second = (figure_png(heatmap_figure(heatmaps, "test")) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert dict(mpl.rcParams) == before
    pixels = mpl.image.imread(io.BytesIO(first))
    assert math.prod(pixels.shape[:2]) > 100_000
