"""Settings of one-shot images, their measures, means over networks, and paired differences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.heads import means, published
from analysis.heads.measures import area, by_rank, rank_correlation
from analysis.heads.paired import differences, paired
from analysis.heads.settings import Setting, read
from study.results import Results, ResultsError
from tests.made_up.heads_results import Law, train, write, write_study

LAW = Law()
SMALL = Law(heads=2)
"""Two layers of two heads: K = 2."""


def settings(results: Results) -> list[Setting]:
    return read(results, results.cells())


def only(results: Results) -> Setting:
    (setting,) = settings(results)
    return setting


def row(table: pd.DataFrame, **wanted: object) -> Mapping[str, Any]:
    """The only row with some values."""
    for column, value in wanted.items():
        table = table[table[column] == value]
    (found,) = table.to_dict("records")
    return {str(name): value for name, value in found.items()}


# --- measures


def test_the_area_is_the_mean_over_all_numbers_of_removed_heads() -> None:
    assert area(np.array([0.9, 0.8, 0.4])) == pytest.approx(0.7)
    assert math.isnan(area(np.array([])))
    assert math.isnan(area(np.array([0.9, math.nan])))


def test_the_rank_correlation_is_that_of_scipy() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        values = random.integers(0, 5, (2, 8)).astype(float)
        assert rank_correlation(*values) == pytest.approx(stats.spearmanr(*values).statistic)


@pytest.mark.parametrize("values", [[1, 1, 1], [1, 2, math.nan], [1, 2], []])
def test_without_ranks_there_is_no_correlation(values: list[float]) -> None:
    assert math.isnan(rank_correlation(np.array(values, float), np.array([1.0, 2, 3])))


def test_values_are_ordered_by_score_and_ties_by_place() -> None:
    ordered = by_rank(np.array([0.5, 1.0, 0.1, 0.5]), np.array([1.0, 2, 3, 4]))
    assert list(ordered) == [3, 1, 4, 2]


# --- settings


def test_settings_are_told_apart_by_what_differs(results: Results) -> None:
    for law in (LAW, Law(n=300), Law(heads=2), Law(task="digits-one-shot"), Law(layers=1)):
        train(results, law)
        write(results, law)
    train(results, Law(layers=3))
    names = [setting.name for setting in settings(results)]
    assert names[0] == "digits-one-shot"
    assert {"omniglot, heads 4/4, P=300", "omniglot, heads 2/2, P=600"} <= set(names)
    assert names[-1] == "omniglot, heads 4/4/4, not scored"
    assert len(set(names)) == 6


def test_each_way_to_choose_the_temperature_is_a_setting_with_all_rules(results: Results) -> None:
    ways = (Law(choice="published"), Law(choice="fixed"), LAW)
    train(results, LAW)
    for law in ways:
        write(results, law)
    write(results, LAW, "random")
    found = settings(results)
    assert [setting.name for setting in found] == [
        "omniglot, temperature by validation",
        "omniglot, temperature fixed at 0.1",
        "omniglot, temperature as published",
    ]
    assert len({setting.id for setting in found}) == 3
    for setting in found:
        assert len(setting.networks) == 1
        assert list(setting.cells["method"]) == ["theory", "random"]
    assert [len(setting.recorded) for setting in found] == [3, 1, 1]


def test_networks_of_other_learning_rates_are_not_lost(results: Results) -> None:
    for seed in (0, 1):
        train(results, LAW, seed)
        train(results, Law(lr=1e-3), seed + 5)
    write(results, LAW)
    write(results, LAW, "random", seed=1)
    setting = only(results)
    assert setting.seeds == [0, 1]
    assert list(setting.trained["lr"]) == [LAW.lr] * 2
    assert len(setting.recorded) == 6


def test_networks_are_read_though_they_were_not_asked_for(results: Results) -> None:
    train(results, LAW)
    cell_id = write(results, LAW)
    (setting,) = read(results, results.cells([cell_id]))
    assert list(setting.recorded["cell_id"]) == [cell_id]
    assert len(setting.networks) == 1


@pytest.mark.parametrize(
    ("cell", "test", "fault"),
    [
        ({"head_scores": [1.0]}, {}, "1 values of scores instead of 8"),
        ({}, {"accuracy_pruned": [0.8] * 8}, "8 values of pruned instead of 7"),
        ({}, {"accuracy": None}, "no finite accuracy"),
    ],
)
def test_a_cell_that_lacks_something_is_refused(
    results: Results, cell: dict[str, Any], test: dict[str, Any], fault: str
) -> None:
    cell_id = write(results, LAW, test=test, **cell)
    with pytest.raises(ResultsError, match=f"cell {cell_id} of .* has {fault}"):
        only(results)


def test_a_network_without_its_accuracy_is_refused(results: Results) -> None:
    cell_id = train(results, LAW, test={"accuracy": None})
    with pytest.raises(ResultsError, match=f"cell {cell_id} .* no finite accuracy"):
        only(results)


# --- means


def test_networks_count_at_the_end_of_training(results: Results) -> None:
    for seed, accuracy in enumerate((0.8, 0.9)):
        train(results, LAW, seed, test={"accuracy": accuracy})
    train(results, LAW, 2, status="diverged")
    train(results, LAW, 3, status="censored")
    found = row(means.trained(only(results)))
    assert found["accuracy_test"] == pytest.approx(0.85)
    assert (found["num_seeds"], found["num_diverged"], found["num_censored"]) == (2, 1, 1)


def test_the_gain_is_paired_and_the_temperature_has_its_range(results: Results) -> None:
    for seed, temperature in enumerate((0.1, 0.5, 0.3)):
        test = {"accuracy": 0.8 + 0.1 * seed}
        write(results, LAW, seed=seed, temperature=temperature, test=test)
        write(results, LAW, "gp", seed=seed, test={"accuracy": 0.75 + 0.1 * seed})
    found = row(means.networks(only(results)), method="theory")
    assert found["gain"] == pytest.approx(0.05)
    assert found["gain_high"] == pytest.approx(0.05)
    temperature = [found[f"temperature_{end}"] for end in ("median", "least", "most")]
    assert temperature == [0.3, 0.1, 0.5]


CURVES = {
    "theory": ([0.9, 0.8, 0.7], [0.9, 0.6, 0.3]),
    "random": ([0.9, 0.7, 0.5], None),
    "gp": (None, None),
}


def write_curves(results: Results, seeds: int = 1) -> Setting:
    for seed in range(seeds):
        for method, (pruned, reverse) in CURVES.items():
            lists = [None if v is None else [a - 0.1 * seed for a in v] for v in (pruned, reverse)]
            columns = ("accuracy_pruned", "accuracy_pruned_reverse")
            test = dict(zip(columns, lists, strict=True))
            write(results, SMALL, method, seed=seed, test=test)
    return only(results)


def test_curves_and_areas_are_what_was_recorded(results: Results) -> None:
    setting = write_curves(results, seeds=2)
    curves = means.pruning(setting)
    assert {*zip(curves["method"], curves["order"], strict=True)} == {
        ("theory", "removal"), ("theory", "reverse"), ("random", "removal"),
    }  # fmt: skip
    of_theory = curves[(curves["method"] == "theory") & (curves["order"] == "removal")]
    assert list(of_theory["removed"]) == [0, 1, 2]
    assert list(of_theory["accuracy"]) == pytest.approx([0.85, 0.75, 0.65])
    areas = means.areas(setting)
    assert row(areas, method="theory", order="removal")["area"] == pytest.approx(0.75)
    assert row(areas, method="theory", order="reverse")["area"] == pytest.approx(0.55)
    assert row(areas, method="random")["area"] == pytest.approx(0.65)


def test_a_curve_that_one_network_lacks_is_not_known(results: Results) -> None:
    write(results, SMALL)
    write(results, SMALL, seed=1, test={"accuracy_pruned": None})
    setting = only(results)
    assert means.pruning(setting).query("order == 'removal'")["accuracy"].isna().all()
    assert math.isnan(row(means.areas(setting), order="removal")["area"])


def test_differences_are_paired_by_network(results: Results) -> None:
    setting = write_curves(results, seeds=2)
    write(results, SMALL, "random", seed=2)
    setting = only(results)
    values, lost = differences(setting, "random")
    assert list(values) == pytest.approx([0.1, 0.1])
    assert lost == 1
    assert list(differences(setting, "reverse")[0]) == pytest.approx([0.2, 0.2])


def test_verdicts_are_one_family(results: Results) -> None:
    random = np.random.default_rng(0)
    offsets = {"random": 0.05, "entropy": 0.0}
    drawn = {name: offset + random.normal(0, 0.01, 7) for name, offset in offsets.items()}
    for seed in range(7):
        test = {"accuracy_pruned": [0.8] * 3, "accuracy_pruned_reverse": None}
        write(results, SMALL, seed=seed, test=test)
        for name, values in drawn.items():
            curve = {"accuracy_pruned": [0.8 - values[seed]] * 3}
            write(results, SMALL, name, seed=seed, test=curve)
    table = paired(only(results))
    assert list(table["second"]) == ["entropy", "random", "reverse"]
    ps = {name: stats.ttest_1samp(values, 0).pvalue for name, values in drawn.items()}
    better = row(table, second="random")
    assert better["difference"] == pytest.approx(drawn["random"].mean())
    assert better["p_holm"] == pytest.approx(3 * ps["random"])
    assert better["verdict"] == "better"
    open_ = row(table, second="entropy")
    assert open_["verdict"] == "undecided"
    # The reversed order is not known, and stays in the family with p = 1.
    assert open_["p_holm"] == pytest.approx(min(1, 2 * ps["entropy"]))
    assert open_["needed_seeds"] > 0
    assert row(table, second="reverse")["reason"] == "area is not known for every seed"


@pytest.mark.parametrize(("seeds", "verdict"), [(8, "better"), (6, "undecided")])
def test_a_lost_network_counts_against_a_verdict(
    results: Results, seeds: int, verdict: str
) -> None:
    write_study(results, LAW, seeds, widths=(10.0,), limit=False, rules=(), trained=False)
    assert row(paired(only(results)), second="reverse")["verdict"] == "better"
    write(results, LAW, seed=seeds, status="diverged")
    found = row(paired(only(results)), second="reverse")
    assert (found["verdict"], found["num_lost"]) == (verdict, 1)


def test_heads_are_shown_by_rank_and_by_place(results: Results) -> None:
    scores = ([0.2, 1.0, 0.4, 0.6], [1.0, 0.1, 0.3, 0.2])
    without = ([0.79, 0.70, 0.78, 0.75], [0.66, 0.80, 0.76, 0.79])
    for seed in (0, 1):
        test = {"accuracy": 0.8, "accuracy_without_head": without[seed]}
        train(results, SMALL, seed, test=test)
        write(results, SMALL, seed=seed, head_scores=scores[seed])
    setting = only(results)
    ranks = means.ranks(setting)
    assert list(ranks["score"]) == pytest.approx([0.15, 0.3, 0.45, 1.0])
    assert list(ranks["drop"]) == pytest.approx([0.005, 0.015, 0.045, 0.12])
    places = means.positions(setting)
    assert list(places["layer"]) == [1, 1, 2, 2]
    assert list(places["head"]) == [1, 2, 1, 2]
    assert list(places["score"]) == pytest.approx([0.6, 0.55, 0.35, 0.4])
    assert list(places["drop"]) == pytest.approx([0.075, 0.05, 0.03, 0.03])
    assert list(means.correlations(setting)["correlation"]) == pytest.approx([1, 1])


def test_paths_are_ordered_by_the_scores_of_theory(results: Results) -> None:
    """In layer 1 head 2 has the higher score, in layer 2 head 1: path (2, 1) comes first."""
    matrix = np.diag([11.0, 12, 21, 22])  # named by head and head
    matrix[0, 3] = matrix[3, 0] = -1
    scores, order = [0.2, 1.0, 0.6, 0.4], matrix.ravel().tolist()
    write(results, SMALL, head_scores=scores, order_parameter=order)
    (found,) = means.by_score(only(results)).rows["order_parameter"]
    assert list(np.diag(found)) == [21, 22, 11, 12]
    assert found[2, 1] == -1
    assert found.sum() == matrix.sum()


# --- published numbers


def test_published_numbers_stand_beside_ours(results: Results) -> None:
    train(results, LAW, test={"accuracy": 0.9, "accuracy_without_head": [0.9 - 0.01] * 8})
    write(results, LAW)
    setting = only(results)
    found = published.beside(setting, means.trained(setting), means.ranks(setting))
    assert list(found["ours"]) == pytest.approx([0.9] + [0.01] * 8)


@pytest.mark.parametrize("law", [SMALL, Law(task="digits-one-shot")])
def test_they_are_of_eight_heads_and_omniglot(results: Results, law: Law) -> None:
    train(results, law)
    setting = only(results)
    assert published.beside(setting, means.trained(setting), means.ranks(setting)).empty
