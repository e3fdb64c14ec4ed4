"""Attention paths in the report: words, tables, pictures, summaries; beside what trains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.attention_paths.section import Paths
from analysis.comparison.compare import compare, compare_results
from analysis.figures.attention_paths import order_parameter_figure
from analysis.groups import is_compared, is_posterior
from analysis.kinds import find
from analysis.reading import cells_of
from study.results import Results, ResultsError
from tests.made_up import comparisons
from tests.made_up.attention_path_results import NOISY, Law, write, write_study
from tests.made_up.summaries import NOTE, metrics_of


def sections(results: Results) -> list[Paths]:
    found = find(results)
    assert all(isinstance(section, Paths) for section in found)
    return [section for section in found if isinstance(section, Paths)]


def only(results: Results) -> Paths:
    (section,) = sections(results)
    return section


def drawn(section: Paths) -> list[str]:
    return [picture.name.removeprefix("attention-paths-") for picture in section.pictures]


# --- beside what trains


def test_only_cells_that_solve_or_sample_are_of_this_kind(results: Results) -> None:
    comparisons.write(results, comparisons.make_cell())
    comparisons.write(results, comparisons.make_cell(alpha=0.4))
    write_study(results, Law(), seeds=1)
    cells = cells_of(results)
    assert (is_compared(cells).sum(), is_posterior(cells).sum()) == (1, len(cells) - 2)


def test_equal_compute_leaves_out_what_trains_nothing(results: Results) -> None:
    comparisons.write(results, comparisons.make_cell("soft"))
    comparisons.write(results, comparisons.make_cell("hard"))
    (alone,) = compare_results(results)
    cut = analysis.equal_compute(analysis.load(results))
    write_study(results, Law(), seeds=1)
    write(results, Law(), seed=1, status="diverged")
    both = analysis.load(results)
    assert len(analysis.comparisons(both)) == 1
    pd.testing.assert_frame_equal(
        analysis.equal_compute(both)[cut.columns], cut, check_dtype=False
    )
    for found in (compare_results(results), compare(both)):
        (comparison,) = found
        pd.testing.assert_frame_equal(comparison.summary, alone.summary, check_dtype=False)


def test_without_a_trained_cell_there_is_nothing_to_compare(results: Results) -> None:
    write_study(results, Law(), seeds=1)
    evaluations = analysis.load(results)
    assert compare_results(results) == []  # as of learning dynamics
    assert compare(evaluations) == []
    assert analysis.comparisons(evaluations) == []
    with pytest.raises(ResultsError, match="no cell of the table was trained"):
        analysis.equal_compute(evaluations)


# --- words


def test_cells_that_are_in_no_mean_are_named(results: Results) -> None:
    write_study(results, Law(), seeds=2)
    write(results, Law(), seed=5, status="diverged")
    write(results, Law(), "slice", 100.0, r_hat=1.4)
    write(results, Law(), "slice", 10.0, draws=10)
    text = only(results).text()
    assert "in no mean: theory N=10 seed 5 (the saddle's residual is 0.02)." in text
    assert "in no mean: slice N=100 (1 of its seeds)" in text
    assert "the cell with the most draws is shown; not shown: 1." in text


# --- pictures


def test_what_there_are_no_numbers_for_is_not_drawn(results: Results) -> None:
    write(results, Law(), status="diverged")
    assert only(results).pictures == []
    write(results, Law(), "gp")
    assert drawn(only(results)) == ["accuracy"]


def test_without_the_limit_nothing_stands_beside_the_kernel(results: Results) -> None:
    write(results, Law())
    assert drawn(only(results)) == ["accuracy", "order-parameter", "interplay"]
    write(results, Law(), "gp")
    assert drawn(only(results)) == ["accuracy", "order-parameter", "alignment", "interplay"]


def test_many_widths_show_both_ends(results: Results) -> None:
    widths = [float(10 * i) for i in range(1, 13)]
    write_study(results, NOISY, seeds=1, widths=widths, sampled=())
    (picture,) = (p for p in only(results).pictures if p.name.endswith("parameter"))
    titles = [axes.get_title() for axes in picture.figure.axes]
    shown = [title for title in titles if title.startswith("N=")]
    assert (shown[0], shown[-1], len(shown)) == ("N=10", "N=120", 7)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_matrices_share_one_scale(size: int) -> None:
    matrices: Sequence[np.ndarray] = [np.eye(size), 20 * np.eye(size)]
    names = [f"path {i}" for i in range(size)]
    figure = order_parameter_figure({"theory": matrices}, ["N=1", "limit"], names)
    images = [axes.images[0] for axes in figure.axes[:2]]
    assert {(image.norm.vmin, image.norm.vmax) for image in images} == {(-20, 20)}


@pytest.mark.parametrize(
    ("largest", "labels"),
    [
        (0.4, ["-0.4", "0", "0.4"]),
        (1.2, ["-1.2", "0", "1.2"]),
        (2.938, ["-2.94", "-1", "0", "1", "2.94"]),
        (10.0, ["-10", "-1", "0", "1", "10"]),
        (25.0, ["-25", "-10", "-1", "0", "1", "10", "25"]),
    ],
)
def test_both_ends_of_the_colour_bar_are_named(largest: float, labels: list[str]) -> None:
    matrix = largest * np.array([[0.1, -1], [-1, 0.1]])
    rows = {"theory": [matrix], "slice": [matrix / 2]}
    figure = order_parameter_figure(rows, ["N=1"], ["a", "b"])
    ticks = figure.axes[-1].get_yticklabels()
    assert [tick.get_text() for tick in ticks] == labels


# --- summaries


def test_each_network_has_a_summary(results: Results) -> None:
    write_study(results, Law(noise=0.0), seeds=2)
    section = only(results)
    runs = {run.name.partition(" n=2 ")[0]: run for run in section.summaries()}
    assert list(runs) == [
        "theory N=10",
        "theory N=100",
        "theory N=1000",
        "slice N=10",
        "limit all paths",
        "limit good path alone",
        "limit good and denoising path",
    ]
    assert all("plain" in run.name for run in runs.values())
    theory, sampled = (metrics_of(runs[f"{method} N=10"]) for method in ("theory", "slice"))
    assert "P1 undecided" in runs["theory N=10"].tags[NOTE]
    assert theory["gain"] == pytest.approx(0.14)
    assert theory["largest_overlap"] == pytest.approx(0.8)
    assert theory["n"] == 2
    assert sampled["r_hat"] == pytest.approx(1.001)
    assert "r_hat" not in theory
