"""Figures show the numbers they were given, and depend on nothing drawn before them."""

from __future__ import annotations

import io
import itertools
import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import analysis
from analysis.comparison.compare import Comparison, compare
from analysis.comparison.curves import learning_curve
from analysis.comparison.heat_maps import heatmap_seeds, mean_heatmaps
from analysis.comparison.responses import learning_rate_response, switch_response
from analysis.figures import (
    compute_figure,
    figure_pdf,
    figure_png,
    forest_figure,
    heatmap_figure,
    learning_rate_figure,
    metric_label,
    switch_figure,
)
from analysis.figures.style import line_styles
from study.results import Results
from tests.made_up.comparisons import BUDGET, NUM_CLASSES, POINTS, make_cell, make_results, write


def _comparison(results: Results, budget: float | None = None) -> Comparison:
    (comparison,) = compare(analysis.load(results), budget)
    return comparison


@pytest.fixture(scope="module")
def of_two_seeds(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The evaluations of one option, two seeds with the same scores."""
    results = make_results(tmp_path_factory.mktemp("two"))
    for seed in range(2):
        write(results, make_cell(seed=seed))
    return _comparison(results).evaluations


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
    heatmaps = mean_heatmaps(comparison.chosen, comparison.choice)
    assert list(heatmaps) == ["soft"]
    assert heatmap_seeds(comparison.chosen, comparison.choice) == {"soft": 2}
    assert heatmaps["soft"][4, 4] == pytest.approx(0.5)
    assert heatmaps["soft"].sum() == pytest.approx(1)


def test_curve_ends_at_the_number_of_the_table(results: Results) -> None:
    for seed in range(3):
        write(results, make_cell("soft", seed=seed), 0.8 + 0.02 * seed, 0.5 + 0.1 * seed)
    for budget in (None, BUDGET / 2):
        if budget is not None:  # seeds that fall apart have no band
            write(results, make_cell("soft", seed=3), status="diverged", points=(0.25,))
            write(results, make_cell("soft", seed=4), status="diverged", points=())
        comparison = _comparison(results, budget)
        for metric in ("saif", "accuracy"):
            last = learning_curve(comparison.evaluations, metric).iloc[-1]
            row = comparison.summary.iloc[0]
            assert last["mean"] == pytest.approx(row[metric])
            assert last["low"] == pytest.approx(row[f"{metric}_low"], nan_ok=True)
            assert last["num_seeds"] == row["num_seeds"] == (3 if budget is None else 5)


def test_curve_counts_a_diverged_cell_from_its_first_missing_evaluation(results: Results) -> None:
    write(results, make_cell(seed=0), accuracy=0.8)
    write(results, make_cell(seed=1), accuracy=0.8, status="diverged", points=(0.25, 0.5))
    curve = learning_curve(_comparison(results).evaluations, "accuracy")
    floor = 1 / NUM_CLASSES
    expected = [0.2, 0.4, (0.6 + floor) / 2, (0.8 + floor) / 2]
    assert curve["mean"].tolist() == pytest.approx(expected)


def test_curve_keeps_what_is_not_known(of_two_seeds: pd.DataFrame) -> None:
    evaluations = of_two_seeds.copy()
    half = (evaluations["seed"] == 0) & (evaluations["budget_fraction"] == 0.5)
    evaluations.loc[half, "accuracy"] = math.nan
    curve = learning_curve(evaluations, "accuracy")
    assert curve["mean"].isna().tolist() == [False, True, False, False]
    assert curve["num_seeds"].tolist() == [2] * 4
    figure_png(compute_figure(learning_curve(evaluations, "accuracy"), "accuracy"), dpi=40)


def test_a_line_ends_where_a_seed_has_no_evaluation(results: Results) -> None:
    """A mean over the faster seeds alone would look like progress."""
    for seed in range(2):
        write(results, make_cell(seed=seed), saif=0.2 + 0.6 * seed)
    evaluations = _comparison(results).evaluations
    late = (evaluations["seed"] == 0) & (evaluations["budget_fraction"] == 1)
    curve = learning_curve(evaluations[~late], "saif")
    assert curve["num_seeds"].tolist() == [2, 2, 2, 1]
    assert curve["num_cells"].tolist() == [2] * 4
    figure = compute_figure(curve, "saif")
    (line,) = figure.axes[0].lines
    assert line.get_ydata() == pytest.approx([12.5, 25, 37.5])
    assert "all seeds" in figure.get_supxlabel()


@pytest.mark.parametrize(
    ("axis", "column", "unit"),
    [
        ("flops", "compute_flops", "10^{5}$ FLOPs"),
        ("seconds", "train_seconds", "training time (s)"),
        ("mosaics", "mosaics_seen", "(mosaics)"),
    ],
)
def test_curve_against_every_axis(
    of_two_seeds: pd.DataFrame, axis: str, column: str, unit: str
) -> None:
    # Seeds differ in what they cost; x is their mean.
    evaluations = of_two_seeds.assign(
        train_seconds=of_two_seeds["train_seconds"] * (1 + 2 * of_two_seeds["seed"])
    )
    curve = learning_curve(evaluations, "saif", axis=axis)
    expected = {
        "flops": [BUDGET * point - 1 for point in POINTS],
        "seconds": [2 * 2.5 * point for point in POINTS],
        "mosaics": [6_400 * point for point in POINTS],
    }
    assert curve[column].tolist() == pytest.approx(expected[axis])
    (axes,) = compute_figure(curve, "saif", axis=axis).axes
    scale = 1e5 if axis == "flops" else 1
    assert axes.lines[0].get_xdata() * scale == pytest.approx(expected[axis])
    assert unit in axes.get_xlabel()


@pytest.mark.parametrize(
    ("seconds", "factor", "unit"), [(100, 1, "(s)"), (1_000, 60, "(min)"), (90_000, 3_600, "(h)")]
)
def test_long_times_are_in_minutes_and_hours(
    of_two_seeds: pd.DataFrame, seconds: float, factor: float, unit: str
) -> None:
    evaluations = of_two_seeds.assign(train_seconds=float(seconds))
    curve = learning_curve(evaluations, "saif", axis="seconds")
    (axes,) = compute_figure(curve, "saif", axis="seconds").axes
    assert axes.lines[0].get_xdata()[0] == pytest.approx(seconds / factor)
    assert unit in axes.get_xlabel()


def test_curve_refuses_an_unknown_metric(of_two_seeds: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="evaluations must have the metric, got 'dice'"):
        learning_curve(of_two_seeds, "dice")


def test_compute_figure_has_a_line_a_paradigm_that_can_be_told_apart_in_grey(
    results: Results,
) -> None:
    for paradigm in ("soft", "hard", "hybrid", "lvml", "hard-sampled"):
        for seed in range(2):
            write(results, make_cell(paradigm, seed=seed), saif=0.5 + 0.1 * seed)
    figure = compute_figure(learning_curve(_comparison(results).evaluations, "saif"), "saif")
    (axes,) = figure.axes
    labels = [line.get_label() for line in axes.lines]
    assert labels == [f"{p} (n=2)" for p in ("hard", "hard-sampled", "soft", "hybrid", "lvml")]
    assert len({(line.get_linestyle(), line.get_marker()) for line in axes.lines}) == 5
    assert len({line.get_color() for line in axes.lines}) == 5
    assert axes.get_legend() is None  # it stands above the panel, not over the data
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(55)
    assert -2 <= axes.get_ylim()[0] < axes.get_ylim()[1] <= 102


# --- heat maps at another threshold, and what styles promise


def test_another_threshold_outlines_what_belongs_to_it() -> None:
    heatmap = np.arange(25).reshape(5, 5) / 300
    figure = heatmap_figure({"soft": heatmap}, "test split", threshold=0.6, seeds={"soft": 4})
    (outline,) = figure.axes[0].patches
    assert (outline.get_x(), outline.get_y(), outline.get_width()) == (2.5, 2.5, 2)
    assert "threshold 0.6" in figure.get_supxlabel()
    assert figure.axes[0].get_title() == "soft (n=4), test split"


def test_label_says_the_threshold_only_where_it_is_not_the_usual_one() -> None:
    assert metric_label("saif") == "SAIF (% of instances)"
    assert metric_label("saif", 0.6) == "SAIF at threshold 0.6 (% of instances)"
    assert metric_label("accuracy", 0.6) == "accuracy (% of instances)"
    assert metric_label("pointing_game") == "pointing game (%)"


def test_ten_paradigms_differ_in_marker_and_in_colour_with_dashes() -> None:
    styles = line_styles([*"gfedcba", "hard", "soft", "lvml", "hybrid"])
    assert list(styles)[:4] == ["hard", "soft", "hybrid", "lvml"]
    assert len({style.marker for style in styles.values()}) == len(styles)


# --- responses and differences


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Three rates and two switch points, three seeds, scores all different."""
    results = make_results(tmp_path_factory.mktemp("searched"))
    scores = np.random.default_rng(0)
    for paradigm, lr, point, seed in itertools.product(
        ("hard", "soft", "hybrid", "lvml"), (0.1, 0.2, 0.5), (0.2, 0.6), range(3)
    ):
        if paradigm == "hybrid" or point == 0.2:
            cell = make_cell(paradigm, lr, seed, switch_point=point)
            write(results, cell, *scores.uniform(0.4, 0.9, 2))
    return _comparison(results)


def _axes(figure: Figure) -> Axes:
    (axes,) = figure.axes
    figure_png(figure, dpi=40)  # drawn without a warning
    return axes


@pytest.mark.parametrize("metric", ["saif", "accuracy"])
def test_learning_rate_figure_shows_its_table(searched: Comparison, metric: str) -> None:
    table = learning_rate_response(searched.at_budget, searched.options)
    axes = _axes(learning_rate_figure(table, metric, threshold=0.6))
    for container, (name, line) in zip(
        axes.containers, table.groupby("paradigm", sort=False), strict=True
    ):
        assert container.get_label() == f"{name} (n=3)"
        points, _, (bars,) = container
        assert points.get_xdata() == pytest.approx(line["lr"].tolist())
        assert points.get_ydata() == pytest.approx((100 * line[metric]).tolist())
        ends = np.array(bars.get_segments())[:, :, 1].T
        assert ends[0] == pytest.approx((100 * line[f"{metric}_low"]).tolist())
        assert ends[1] == pytest.approx((100 * line[f"{metric}_high"]).tolist())
    filled = [line for line in axes.lines if line.get_linestyle() == "None"]
    chosen = table[table["chosen"]]
    assert [line.get_xdata()[0] for line in filled] == chosen["lr"].tolist()
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "0.2", "0.5"]
    assert axes.get_ylabel() == metric_label(metric, 0.6)


def test_switch_figure_shows_its_table_and_the_levels_beside(searched: Comparison) -> None:
    table = switch_response(searched.at_budget, searched.options)
    axes = _axes(switch_figure(table, searched.choice, "saif"))
    (container,) = axes.containers
    assert container[0].get_xdata() == pytest.approx([20, 60])
    assert container[0].get_ydata() == pytest.approx((100 * table["saif"]).tolist())
    levels = {
        line.get_label(): line.get_ydata()[0]
        for line in axes.lines
        if "chosen" in line.get_label()
    }
    choice = searched.choice.set_index("paradigm")["validation_saif"]
    assert levels == pytest.approx(
        {f"{name}, chosen (n=3)": 100 * choice[name] for name in ("hard", "soft")}
    )
    low, high = axes.get_ylim()
    assert all(low < value < high for value in levels.values())
    assert axes.get_xlabel() == "switch point (% of the budget)"


def _overlaps(axes: Axes) -> int:
    """Pairs of neighbouring labels of the x axis that touch."""
    figure = axes.figure
    figure_png(figure, dpi=100)
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    boxes = sorted(boxes, key=lambda box: box.x0)
    return sum(first.x1 > second.x0 for first, second in itertools.pairwise(boxes))


@pytest.mark.parametrize(
    "rates",
    [
        [0.1],
        [0.1, 0.101],
        [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
        [0.031, 0.032, 0.034, 0.047],
        np.geomspace(1e-4, 1, 12).tolist(),
        np.geomspace(1e-14, 1e2, 12).tolist(),
    ],
)
def test_labels_of_learning_rates_stay_apart(rates: list[float]) -> None:
    table = pd.DataFrame({"lr": rates}).assign(
        task="digits", paradigm="soft", chosen=False, num_seeds=3
    )
    table[["saif", "saif_low", "saif_high"]] = (0.5, 0.4, 0.6)
    axes = learning_rate_figure(table, "saif").axes[0]
    assert _overlaps(axes) == 0
    assert any(label.get_text() for label in axes.get_xticklabels())
    low, high = axes.get_xlim()
    assert low < min(rates) <= max(rates) < high


SPREADS = ("seed_se", "image_se", "background_se")


def _paired() -> pd.DataFrame:
    rows = [
        ("saif", "soft", "hard", 0.05, -0.01, 0.11, 0.02, 0.01, 0.005, "undecided"),
        ("saif", "lvml", "hard", 0.2, 0.1, 0.3, 0.03, 0.02, 0.01, "better"),
        ("saif", "lvml", "soft", 0.15, *[math.nan] * 5, "undecided"),
        ("accuracy", "soft", "hard", -0.02, -0.03, -0.01, 0.004, math.nan, math.nan, "worse"),
        ("accuracy", "lvml", "hard", *[math.nan] * 6, "undecided"),
    ]  # fmt: skip
    names = ["metric", "first", "second", "difference", "low", "high", *SPREADS]
    return pd.DataFrame(rows, columns=[*names, "verdict"]).assign(
        task="digits", num_pairs=6, confidence=0.95
    )


def test_forest_shows_its_table() -> None:
    table = _paired()
    figure = forest_figure(table, threshold=0.6)
    figure_png(figure, dpi=40)
    saif, accuracy = figure.axes
    assert [label.get_text() for label in saif.get_yticklabels()] == [
        "soft − hard", "lvml − hard", "lvml − soft",
    ]  # fmt: skip
    assert saif.get_ylim()[0] > saif.get_ylim()[1]  # the first pair is at the top
    for axes, metric in ((saif, "saif"), (accuracy, "accuracy")):
        rows = table[table["metric"] == metric].to_dict("records")
        zero, *lines = axes.lines
        assert list(zero.get_xdata()) == [0, 0]
        of_rows = [lines[place : place + 5] for place in range(0, len(lines), 5)]
        for (interval, *spreads, mark), row in zip(of_rows, rows, strict=True):
            expected = 100 * np.array([row["low"], row["high"]])
            np.testing.assert_allclose(interval.get_xdata(), expected)
            for spread, name in zip(spreads, SPREADS, strict=True):
                expected = 100 * (row["difference"] + np.array([-row[name], row[name]]))
                np.testing.assert_allclose(spread.get_xdata(), expected)
                assert spread.get_linewidth() < interval.get_linewidth()
            np.testing.assert_allclose(mark.get_xdata(), 100 * row["difference"])
            assert mark.get_marker() == {"better": ">", "worse": "<"}.get(row["verdict"], "o")
            assert (mark.get_markerfacecolor() == "white") == (row["verdict"] == "undecided")
    assert "SAIF at threshold 0.6" in saif.get_xlabel()
    assert saif.get_xlim()[0] < -1
    assert saif.get_xlim()[1] > 30


def test_forest_of_few_seeds_keeps_to_what_a_difference_can_be() -> None:
    table = _paired().assign(low=-9.0, high=9.0)
    for axes in forest_figure(table).axes:
        assert axes.get_xlim() == (-102, 102)


def test_forest_refuses_no_pairs() -> None:
    with pytest.raises(ValueError, match="none"):
        forest_figure(_paired().iloc[:0])


# --- files


def test_pdf_is_the_same_for_the_same_figure_and_has_no_date() -> None:
    before = dict(mpl.rcParams)
    first, second = (figure_pdf(forest_figure(_paired())) for _ in range(2))
    assert first == second
    assert first.startswith(b"%PDF")
    assert b"CreationDate" not in first
    assert b"/Type3" not in first
    assert dict(mpl.rcParams) == before


def test_png_is_the_same_for_the_same_figure_and_leaves_no_global_state() -> None:
    before = dict(mpl.rcParams)
    heatmaps = {"soft": np.full((5, 5), 0.04)}
    first = figure_png(heatmap_figure(heatmaps, "test"))
    with mpl.rc_context({"text.usetex": True, "savefig.facecolor": "red", "savefig.dpi": 9}):
        second = figure_png(heatmap_figure(heatmaps, "test"))
        assert mpl.rcParams["text.usetex"]
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert dict(mpl.rcParams) == before
    pixels = mpl.image.imread(io.BytesIO(first))
    assert math.prod(pixels.shape[:2]) > 100_000
