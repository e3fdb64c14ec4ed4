"""One-shot images in the report: words, tables, pictures, summaries; beside other kinds."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from analysis.figures.attention_paths import Series, order_parameter_figure
from analysis.figures.heads import PUBLISHED, pruning_figure, scores_figure
from analysis.heads import tables
from analysis.heads.section import Heads
from analysis.heads.warnings import warnings
from analysis.kinds import find
from study.results import Results
from tests.made_up import comparisons
from tests.made_up.heads_results import SIMPLE, Law, train, write, write_study
from tests.made_up.summaries import NOTE, metrics_of

LAW = Law()


def only(results: Results) -> Heads:
    (section,) = find(results)
    assert isinstance(section, Heads)
    return section


def drawn(section: Heads) -> list[str]:
    return [picture.name.removeprefix("heads-") for picture in section.pictures]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Heads:
    """A whole study without noise, which no test changes."""
    results = comparisons.make_results(tmp_path_factory.mktemp("whole"))
    write_study(results, Law(noise=1e-4), widths=(10.0, 100.0))
    return only(results)


# --- words


def test_an_interrupted_study_shows_its_networks_and_what_is_missing(results: Results) -> None:
    for seed in range(2):
        train(results, LAW, seed)
    train(results, LAW, 2, status="diverged")
    section = only(results)
    text = section.text(published=True)
    assert "No heads are scored yet" in text
    assert "in no mean: seed 2 (loss is not finite)" in text
    assert {claim.verdict for claim in section.claims} == {"not run"}
    assert section.pictures == []
    (summary,) = section.summaries()
    assert summary.params["paradigm"] == "soft"


def test_cells_without_numbers_are_named(results: Results) -> None:
    for seed in range(3):
        train(results, LAW, seed)
    write(results, LAW, status="diverged")
    write(results, LAW, seed=1)
    write(results, LAW, "random", status="diverged")
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
    law = Law(choice=choice)
    for width, temperature in ((10.0, 0.01), (100.0, 1.5), (1_000.0, 1.0)):
        write(results, law, width=width, temperature=0.1 if choice == "fixed" else temperature)
    write(results, law, "gp", temperature=0.1 if choice == "fixed" else 0.02)
    texts = " ".join(warnings(only(results).setting))
    assert re.findall(r"([^,:]*) in 1 of 1 cell", texts) == [f" {name}" for name in names]


# --- tables


def test_of_many_removed_heads_both_ends_are_shown() -> None:
    shown = tables.shown_counts(pd.Series(range(23)))
    assert (shown[0], shown[-1], len(shown)) == (0, 22, 9)


# --- pictures


def test_what_there_are_no_numbers_for_is_not_drawn(results: Results) -> None:
    write(results, LAW, status="diverged")
    assert drawn(only(results)) == []
    write(results, LAW, "random")
    assert drawn(only(results)) == ["pruning"]
    write(results, LAW, seed=1)
    assert drawn(only(results)) == ["accuracy", "order-parameter", "pruning"]


def series(means: Sequence[float], first: int = 0) -> Series:
    table = pd.DataFrame({"x": range(first, first + len(means)), "mean": means})
    return Series("name", table.assign(low=table["mean"] - 1, high=table["mean"] + 2))


def test_the_published_drops_are_marked() -> None:
    figure = scores_figure(series([0.5, 1.0], 1), series([1.0, 2.0], 1), [2.0, 0.8])
    above, below = figure.axes
    assert [bar.get_height() for bar in below.patches] == [1, 2]
    assert PUBLISHED in [line.get_label() for line in below.lines]
    said = [text for marks in below.collections for text in marks.get_urls() if text]
    assert {f"{PUBLISHED}, 1: 2", f"{PUBLISHED}, 2: 0.8"} <= {*said}
    assert PUBLISHED not in [line.get_label() for line in above.lines]


def test_lines_of_pruning_stand_beside_each_other_and_chance_below() -> None:
    lines = [series([80.0, 70.0]), series([80.0, 60.0])]
    figure = pruning_figure(lines, {"random": series([80.0, 65.0])}, series([80.0, 75.0]), 50)
    (axes,) = figure.axes
    starts = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_ydata())) == 2]
    assert {*map(float, starts)} == {-0.055, 0, 0.055}
    assert [50, 50] in [list(line.get_ydata()) for line in axes.lines]


@pytest.mark.parametrize(("size", "named"), [(4, 4), (16, 16), (64, 16)])
def test_a_matrix_names_as_many_paths_as_have_room(size: int, named: int) -> None:
    names = [f"path {i}" for i in range(size)]
    figure = order_parameter_figure({"": [np.eye(size)]}, ["N=1"], names)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == names[:: size // named]


# --- summaries


def test_each_method_and_width_has_a_summary(whole: Heads) -> None:
    runs = {run.name.partition(" n=6 ")[0]: run for run in whole.summaries()}
    names = [
        "trained", "theory N=10", "theory N=100", "limit", "weight-norm", "entropy",
        "sensitivity", "random", "greedy", "bound",
    ]  # fmt: skip
    assert list(runs) == names
    assert all("omniglot" in run.name for run in runs.values())
    assert "P8 holds" in runs["theory N=10"].tags[NOTE]
    theory, random, limit = (metrics_of(runs[name]) for name in ("theory N=10", "random", "limit"))
    assert theory["gain"] == pytest.approx(0.03, abs=3e-4)
    assert theory["n"] == 6
    assert theory["area"] - random["area"] == pytest.approx(0.04, abs=3e-4)
    assert "area" not in limit


# --- what must not decide


def test_nothing_is_decided_where_the_temperature_was_chosen_on_the_test_episodes(
    results: Results,
) -> None:
    law = Law(choice="published")
    for seed in range(6):
        train(results, law, seed)
        for method in ("theory", "gp", "random", *SIMPLE):
            write(results, law, method, seed=seed)
    section = only(results)
    assert {claim.verdict for claim in section.claims} == {"undecided"}
    assert set(section.paired["verdict"]) == {"undecided"}
    assert "temperature was chosen on the test episodes" in section.text()


def test_cells_that_took_other_weights_apart_are_in_no_number(results: Results) -> None:
    for seed in range(3):
        train(results, LAW, seed, network_digest="new")
        write(results, LAW, seed=seed, network_digest="new" if seed else "old")
        write(results, LAW, "random", seed=seed, network_digest="new")
    section = only(results)
    assert section.paired["num_pairs"].tolist() == [2, 2]
    assert section.paired["num_lost"].tolist() == [1, 1]
    assert "other weights, so these cells are in no number: theory N=10 seed 0" in section.text()


def test_lost_networks_leave_no_advice(results: Results) -> None:
    """The t test would ask for fewer networks than there are: the lost ones hold it up."""
    for seed in range(9):
        train(results, LAW, seed, status="diverged" if seed > 6 else "done")
        if seed < 7:
            write(results, LAW, seed=seed)
            write(results, LAW, "random", seed=seed)
    section = only(results)
    row = section.paired.query("second == 'random'").iloc[0]
    assert (row["num_pairs"], row["num_lost"], row["verdict"]) == (7, 2, "undecided")
    header, rows = tables.paired_cells(section.paired)
    assert {row[header.index("would decide it")] for row in rows} == {"-"}
