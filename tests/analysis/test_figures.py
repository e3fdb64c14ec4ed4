"""Figures show the numbers they were given, and depend on nothing drawn before them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.digest.compare import Comparison
from analysis.digest.means import heatmap_seeds, learning_curve, mean_heatmaps
from analysis.digest.responses import learning_rate_response, switch_response
from analysis.figures import (
    compute_figure,
    figure_pdf,
    figure_png,
    figure_svg,
    forest_figure,
    heatmap_figure,
    learning_rate_figure,
    metric_label,
    switch_figure,
)
from analysis.figures.factor_figures import grid_figure
from analysis.figures.marks import side_by_side
from analysis.figures.style import line_styles
from study.results import Results
from tests.made_up.comparisons import (
    NUM_CLASSES,
    POINTS,
    compared,
    make_cell,
    make_results,
    write,
)


@pytest.fixture(scope="module")
def of_two_seeds(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The evaluations of one option; at the end SAIF is .2 and .8."""
    results = make_results(tmp_path_factory.mktemp("two"))
    for seed in range(2):
        write(results, make_cell(seed=seed), saif=0.2 + 0.6 * seed)
    return compared(results).evaluations


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Three rates and two switch points, three seeds, scores all different."""
    results = make_results(tmp_path_factory.mktemp("searched"))
    scores = np.random.default_rng(0)
    points = {"hard": (0.2,), "soft": (0.2,), "hybrid": (0.2, 0.6), "lvml": (0.2,)}
    for paradigm, of_paradigm in points.items():
        for lr, point, seed in itertools.product((0.1, 0.2, 0.5), of_paradigm, range(3)):
            cell = make_cell(paradigm, lr, seed, switch_point=point)
            write(results, cell, *scores.uniform(0.4, 0.9, 2))
    return compared(results)


def _said(figure: Figure) -> list[str]:
    """What the marks of a figure say."""
    marks = [*figure.findobj(Collection), *figure.findobj(Line2D), *figure.findobj(Patch)]
    urls = [u for m in marks for u in (m.get_urls() if isinstance(m, Collection) else [m._url])]
    return [url for url in urls if url]


def _marks(axes: Axes) -> list[PathCollection]:
    return [each for each in axes.collections if isinstance(each, PathCollection)]


def test_heat_map_has_foreground_attention_to_the_right_and_score_upwards() -> None:
    heatmap = np.arange(1, 26).reshape(5, 5) / 325
    figure = heatmap_figure({"soft": heatmap}, threshold=0.6, seeds={"soft": 4})
    (axes,) = figure.axes
    (tiles,) = axes.collections
    shades, tile_says = tiles.get_facecolors()[:, 3], tiles.get_urls()
    printed = {text.get_position(): text.get_text() for text in axes.texts}
    for path, shade, said in zip(tiles.get_paths(), shades, tile_says, strict=True):
        a_z, s_y = map(int, path.vertices.min(axis=0))
        share = heatmap[a_z, s_y]
        assert shade == pytest.approx(share)
        assert printed[a_z + 0.5, s_y + 0.5] == f"{100 * share:.1f}"
        ends = [f"{0.2 * each:g} to {0.2 * (each + 1):g}" for each in (a_z, s_y)]
        assert said == f"a_z {ends[0]}, s_y {ends[1]}: {100 * share:.1f} %"
    assert axes.get_ylim()[0] < axes.get_ylim()[1]
    (outline,) = axes.patches
    assert (outline.get_x(), outline.get_y(), outline.get_width()) == (3, 3, 2)
    assert f"SAIF at threshold 0.6: {100 * heatmap[3:, 3:].sum():.1f} %" in _said(figure)


def test_mean_heat_map_is_over_the_seeds_of_the_chosen_option(results: Results) -> None:
    for seed, saif in enumerate((0.4, 0.6)):
        write(results, make_cell(lr=0.1, seed=seed), accuracy=0.9, saif=saif)
        write(results, make_cell(lr=0.2, seed=seed), accuracy=0.8, saif=0.9)
    for cell in (make_cell(lr=0.1, seed=2), make_cell("hard")):
        write(results, cell, status="diverged", points=())
    write(results, make_cell(lr=0.2, seed=2), accuracy=0, saif=0)
    found = compared(results)
    (heatmap,) = mean_heatmaps(found.chosen, found.choice).values()
    assert heatmap_seeds(found.chosen, found.choice) == {"soft": 2}
    assert (heatmap[4, 4], heatmap.sum()) == pytest.approx((0.5, 1))


@pytest.mark.parametrize("metric", ["saif", "accuracy"])
def test_curve_ends_at_the_number_of_the_table_and_counts_what_diverged(
    results: Results, metric: str
) -> None:
    """From its first missing evaluation on."""
    for seed in range(3):
        write(results, make_cell("soft", seed=seed), 0.8 + 0.02 * seed, 0.5 + 0.1 * seed)
    found = compared(results)
    curve, row = learning_curve(found.evaluations, metric), found.summary.iloc[0]
    last, ends = curve.iloc[-1], [metric, f"{metric}_low", "num_seeds"]
    assert last[["mean", "low", "num_seeds"]].tolist() == pytest.approx(row[ends].tolist())
    for seed, points in enumerate(((0.25, 0.5), ()), start=3):
        write(results, make_cell("soft", seed=seed), status="diverged", points=points)
    floor, end, of_lost = {"saif": (0, 0.6, 0.5), "accuracy": (1 / NUM_CLASSES, 0.82, 0.9)}[metric]
    on_the_way = [of_lost / 4, of_lost / 2, floor, floor]
    expected = [
        (3 * end * point + one + floor) / 5 for point, one in zip(POINTS, on_the_way, strict=True)
    ]
    curve = learning_curve(compared(results).evaluations, metric)
    assert curve["mean"].tolist() == pytest.approx(expected)


def test_a_line_ends_where_a_seed_has_no_evaluation(of_two_seeds: pd.DataFrame) -> None:
    """A mean over the faster seeds alone would look like progress; nor is one of unknowns any."""
    first, at = of_two_seeds["seed"] == 0, of_two_seeds["budget_fraction"]
    curve = learning_curve(of_two_seeds[~(first & at.eq(1))], "saif")
    assert curve["num_seeds"].tolist() == [2, 2, 2, 1]
    (line, _) = compute_figure(curve, "saif").axes[0].lines
    assert line.get_ydata() == pytest.approx([12.5, 25, 37.5])
    unknown = of_two_seeds.assign(accuracy=of_two_seeds["accuracy"].mask(first & at.eq(0.5)))
    curve = learning_curve(unknown, "accuracy")
    assert curve["mean"].isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("axis", "column", "whole", "scale", "unit"),
    [
        ("flops", "compute_flops", 9e5, 1e5, "10⁵ FLOPs"),
        ("mosaics", "mosaics_seen", 6_400, 1, "(mosaics)"),
        ("seconds", "train_seconds", 90_000, 3_600, "(h)"),
    ],
)
def test_curve_against_every_axis(
    of_two_seeds: pd.DataFrame, axis: str, column: str, whole: float, scale: float, unit: str
) -> None:
    """Seeds differ in what they cost; x is their mean."""
    spent = whole * of_two_seeds["budget_fraction"] * (0.5 + of_two_seeds["seed"])
    curve = learning_curve(of_two_seeds.assign(**{column: spent}), "saif", axis=axis)
    expected = [whole * point for point in POINTS]
    assert curve[column].tolist() == pytest.approx(expected)
    (axes,) = compute_figure(curve, "saif", axis=axis).axes
    assert axes.lines[0].get_xdata() * scale == pytest.approx(expected)
    assert unit in axes.get_xlabel()


def test_compute_figure_has_a_line_a_paradigm_that_can_be_told_apart_in_grey(
    searched: Comparison,
) -> None:
    ends = searched.chosen[searched.chosen["split"] == "test"]
    figure = compute_figure(learning_curve(searched.evaluations, "saif"), "saif", ends)
    (axes,) = figure.axes
    entries = [line for line in axes.lines if line.get_label().endswith("(n=3)")]
    names = searched.summary["paradigm"].tolist()
    assert [line.get_label() for line in entries] == [f"{name} (n=3)" for name in names]
    for looks in (Line2D.get_color, lambda line: (line.get_linestyle(), line.get_marker())):
        assert len({*map(looks, entries)}) == len(names)
    said = _said(figure)
    for row in ends.itertuples():
        assert f"{row.paradigm}, seed {row.seed}: {100 * row.saif:.4g} %" in said
    assert len(said) == len(names) * len(POINTS) + len(ends)
    styles = line_styles([*"gfedcba", "hard", "soft", "lvml", "hybrid"])
    assert list(styles)[:4] == ["hard", "soft", "hybrid", "lvml"]
    assert len({style.marker for style in styles.values()}) == len(styles)


def test_a_curve_shows_differences_and_every_seed_not_the_rise_from_chance(
    of_two_seeds: pd.DataFrame,
) -> None:
    curve = learning_curve(of_two_seeds, "accuracy").assign(mean=[0.1, 0.8, 0.82, 0.85])
    seeds = pd.DataFrame({"paradigm": "soft", "seed": [0, 1], "accuracy": [0.78, 0.92]})
    low, high = compute_figure(curve, "accuracy", seeds).axes[0].get_ylim()
    assert 75 < low < 78 < 92 < high < 95


@pytest.mark.parametrize(
    ("share", "limits"), [(0.0, (-0.04, 1.04)), (0.5, (48.92, 51.08)), (1.0, (98.96, 100.04))]
)
def test_a_measure_that_is_the_same_everywhere_is_drawn_within_0_and_100(
    of_two_seeds: pd.DataFrame, share: float, limits: tuple[float, float]
) -> None:
    curve = learning_curve(of_two_seeds, "saif").assign(mean=share, low=share, high=share)
    (axes,) = compute_figure(curve, "saif").axes
    assert axes.get_ylim() == pytest.approx(limits)


# --- responses and differences


def test_learning_rate_figure_shows_its_table(searched: Comparison) -> None:
    table = learning_rate_response(searched.at_budget, searched.options)
    figure = learning_rate_figure(table, "saif", threshold=0.6)
    (axes,), said = figure.axes, _said(figure)
    for row in table.to_dict("records"):
        mean, low, high = (f"{100 * row[name]:.4g}" for name in ("saif", "saif_low", "saif_high"))
        numbers = f"{row['lr']:g}: {mean} % ({low} to {high})"
        assert f"{row['paradigm']} (n=3), {numbers}" in said
        assert (f"{row['paradigm']}, chosen, {numbers}" in said) == row["chosen"]
    assert axes.get_ylabel() == metric_label("saif", 0.6)


def test_marks_move_only_where_two_would_hide_each_other() -> None:
    rates = [0.1, 0.1, 0.1, 0.5, 0.5]
    rows = pd.DataFrame({"x": rates, "mean": [50, 80, 50.5, 60, math.nan]})
    moved = side_by_side(rows, logarithmic=True)
    assert moved["at"].tolist() == rates
    first, second, third, alone, _ = moved["x"]
    assert first < 0.1 < third
    assert [second, alone, first * third] == pytest.approx([0.1, 0.5, 0.01])


def test_switch_figure_shows_its_table_and_the_levels_beside(searched: Comparison) -> None:
    table = switch_response(searched.at_budget, searched.options)
    (axes,) = switch_figure(table, searched.choice, "saif").axes
    marks, *_ = _marks(axes)
    np.testing.assert_allclose(
        marks.get_offsets(), np.stack([[20, 60], 100 * table["saif"]], axis=1)
    )
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    choice = searched.choice.set_index("paradigm")["validation_saif"]
    low, high = axes.get_ylim()
    for name in ("hard", "soft"):
        level, *_ = lines[f"{name}, chosen (n=3)"]
        assert level == pytest.approx(100 * choice[name])
        assert low < level < high


@pytest.mark.parametrize(
    "rates",
    [
        [0.1],
        [0.031, 0.032, 0.034, 0.047],
        np.geomspace(1e-14, 1e2, 12).tolist(),
    ],
)
def test_labels_of_learning_rates_stay_apart(rates: list[float]) -> None:
    one = {"task": "digits", "paradigm": "soft", "chosen": False, "num_seeds": 3}
    one |= {"saif": 0.5, "saif_low": 0.4, "saif_high": 0.6}
    figure = learning_rate_figure(pd.DataFrame({"lr": rates}).assign(**one), "saif")
    (axes,) = figure.axes
    figure_png(figure, dpi=100)
    labels = [label for label in axes.get_xticklabels() if label.get_text()]
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    assert boxes
    assert all(first.x1 <= second.x0 for first, second in itertools.pairwise(boxes))
    low, high = axes.get_xlim()
    assert low < min(rates) <= max(rates) < high


def _paired() -> pd.DataFrame:
    rows = [
        ("soft", "hard", 0.05, -0.01, 0.11, "undecided"),
        ("lvml", "hard", 0.2, 0.1, 0.3, "better"),
        ("lvml", "soft", 0.15, math.nan, math.nan, "undecided"),
        ("hybrid", "hard", -0.02, -0.03, -0.01, "worse"),
    ]
    names = ["first", "second", "difference", "low", "high", "verdict"]
    shared = {"task": "digits", "metric": "saif", "num_pairs": 6, "confidence": 0.95}
    return pd.DataFrame(rows, columns=names).assign(**shared)


def _of_seeds(differences: list[float]) -> pd.DataFrame:
    table = pd.DataFrame({"seed": range(len(differences)), "difference": differences})
    return table.assign(first="soft", second="hard")


def test_forest_shows_its_table_and_every_seed() -> None:
    table = _paired()
    figure = forest_figure(table, _of_seeds([-0.4, 0.5]), threshold=0.6)
    (axes,) = figure.axes
    pairs = [f"{first} − {second}" for first, second in table[["first", "second"]].to_numpy()]
    assert [label.get_text() for label in axes.get_yticklabels()] == pairs
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first pair is at the top
    zero, *lines = axes.lines
    assert list(zero.get_xdata()) == [0, 0]
    rows = table.to_dict("records")
    for interval, mark, row in zip(lines[::2], lines[1::2], rows, strict=True):
        drawn = [*interval.get_xdata(), *mark.get_xdata()]
        np.testing.assert_allclose(drawn, [100 * row[n] for n in ("low", "high", "difference")])
        is_open = mark.get_markerfacecolor() != mark.get_markeredgecolor()
        assert is_open == (row["verdict"] == "undecided")
    seeds, *_ = _marks(axes)
    np.testing.assert_allclose(seeds.get_offsets()[:, 0], [-40, 50])
    said = {"lvml − hard: +20.0 points (+10.0 to +30.0), better, n=6"}
    assert said | {"soft − hard, seed 0: -40.0 points"} <= {*_said(figure)}
    low, high = axes.get_xlim()
    assert low < -40 < 50 < high
    few = forest_figure(table.assign(low=-9.0, high=9.0))  # a difference is at most 100 points
    assert few.axes[0].get_xlim() == (-102, 102)


def test_a_grid_shows_that_a_difference_is_not_known() -> None:
    """As where a pair has no common seed yet."""
    grid = pd.DataFrame({"column": ["1", "2"], "difference": math.nan, "base": [True, False]})
    grid = grid.assign(row="batch", verdict="undecided")
    figure = grid_figure(grid, ("normalisation", ["batch"]), ("depth", ["1", "2"]), "SAIF")
    assert figure.axes[0].texts[-1].get_text() == "-\nundecided"


# --- files


@pytest.mark.parametrize(
    ("write_file", "start"), [(figure_png, b"\x89PNG"), (figure_pdf, b"%PDF")]
)
def test_a_file_is_the_same_for_the_same_figure_whatever_the_user_has_set(
    write_file: Callable[[Figure], bytes], start: bytes
) -> None:
    before = dict(mpl.rcParams)
    first = write_file(forest_figure(_paired()))
    with mpl.rc_context({"text.usetex": True, "savefig.facecolor": "red", "savefig.dpi": 9}):
        second = write_file(forest_figure(_paired()))
        assert mpl.rcParams["text.usetex"]
    assert first == second
    assert first.startswith(start)
    assert dict(mpl.rcParams) == before
    assert not re.search(b"CreationDate|/Type3", first)


def test_svg_is_a_part_of_a_page_in_which_every_mark_says_what_it_is() -> None:
    """Well-formed, without what would hold for the page around it, in the reader's colours."""
    hostile = "a<b> & \"c\" </svg> 'd'"
    table = _paired().replace({"soft": hostile})
    first, second, other = (
        figure_svg(forest_figure(each, _of_seeds([0.1]).replace({"soft": hostile})), salt)
        for each, salt in ((table, "one"), (table, "one"), (_paired(), "other"))
    )
    assert first == second
    root = ElementTree.fromstring(first)
    tags = {element.tag for element in root.iter()}
    assert not {"style", "script", "a", "metadata"} & tags
    titles = [element.text for element in root.iter("title")]
    assert f"{hostile} − hard, seed 0: +10.0 points" in titles
    shown = " ".join(element.text or "" for element in root.iter("text"))  # in lines
    assert f"{hostile} − hard" in shown
    assert "currentColor" in first
    assert "var(--back)" in first
    assert not re.search("#(000000|ffffff|555555)", first)
    ids = [{*re.findall(r'id="([^"]*)"', svg)} for svg in (first, other)]
    assert not ids[0] & ids[1]
    of_many = figure_svg(forest_figure(_paired(), _of_seeds([0.1] * 10_000)), "many")
    assert len(of_many) < 2 * len(first)  # or 10,000 cells would make a page of megabytes
    assert {*re.findall(r"#(\w+)\)?\"", first)} <= ids[0]
