"""One-shot images in the report: words, tables, pictures, summaries; beside other kinds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.comparison.compare import compare_results
from analysis.conclude import write_report
from analysis.figures.attention_paths import Series, order_parameter_figure
from analysis.figures.heads import PUBLISHED, pruning_figure, scores_figure
from analysis.groups import is_compared, is_one_shot, is_posterior
from analysis.heads import tables
from analysis.heads.section import Heads
from analysis.heads.warnings import warnings
from analysis.kinds import find
from analysis.reading import cells_of
from analysis.section.blocks import Table, Text
from study.results import HEADS, Results
from tests.conftest import not_drawn
from tests.made_up import attention_path_results, comparisons
from tests.made_up.heads_results import OVER, SIMPLE, Law, train, write, write_study

LAW = Law()


def only(results: Results) -> Heads:
    (section,) = find(results)
    assert isinstance(section, Heads)
    return section


def drawn(section: Heads) -> list[str]:
    return [picture.name.removeprefix("heads-") for picture in section.pictures]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A whole study without noise, which no test changes."""
    results = comparisons.make_results(tmp_path_factory.mktemp("whole"))
    write_study(results, Law(noise=1e-4), widths=(10.0, 100.0))
    return results


@pytest.fixture(scope="module")
def whole(made: Results) -> Heads:
    return only(made)


# --- beside other kinds


def test_networks_and_what_scores_them_are_in_no_comparison(results: Results) -> None:
    comparisons.write(results, comparisons.make_cell())
    attention_path_results.write(results, attention_path_results.Law())
    train(results, LAW)
    write(results, LAW)
    train(results, Law(task="digits-one-shot"))
    cells = cells_of(results)
    kinds = (is_compared, is_posterior, is_one_shot)
    assert [int(kind(cells).sum()) for kind in kinds] == [1, 1, 3]
    compared, *_ = find(results)
    assert not {*HEADS} & set(compared.cell_rows())
    assert len(compare_results(results)) == 1
    evaluations = analysis.load(results)
    assert analysis.comparisons(evaluations[evaluations["kind"] == "heads"]) == []


# --- words


def test_the_straight_answer_has_every_number(whole: Heads) -> None:
    text = whole.found
    for part in (
        r"classifies 8\d\.\d % \([\d.]+ to [\d.]+, n=6\) of the test episodes rightly; chance",
        r"the network of N=10 has 8\d\.\d % \(",
        r"Finite width beats the limit: \+3\.0 points \(\+3\.0 to \+3\.0, n=6\) at N=10\.",
        r"a rank correlation of \+1\.00 \(",
        r"4\.0 points more than random order \(",
        r"8\.0 points more than its own order reversed \(",
        r"\? Yes, than each of them: 2\.0 points more than weight-norm \(",
        r"1\.0 points less than greedy removal .* \(\d\.\d to \d\.\d, n=6\)\.",
    ):
        assert re.search(part, text), part
    assert "Undecided" not in text


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (-0.05, r"Finite width is worse than the limit: -[456]\.\d points \("),
        (0.0, r"Whether finite width beats the limit is undecided: [-+]\d\.\d points \("),
    ],
)
def test_a_finite_width_that_is_not_better_is_said(
    results: Results, gain: float, words: str
) -> None:
    law = Law(gain=gain, noise=0.01)
    write_study(results, law, widths=(10.0,), rules=(), trained=False)
    assert re.search(words, only(results).found)


def test_what_is_open_is_said_with_what_would_decide_it(results: Results) -> None:
    law = Law(over={**OVER, "entropy": 0.0, "weight-norm": -0.08}, noise=0.01)
    rules = ("entropy", "weight-norm")
    write_study(results, law, widths=(10.0,), limit=False, rules=rules, trained=False)
    text = only(results).found
    assert "a simple rule? Less than weight-norm: " in text
    assert re.search(r"Undecided, after Holm's .*: theory against entropy( \(|\.)", text)
    (row,) = (row for row in tables.paired_cells(only(results).paired)[1] if row[0] == "entropy")
    assert row[1] == "undecided"
    assert row[5] == "6"


def test_an_interrupted_study_shows_its_networks_and_what_is_missing(results: Results) -> None:
    for seed in range(2):
        train(results, LAW, seed)
    train(results, LAW, 2, status="diverged")
    section = only(results)
    assert section.title == "One-shot images: omniglot"
    text = section.text(published=True)
    assert "No heads are scored yet" in text
    assert "Networks that diverged are in no mean: seed 2 (loss is not finite)." in text
    assert "Trained networks" in text
    assert "Pruning by theory against" not in text
    assert {claim.verdict for claim in section.claims} == {"not run"}
    assert section.pictures == []
    (summary,) = section.summaries()
    assert summary.params["paradigm"] == "soft"
    blocks = section.blocks([], "r", published=True)
    assert any(isinstance(b, Text) and b.kind == "warning" for b in blocks)


def test_cells_without_numbers_are_named(results: Results) -> None:
    for seed in range(3):
        train(results, LAW, seed)
    write(results, LAW, status="diverged")
    write(results, LAW, seed=1)
    write(results, LAW, "random", status="diverged")
    text = only(results).text()
    for sentence in (
        "There is no cell of limit, weight-norm, entropy, sensitivity, greedy and bound.",
        "Trained, but without a cell of theory N=10: networks of seed 2.",
        "in no mean: theory N=10 seed 0 (the saddle's residual is 0.02).",
        "Cells without numbers: random seed 0 (the saddle's residual is 0.02).",
    ):
        assert sentence in text, sentence


@pytest.mark.parametrize(
    ("choice", "limit", "names"),
    [
        ("validation", 0.02, ["theory N=10 the least", "theory N=100 the largest"]),
        (
            "published",
            0.02,
            ["theory N=10 the least", "theory N=100 the largest", "limit the least"],
        ),
        ("fixed", 0.01, []),
    ],
)
def test_a_temperature_at_an_end_of_its_grid_is_said(
    results: Results, choice: str, limit: float, names: list[str]
) -> None:
    """As published, the limit has five of the ten."""
    law = Law(choice=choice)
    for width, temperature in ((10.0, 0.01), (100.0, 1.5), (1_000.0, 1.0)):
        write(results, law, width=width, temperature=0.1 if choice == "fixed" else temperature)
    write(results, law, "gp", temperature=0.1 if choice == "fixed" else limit)
    texts = " ".join(warnings(only(results).setting))
    said = ", ".join(f"{name} in 1 of 1 cell" for name in names)
    assert ("at an end of those that were tried" in texts) == bool(names)
    assert f"may be better: {said}." in texts or not names
    assert ("chosen on the test episodes, as published" in texts) == (choice == "published")


def test_published_numbers_are_shown_on_request_with_what_they_are_of(whole: Heads) -> None:
    said = "are of 1,623 characters and one network"
    assert said not in whole.text()
    text = whole.text(published=True)
    assert said in text
    assert "83.8" in text
    pages = (whole.blocks([], "r", published=shown) for shown in (False, True))
    without, with_ = ([b.text for b in page if isinstance(b, Text)] for page in pages)
    assert not any(said in text for text in without)
    assert any(said in text for text in with_)


# --- tables


def test_page_and_terminal_hold_the_numbers(whole: Heads, tmp_path: Path, made: Results) -> None:
    with not_drawn():
        write_report(made, tmp_path / "out", published=True)
    page = (tmp_path / "out" / "report.md").read_text()
    terminal = whole.text()
    assert page.startswith("# One-shot images: one-shot")
    area = whole.areas.query("method == 'theory' and order == 'removal'").iloc[0]
    assert area["num_seeds"] == 6
    header, rows = tables.pruning_cells(whole.pruning, 10.0)
    assert header == ["removed heads", *map(str, range(7)), "n"]
    assert [row[0] for row in rows] == [
        "theory N=10", "theory N=10 reversed", "weight-norm", "entropy", "sensitivity", "random",
        "greedy", "bound",
    ]  # fmt: skip
    assert rows[0][1] in page.replace("\\", "")
    assert rows[0][1].split()[0] in terminal
    for name in ("P7", "P8", "P9"):
        assert f"{name} " in terminal
    assert "Of 3 tests of the paper's claims, 3 hold (P7, P8, P9)." in page
    written = pd.read_csv(next((tmp_path / "out").glob("heads-paired-*.csv")))
    over = {name: value for name, value in OVER.items() if name != "bound"}
    assert list(written["second"]) == [*over]
    assert list(written["difference"]) == list(whole.paired["difference"])
    assert list(written["difference"]) == pytest.approx([*over.values()], abs=3e-4)


def test_tables_are_complete(whole: Heads) -> None:
    written = whole.tables()
    assert len(written["heads-networks"]) == 3
    assert len(written["heads-ranks"]) == len(written["heads-positions"]) == 8
    assert len(written["heads-correlations"]) == 6
    assert len(written["heads-order-parameters"]) == 3 * 16**2
    assert len(written["heads-published"]) == 9
    rows = whole.cell_rows()
    assert {"network", "method", "temperature", "temperature_choice", "lr"} <= set(rows)
    assert not rows.map(lambda value: isinstance(value, list | np.ndarray)).any(axis=None)


def test_the_temperature_is_shown_with_its_range(results: Results) -> None:
    for seed, temperature in enumerate((0.05, 0.2, 0.1)):
        write(results, LAW, seed=seed, temperature=temperature)
    header, (row,) = tables.network_cells(only(results).networks)
    assert row[header.index("temperature")] == "0.1 (0.05 to 0.2)"


def test_of_many_removed_heads_both_ends_are_shown() -> None:
    shown = tables.shown_counts(pd.Series(range(23)))
    assert (shown[0], shown[-1], len(shown)) == (0, 22, 9)


# --- pictures


def test_all_of_figure_3_is_drawn(whole: Heads) -> None:
    assert drawn(whole) == ["accuracy", "order-parameter", "alignment", "scores", "pruning"]


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


def test_the_published_drops_are_marked(whole: Heads) -> None:
    figure = scores_figure(series([0.5, 1.0], 1), series([1.0, 2.0], 1), [2.0, 0.8], "note")
    above, below = figure.axes
    assert [bar.get_height() for bar in below.patches] == [1, 2]
    (points,) = (line for line in below.lines if line.get_label() == PUBLISHED)
    assert list(points.get_ydata()) == [2.0, 0.8]
    assert PUBLISHED not in [line.get_label() for line in above.lines]
    (picture,) = (p for p in whole.pictures if p.name == "heads-scores")
    assert "1,623 characters and one network" in picture.caption


def test_lines_of_pruning_stand_beside_each_other_and_chance_below() -> None:
    lines = [series([80.0, 70.0]), series([80.0, 60.0])]
    figure = pruning_figure(lines, {"random": series([80.0, 65.0])}, series([80.0, 75.0]), 50, "")
    (axes,) = figure.axes
    starts = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_ydata())) == 2]
    assert {*map(float, starts)} == {-0.055, 0, 0.055}
    assert [50, 50] in [list(line.get_ydata()) for line in axes.lines]


@pytest.mark.parametrize(("size", "named"), [(4, 4), (16, 16), (64, 16)])
def test_a_matrix_names_as_many_paths_as_have_room(size: int, named: int) -> None:
    names = [f"path {i}" for i in range(size)]
    figure = order_parameter_figure({"": [np.eye(size)]}, ["N=1"], names, "note")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == names[:: size // named]


# --- summaries


def test_each_method_and_width_has_a_summary(whole: Heads) -> None:
    groups = {group.name.rpartition(" (")[0]: group for group in whole.summaries()}
    names = [
        "trained", "theory N=10", "theory N=100", "limit", "weight-norm", "entropy",
        "sensitivity", "random", "greedy", "bound",
    ]  # fmt: skip
    assert list(groups) == [f"one-shot omniglot {name}" for name in names]
    theory = groups["one-shot omniglot theory N=10"]
    assert theory.params["method"] == "theory"
    assert theory.params["P8"] == "holds"
    assert theory.metrics["gain"] == pytest.approx(0.03, abs=3e-4)
    assert theory.metrics["temperature"] == 0.1
    assert theory.metrics["n_seeds"] == 6
    random = groups["one-shot omniglot random"].metrics
    assert theory.metrics["area"] - random["area"] == pytest.approx(0.04, abs=3e-4)
    assert "area" not in groups["one-shot omniglot limit"].metrics
    assert "paradigm" in groups["one-shot omniglot trained"].params


def test_early_cells_are_listed(results: Results) -> None:
    cell_id = write(results, LAW, "entropy", status="diverged")
    train(results, LAW)
    train(results, LAW, 3, status="censored")
    rows = [row for b in only(results).blocks([], "r") if isinstance(b, Table) for row in b.rows]
    assert [cell_id, "entropy", "-", "0", "diverged", "the saddle's residual is 0.02"] in rows
    assert ["training", "censored", "1"] in rows


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
    assert {claim.why for claim in section.claims} == {
        "the temperature was chosen on the test episodes"
    }
    assert set(section.paired["verdict"]) == {"undecided"}
    assert "Whether finite width beats the limit is undecided" in section.text()
    assert "So nothing is decided here." in section.text()


def test_cells_that_took_other_weights_apart_are_in_no_number(results: Results) -> None:
    for seed in range(3):
        train(results, LAW, seed, network_digest="new")
        write(results, LAW, seed=seed, network_digest="new" if seed else "old")
        write(results, LAW, "random", seed=seed, network_digest="new")
    section = only(results)
    assert section.paired["num_pairs"].tolist() == [2, 2]
    assert section.paired["num_lost"].tolist() == [1, 1]
    said = "Their network has trained again since, to other weights, so these cells are in no"
    assert f"{said} number: theory N=10 seed 0." in section.text()


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
