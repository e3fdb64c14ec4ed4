"""Attention paths and trained networks in the report: words, pictures, summaries, verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.comparison.compare import compare, compare_results
from analysis.figures.attention_paths import Series, order_parameter_figure
from analysis.figures.heads import PUBLISHED, pruning_figure, scores_figure
from analysis.groups import is_compared, is_posterior
from analysis.kinds import find
from analysis.paths import tables
from analysis.paths.pruning import paired
from analysis.paths.section import PathsSection
from analysis.reading import cells_of
from study.results import Results, ResultsError
from tests.made_up import attention_path_results as paths
from tests.made_up import comparisons, heads_results
from tests.made_up.heads_results import train
from tests.made_up.summaries import NOTE, metrics_of

write = partial(paths.write, law=paths.Law())
score = partial(heads_results.write, law=heads_results.Law())


def only(results: Results) -> PathsSection:
    (section,) = find(results)
    assert isinstance(section, PathsSection)
    return section


def drawn(results: Results) -> list[str]:
    prefix = re.compile("attention-paths-|heads-")
    return [prefix.sub("", picture.name) for picture in only(results).pictures]


# --- beside what trains


def test_equal_compute_leaves_out_what_trains_nothing(results: Results) -> None:
    paths.write_study(results, paths.Law(), seeds=1)
    solved = analysis.load(results)
    assert compare_results(results) == compare(solved) == analysis.comparisons(solved) == []
    with pytest.raises(ResultsError, match="no cell of the table was trained"):
        analysis.equal_compute(solved)
    write(results, seed=1, status="diverged")
    comparisons.write(results, comparisons.make_cell("soft"))
    comparisons.write(results, comparisons.make_cell("hard"))
    cells, both = cells_of(results), analysis.load(results)
    assert (is_compared(cells).sum(), is_posterior(cells).sum()) == (2, len(cells) - 2)
    assert len(analysis.comparisons(both)) == len(compare(both)) == 1
    trained = set(both.loc[both["kind"] == "training", "cell_id"])
    assert set(analysis.equal_compute(both)["cell_id"]) == trained


# --- words


def test_cells_that_are_in_no_mean_are_named(results: Results) -> None:
    paths.write_study(results, paths.Law(), seeds=2)
    write(results, seed=5, status="diverged")
    write(results, method="slice", width=100.0, r_hat=1.4)
    write(results, method="slice", draws=10)
    text = only(results).text()
    assert "in no mean: theory N=10 seed 5 (the saddle's residual is 0.02)." in text
    assert "in no mean: slice N=100 (1 of its seeds)" in text
    assert "the cell with the most draws is shown; not shown: 1." in text


def test_an_interrupted_study_shows_its_networks_and_what_is_missing(results: Results) -> None:
    for seed in range(3):
        train(results, heads_results.Law(), seed, status="done" if seed < 2 else "diverged")
    section = only(results)
    text = section.text(published=True)
    assert "No heads are scored yet" in text
    assert "in no mean: seed 2 (loss is not finite)" in text
    assert {claim.verdict for claim in section.claims} == {"not run"}
    assert drawn(results) == []
    (summary,) = section.summaries()
    assert summary.params["paradigm"] == "soft"


def test_cells_without_numbers_are_named(results: Results) -> None:
    for seed in range(3):
        train(results, heads_results.Law(), seed)
    score(results, status="diverged")
    score(results, seed=1)
    score(results, method="random", status="diverged")
    text = only(results).text()
    for fact in (
        "no cell of limit, weight-norm, entropy, sensitivity, greedy and bound",
        "without a cell of theory N=10: networks of seed 2",
        "in no mean: theory N=10 seed 0",
        "without numbers: random seed 0",
    ):
        assert fact in text, fact


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("validation", ["theory N=10 the least", "theory N=100 the largest"]),
        ("published", ["theory N=10 the least", "theory N=100 the largest", "limit the least"]),
        ("fixed", []),
    ],
)
def test_a_temperature_at_an_end_of_its_grid_is_said(
    results: Results, choice: str, names: list[str]
) -> None:
    """As published, the limit has five of the ten."""
    law = heads_results.Law(choice=choice)
    tried = {
        ("theory", 10.0): 0.01,
        ("theory", 100.0): 1.5,
        ("theory", 1e3): 1.0,
        ("gp", 1.0): 0.02,
    }
    for (method, width), temperature in tried.items():
        chosen = 0.1 if choice == "fixed" else temperature
        heads_results.write(results, law, method, width, temperature=chosen)
    text = only(results).text()
    assert re.findall(r"([^,:]*) in 1 of 1 cell", text) == [f" {name}" for name in names]


def test_of_many_removed_heads_both_ends_are_shown() -> None:
    shown = tables.shown_counts(pd.Series(range(23)))
    assert (shown[0], shown[-1], len(shown)) == (0, 22, 9)


# --- pictures


@pytest.mark.parametrize(
    ("write", "cells", "expected"),
    [
        (write, [{"status": "diverged"}], ""),
        (write, [{"method": "gp"}], "accuracy"),
        (write, [{}], "accuracy order-parameter interplay"),
        (write, [{}, {"method": "gp"}], "accuracy order-parameter alignment interplay"),
        (score, [{"status": "diverged"}], ""),
        (score, [{"method": "random"}], "pruning"),
        (score, [{"method": "random"}, {}], "accuracy order-parameter pruning"),
    ],
)
def test_what_there_are_no_numbers_for_is_not_drawn(
    results: Results, write: Callable[..., str], cells: list[dict[str, str]], expected: str
) -> None:
    for cell in cells:
        write(results, **cell)
    assert drawn(results) == expected.split()


def test_many_widths_show_both_ends(results: Results) -> None:
    widths = [float(10 * i) for i in range(1, 13)]
    paths.write_study(results, paths.NOISY, seeds=1, widths=widths, sampled=())
    (picture,) = (p for p in only(results).pictures if p.name.endswith("parameter"))
    titles = [axes.get_title() for axes in picture.figure.axes]
    shown = [title for title in titles if title.startswith("N=")]
    assert (shown[0], shown[-1], len(shown)) == ("N=10", "N=120", 7)


@pytest.mark.parametrize(("size", "named"), [(1, 1), (4, 4), (16, 16), (64, 16)])
def test_matrices_share_one_scale_and_name_as_many_paths_as_have_room(
    size: int, named: int
) -> None:
    names = [f"path {i}" for i in range(size)]
    matrices = [np.eye(size), 20 * np.eye(size)]
    figure = order_parameter_figure({"theory": matrices}, ["N=1", "limit"], names)
    norms = [axes.images[0].norm for axes in figure.axes[:2]]
    assert {(norm.vmin, norm.vmax) for norm in norms} == {(-20, 20)}
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == names[:: size // named]


@pytest.mark.parametrize(
    ("largest", "labels"),
    [
        (0.4, "-0.4 0 0.4"),
        (1.2, "-1.2 0 1.2"),
        (2.938, "-2.94 -1 0 1 2.94"),
        (10.0, "-10 -1 0 1 10"),
        (25.0, "-25 -10 -1 0 1 10 25"),
    ],
)
def test_both_ends_of_the_colour_bar_are_named(largest: float, labels: str) -> None:
    matrix = largest * np.array([[0.1, -1], [-1, 0.1]])
    rows = {"theory": [matrix], "slice": [matrix / 2]}
    figure = order_parameter_figure(rows, ["N=1"], ["a", "b"])
    ticks = figure.axes[-1].get_yticklabels()
    assert [tick.get_text() for tick in ticks] == labels.split()


def series(means: Sequence[float], first: int = 0) -> Series:
    table = pd.DataFrame({"x": range(first, first + len(means)), "mean": means})
    return Series("name", table.assign(low=table["mean"] - 1, high=table["mean"] + 2))


def test_the_published_drops_are_marked() -> None:
    figure = scores_figure(series([0.5, 1.0], 1), series([1.0, 2.0], 1), [2.0, 0.8])
    above, below = figure.axes
    assert [bar.get_height() for bar in below.patches] == [1, 2]
    said = [text for marks in below.collections for text in marks.get_urls() if text]
    assert {f"{PUBLISHED}, 1: 2", f"{PUBLISHED}, 2: 0.8"} <= {*said}
    assert PUBLISHED in [line.get_label() for line in below.lines]
    assert PUBLISHED not in [line.get_label() for line in above.lines]


def test_lines_of_pruning_stand_beside_each_other_and_chance_below() -> None:
    lines = [series([80.0, 70.0]), series([80.0, 60.0])]
    figure = pruning_figure(lines, {"random": series([80.0, 65.0])}, series([80.0, 75.0]), 50)
    (axes,) = figure.axes
    starts = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_ydata())) == 2]
    assert {*map(float, starts)} == {-0.055, 0, 0.055}
    assert [50, 50] in [list(line.get_ydata()) for line in axes.lines]


# --- summaries


def test_each_network_has_a_summary(results: Results) -> None:
    paths.write_study(results, paths.Law(noise=0.0), seeds=2)
    runs = {run.name.partition(" n=2 ")[0]: run for run in only(results).summaries()}
    limits = [
        f"limit {which}" for which in ("all paths", "good path alone", "good and denoising path")
    ]
    solved = [f"theory N={width}" for width in (10, 100, 1000)]
    assert list(runs) == [*solved, "slice N=10", *limits]
    assert all("plain" in run.name for run in runs.values())
    theory, sampled = (metrics_of(runs[f"{method} N=10"]) for method in ("theory", "slice"))
    assert "P1 undecided" in runs["theory N=10"].tags[NOTE]
    assert theory["gain"] == pytest.approx(0.14)
    assert theory["largest_overlap"] == pytest.approx(0.8)
    assert sampled["r_hat"] == pytest.approx(1.001)
    assert "r_hat" not in theory


def test_each_method_and_width_has_a_summary(results: Results) -> None:
    heads_results.write_study(results, heads_results.Law(noise=1e-4), widths=(10.0, 100.0))
    runs = {run.name.partition(" n=6 ")[0]: run for run in only(results).summaries()}
    assert list(runs) == ["trained", "theory N=10", "theory N=100", "limit", *heads_results.RULES]
    assert all("omniglot" in run.name for run in runs.values())
    assert "P8 holds" in runs["theory N=10"].tags[NOTE]
    theory, random, limit = (metrics_of(runs[name]) for name in ("theory N=10", "random", "limit"))
    assert theory["gain"] == pytest.approx(0.03, abs=3e-4)
    assert theory["area"] - random["area"] == pytest.approx(0.04, abs=3e-4)
    assert "area" not in limit


# --- what must not decide


def test_nothing_is_decided_where_the_temperature_was_chosen_on_the_test_episodes(
    results: Results,
) -> None:
    rules = ("random", *heads_results.SIMPLE)
    law = heads_results.Law(choice="published")
    heads_results.write_study(results, law, widths=(10.0,), rules=rules)
    section = only(results)
    assert {claim.verdict for claim in section.claims} == {"undecided"}
    assert set(paired(section.setting)["verdict"]) == {"undecided"}
    assert "temperature was chosen on the test episodes" in section.text()


def test_cells_that_took_other_weights_apart_are_in_no_number(results: Results) -> None:
    for seed in range(3):
        train(results, heads_results.Law(), seed, network_digest="new")
        score(results, seed=seed, network_digest="new" if seed else "old")
        score(results, method="random", seed=seed, network_digest="new")
    section = only(results)
    found = paired(section.setting)
    assert found["num_pairs"].tolist() == [2, 2]
    assert found["num_lost"].tolist() == [1, 1]
    assert "other weights, so these cells are in no number: theory N=10 seed 0" in section.text()


@pytest.mark.parametrize(("lost", "verdict"), [(0, "better"), (2, "undecided")])
def test_lost_networks_count_against_a_verdict_and_leave_no_advice(
    results: Results, lost: int, verdict: str
) -> None:
    """The t test would ask for fewer networks than there are: the lost ones hold it up."""
    for seed in range(7 + lost):
        train(results, heads_results.Law(), seed, status="diverged" if seed > 6 else "done")
        for method in ("theory", "random") if seed < 7 else ():
            score(results, method=method, seed=seed)
    for row in paired(only(results).setting).to_dict("records"):
        assert (row["num_pairs"], row["num_lost"], row["verdict"]) == (7, lost, verdict)
        assert tables.would_decide(row) == "-"
