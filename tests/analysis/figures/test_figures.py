"""Figures show the numbers they were given, and depend on nothing drawn before them."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.artist import Artist
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from analysis.digest.choose import response
from analysis.digest.compare import Comparison
from analysis.digest.means import heatmap_seeds, learning_curve, mean_heatmaps
from analysis.figures import (
    compute_figure,
    figure_pdf,
    figure_png,
    figure_svg,
    forest_figure,
    heatmap_figure,
    response_figure,
)
from analysis.figures.style import line_styles
from tests.made_up.comparisons import (
    NUM_CLASSES,
    POINTS,
    compared,
    make_cell,
    make_results,
    write,
)


@pytest.fixture(scope="module")
def of_two_seeds(tmp_path_factory) -> pd.DataFrame:
    """The evaluations of one option; at the end SAIF is .2 and .8."""
    results = make_results(tmp_path_factory.mktemp("two"))
    for seed in range(2):
        write(results, make_cell(seed=seed), saif=0.2 + 0.6 * seed)
    return compared(results).evaluations


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Comparison:
    """Three rates and two switch points, three seeds, scores all different."""
    results = make_results(tmp_path_factory.mktemp("searched"))
    scores = np.random.default_rng(0)
    points = {"hard": (0.2,), "soft": (0.2,), "hybrid": (0.2, 0.6), "lvml": (0.2,)}
    for paradigm, of_paradigm in points.items():
        for lr, point, seed in itertools.product((0.1, 0.2, 0.5), of_paradigm, range(3)):
            cell = make_cell(paradigm, lr, seed, switch_point=point)
            write(results, cell, *scores.uniform(0.4, 0.9, 2))
    return compared(results)


def _said(figure: Figure) -> set[str]:
    """What the marks of a figure say."""
    urls = [
        url
        for artist in figure.findobj(Artist)
        for url in (artist.get_url(), *(getattr(artist, "get_urls", list)() or ()))
    ]
    return {*filter(None, urls)}


def _marks(figure: Figure) -> list[PathCollection]:
    return [each for each in figure.axes[0].collections if isinstance(each, PathCollection)]


def test_heat_map_has_foreground_attention_to_the_right_and_score_upwards():
    heatmap = np.arange(1, 26).reshape(5, 5) / 325
    figure = heatmap_figure({"soft": heatmap}, threshold=0.6)
    (axes,) = figure.axes
    *tiles, outline = axes.patches
    for tile, text in zip(tiles, axes.texts, strict=True):
        a_z, s_y = tile.get_xy()
        assert text.get_position() == (a_z + 0.5, s_y + 0.5)
        assert text.get_text() == f"{100 * heatmap[a_z, s_y]:.1f}"
        assert tile.get_facecolor()[-1] == pytest.approx(heatmap[a_z, s_y])
    assert len({tile.get_xy() for tile in tiles}) == heatmap.size
    assert axes.get_ylim() == (0, 5)
    assert outline.get_bbox().bounds == (3, 3, 2, 2)
    assert _said(figure) == {f"SAIF at threshold 0.6: {100 * heatmap[3:, 3:].sum():.1f} %"}


def test_mean_heat_map_is_over_the_seeds_of_the_chosen_option(results):
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


def test_curve_ends_at_the_number_of_the_table_and_counts_what_diverged(
    results,
):
    """From its first missing evaluation on, as a guess."""
    for seed in range(3):
        write(results, make_cell("soft", seed=seed), 0.8 + 0.02 * seed)
    found = compared(results)
    last, row = learning_curve(found.evaluations, "accuracy").iloc[-1], found.summary.iloc[0]
    assert (last["mean"], last["low"]) == pytest.approx((row["accuracy"], row["accuracy_low"]))
    for seed, points in enumerate(((0.25, 0.5), ()), start=3):
        write(results, make_cell("soft", seed=seed), status="diverged", points=points)
    curve = learning_curve(compared(results).evaluations, "accuracy")
    done, guess = [3 * 0.82 * point for point in POINTS], 1 / NUM_CLASSES
    lost = [0.9 / 4 + guess, 0.9 / 2 + guess, 2 * guess, 2 * guess]
    assert 5 * curve["mean"].to_numpy() == pytest.approx(np.add(done, lost))


def test_a_line_ends_where_a_seed_has_no_evaluation(of_two_seeds):
    """A mean over the faster seeds alone would look like progress; nor is one of unknowns any."""
    first, at = of_two_seeds["seed"] == 0, of_two_seeds["budget_fraction"]
    curve = learning_curve(of_two_seeds[~(first & at.eq(1))], "saif")
    assert curve["num_seeds"].tolist() == [2, 2, 2, 1]
    (line, _) = compute_figure(curve, "SAIF").axes[0].lines
    assert line.get_ydata() == pytest.approx([12.5, 25, 37.5])
    unknown = of_two_seeds.assign(accuracy=of_two_seeds["accuracy"].mask(first & at.eq(0.5)))
    curve = learning_curve(unknown, "accuracy")
    assert curve["mean"].isna().tolist() == [False, True, False, False]


def test_compute_figure_shows_every_paradigm_and_seed_but_not_the_rise_from_chance(
    searched,
):
    ends = searched.chosen[searched.chosen["split"] == "test"]
    ends = ends.assign(score=ends["saif"])
    figure = compute_figure(learning_curve(searched.evaluations, "saif"), "SAIF", ends)
    names = searched.summary["paradigm"].tolist()
    assert [text.get_text() for text in figure.legends[0].texts] == [f"{n} (n=3)" for n in names]
    said = _said(figure)
    assert len(said) == len(names) * len(POINTS) + len(ends)
    for row in ends.itertuples():
        assert f"{row.paradigm}, seed {row.seed}: {100 * row.saif:.4g} %" in said
    low, high = figure.axes[0].get_ylim()
    assert 0 < low < 100 * ends["saif"].min() < 100 * ends["saif"].max() < high


def test_paradigms_can_be_told_apart_in_grey():
    styles = line_styles([*"gfedcba", "hard", "soft", "lvml", "hybrid"])
    assert list(styles)[:4] == ["hard", "soft", "hybrid", "lvml"]
    assert len({style.marker for style in styles.values()}) == len(styles)


# --- responses and differences


@pytest.mark.parametrize(("axis", "unit"), [("lr", 1), ("switch_point", 100)])
def test_response_figure_shows_its_table_and_the_levels_beside(searched, axis, unit):
    table = response(searched.at_budget, searched.options, axis)
    beside = searched.choice[searched.choice["paradigm"] == "soft"]
    figure = response_figure(table, axis, "saif", "SAIF (%)", beside)
    said = _said(figure)
    marks = _marks(figure)
    heights = np.concatenate([each.get_offsets()[:, 1] for each in marks])
    filled = np.concatenate([each.get_facecolors()[:, :3].min(axis=1) < 1 for each in marks])
    assert dict(zip(heights, filled, strict=True)) == dict(
        zip(100 * table["saif"], table["chosen"], strict=True)
    )
    for row in table.to_dict("records"):
        mean, low, high = (f"{100 * row[name]:.4g}" for name in ("saif", "saif_low", "saif_high"))
        chosen = ", chosen" if row["chosen"] else ""
        numbers = f"{unit * row[axis]:g}{chosen}: {mean} % ({low} to {high})"
        assert f"{row['paradigm']} (n=3), {numbers}" in said
    assert f"soft, chosen: {100 * beside['validation_saif'].iloc[0]:.4g} %" in said


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


def test_forest_shows_its_table_and_every_seed():
    table = _paired()
    figure = forest_figure(table, _of_seeds([-0.4, 0.5]))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "soft − hard", "lvml − hard", "lvml − soft", "hybrid − hard",
    ]  # fmt: skip
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first pair is at the top
    decided, undecided, seeds = (each.get_offsets() for each in _marks(figure))
    np.testing.assert_allclose(decided, [[20, 1], [-2, 3]])
    np.testing.assert_allclose(undecided, [[5, 0], [15, 2]])
    np.testing.assert_allclose(seeds[:, 0], [-40, 50])
    said = {"lvml − hard: +20.0 points (+10.0 to +30.0), better, n=6"}
    assert said | {"soft − hard, seed 0: -40.0 points"} <= _said(figure)
    low, high = axes.get_xlim()
    assert low < -40 < 50 < high
    few = forest_figure(table.assign(low=-9.0, high=9.0))  # a difference is at most 100 points
    assert few.axes[0].get_xlim() == (-102, 102)


# --- files


@pytest.mark.parametrize(
    ("write_file", "start"), [(figure_png, b"\x89PNG"), (figure_pdf, b"%PDF")]
)
def test_a_file_is_the_same_for_the_same_figure_whatever_the_user_has_set(write_file, start):
    before = dict(mpl.rcParams)
    first = write_file(forest_figure(_paired()))
    with mpl.rc_context({"text.usetex": True, "savefig.facecolor": "red", "savefig.dpi": 9}):
        second = write_file(forest_figure(_paired()))
        assert mpl.rcParams["text.usetex"]
    assert first == second
    assert first.startswith(start)
    assert dict(mpl.rcParams) == before
    assert not re.search(b"CreationDate|/Type3", first)


def test_svg_is_a_part_of_a_page_in_which_every_mark_says_what_it_is():
    """Well-formed, without what would hold for the page around it, in the reader's colours."""
    hostile = "a<b> & \"c\" </svg> 'd'"
    table, seeds = (each.replace({"soft": hostile}) for each in (_paired(), _of_seeds([0.1])))
    first, second, other = (figure_svg(forest_figure(table, seeds), salt) for salt in "aab")
    assert first == second
    root = ElementTree.fromstring(first)
    assert not {"style", "script", "a", "metadata"} & {element.tag for element in root.iter()}
    titles = [element.text for element in root.iter("title")]
    assert f"{hostile} − hard, seed 0: +10.0 points" in titles
    shown = " ".join(element.text or "" for element in root.iter("text"))  # in lines
    assert f"{hostile} − hard" in shown
    assert "currentColor" in first
    assert "var(--back)" in first
    assert not re.search("#(000000|ffffff|555555)", first)
    ids = [{*re.findall(r'id="([^"]*)"', svg)} for svg in (first, other)]
    assert not ids[0] & ids[1]
    assert {*re.findall(r"#(\w+)\)?\"", first)} <= ids[0]
    of_many = figure_svg(forest_figure(_paired(), _of_seeds([0.1] * 10_000)), "many")
    assert len(of_many) < 2 * len(first)  # or 10,000 cells would make a page of megabytes
