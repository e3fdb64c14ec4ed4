"""Settings of attention paths and of trained networks, and their means over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.paths import beside, heads, means, pruning, theory
from analysis.paths.settings import Setting
from analysis.paths.trained import Trained
from analysis.section.base import Question
from study.results import Results, ResultsError
from tests.made_up import heads_results
from tests.made_up.attention_path_results import NOISY, Law, write, write_study
from tests.made_up.heads_results import train
from tests.made_up.heads_results import write as score

TRAINED = heads_results.Law()
SMALL = heads_results.Law(heads=2)
"""Two layers of two heads: K = 2."""


def settings(results: Results) -> list[Any]:
    ids = results.cells()["cell_id"].tolist()
    kind = heads if len(ids) > theory.mine(results.cells()).sum() else theory
    return [section.setting for section in kind.find(results, ids, Question())]


def only(results: Results) -> Any:
    (setting,) = settings(results)
    return setting


def row(table: pd.DataFrame, **wanted: object) -> Mapping[str, Any]:
    """The only row with some values."""
    for column, value in wanted.items():
        table = table[table[column] == value]
    (found,) = table.to_dict("records")
    return {str(name): value for name, value in found.items()}


# --- settings


def test_settings_are_told_apart_by_what_differs(results: Results) -> None:
    for law in (Law("own"), Law(), Law(n=50), Law(n=50, other={"readout": "mean"}), NOISY):
        write(results, law)
    names = [setting.name for setting in settings(results)]
    assert len(set(names)) == 5
    assert {"plain, P=100", "plain, P=50"} < set(names[:3])
    assert names[3:] == ["noisy", "own"]


def test_settings_of_trained_networks_are_told_apart_by_what_differs(results: Results) -> None:
    for more in ({}, {"n": 300}, {"heads": 2}, {"task": "digits-one-shot"}, {"layers": 1}):
        law = heads_results.Law(**more)
        train(results, law)
        score(results, law)
    train(results, heads_results.Law(layers=3))
    names = [setting.name for setting in settings(results)]
    assert names[0] == "digits-one-shot"
    assert {"omniglot, heads 4/4, P=300", "omniglot, heads 2/2, P=600"} <= set(names)
    assert names[-1] == "omniglot, heads 4/4/4, not scored"
    assert len(set(names)) == 6


def test_each_way_to_choose_the_temperature_is_a_setting_with_all_rules(results: Results) -> None:
    train(results, TRAINED)
    for choice in ("published", "fixed", "validation"):
        score(results, heads_results.Law(choice=choice))
    score(results, TRAINED, "random")
    found = settings(results)
    ways = ("by validation", "fixed at 0.1", "as published")
    assert [each.name for each in found] == [f"omniglot, temperature {way}" for way in ways]
    assert len({each.id for each in found}) == 3
    for each in found:
        assert len(each.networks) == 1
        assert list(each.cells["method"]) == ["theory", "random"]
    assert [len(each.recorded) for each in found] == [3, 1, 1]


def test_networks_of_other_learning_rates_are_not_lost(results: Results) -> None:
    for seed in (0, 1):
        train(results, TRAINED, seed)
        train(results, heads_results.Law(lr=1e-3), seed + 5)
    score(results, TRAINED)
    score(results, TRAINED, "random", seed=1)
    setting = only(results)
    assert setting.seeds == [0, 1]
    assert list(setting.trained["lr"]) == [TRAINED.lr] * 2
    assert len(setting.recorded) == 6


def test_networks_are_read_though_they_were_not_asked_for(results: Results) -> None:
    train(results, TRAINED)
    cell_id = score(results, TRAINED)
    (section,) = heads.find(results, [cell_id], Question())
    assert list(section.cells["cell_id"]) == [cell_id]
    assert len(section.setting.networks) == 1


def test_networks_are_in_the_order_of_the_report(results: Results) -> None:
    write_study(results, Law(), 1, (100.0, 10.0))
    found = means.networks(only(results))[["method", "network_width", "paths"]]
    sampled = [("slice", width, "all") for width in (10, 100)]
    limits = [("gp", math.inf, paths) for paths in ("all", "good", "good+denoising")]
    solved = [("theory", width, "all") for width in (10, 100, 1_000)]
    assert [*found.itertuples(index=False, name=None)] == [*solved, *sampled, *limits]


def test_of_chains_of_one_network_the_longest_counts(results: Results) -> None:
    for draws in (500, 2_000, 1_000):
        write(results, Law(), "slice", draws=draws)
    setting = only(results)
    assert (len(setting.recorded), list(setting.cells["steps"])) == (3, [2_000])


@pytest.mark.parametrize(
    ("law", "cell", "test", "fault"),
    [
        (Law(), {}, {"accuracy": None}, "accuracy"),
        (Law(), {}, {"predictor_mean": [1.0, math.nan]}, "mean predictor"),
        (Law(), {"order_parameter": [1.0] * 9}, {}, "order parameter"),
        (Law(), {"path_names": None}, {}, "order parameter"),
        (TRAINED, {"head_scores": [1.0]}, {}, "head_scores"),
        (TRAINED, {}, {"accuracy_pruned": [0.8] * 8}, "accuracy_pruned"),
        (TRAINED, {}, {"accuracy": None}, "accuracy"),
        (None, {}, {"accuracy": None}, "accuracy"),
    ],
)
def test_a_cell_that_lacks_something_is_refused(
    results: Results, law: Any, cell: dict[str, Any], test: dict[str, Any], fault: str
) -> None:
    if law is None:
        cell_id = train(results, TRAINED, test=test)
    elif law is TRAINED:
        cell_id = score(results, law, test=test, **cell)
    else:
        cell_id = write(results, law, cell=cell, test=test)
    with pytest.raises(ResultsError, match=f"cell {cell_id} has .*{fault}"):
        settings(results)


# --- means of networks


@pytest.mark.parametrize("r_hat", [1.01, 1.2, math.nan, None])
def test_what_diverged_or_has_not_converged_is_counted_and_in_no_mean(
    results: Results, r_hat: float | None
) -> None:
    for seed, accuracy in enumerate((0.9, 0.8)):
        write(results, Law(), "slice", seed=seed, test={"accuracy": accuracy})
    write(results, Law(), "slice", seed=2, cell={"r_hat": r_hat}, test={"accuracy": 0.1})
    write(results, Law(), "slice", seed=3, status="diverged")
    found = row(means.networks(only(results)))
    assert [found[f"num_{name}"] for name in ("seeds", "diverged", "unconverged")] == [2, 1, 1]
    assert found["accuracy"] == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("write", "networks"), [(write, means.networks), (score, pruning.networks)]
)
def test_means_and_intervals_are_those_of_the_seeds(
    results: Results, write: Callable[..., str], networks: Callable[[Any], pd.DataFrame]
) -> None:
    law, accuracies = TRAINED if write is score else Law(), [0.95, 0.91, 0.93]
    for seed, accuracy in enumerate(accuracies):
        test = {"accuracy": accuracy, "accuracy_diagonal": accuracy - 0.01 * seed}
        write(results, law, seed=seed, test=test)
        write(results, law, "gp", seed=seed, test={"accuracy": 0.8})
    found = row(networks(only(results)), method="theory")
    half = stats.sem(accuracies) * stats.t.ppf(0.975, 2)
    assert found["accuracy"] == pytest.approx(0.93)
    assert found["accuracy_high"] == pytest.approx(0.93 + half)
    assert found["interplay"] == pytest.approx(0.01)
    assert found["gain"] == pytest.approx(0.13)
    assert found["gain_low"] == pytest.approx(0.13 - half)


def test_distance_from_the_limit_is_relative(results: Results) -> None:
    write(results, Law(), test={"predictor_mean": [3.0, 6.0]})
    alone = row(means.networks(only(results)))
    assert math.isnan(alone["distance"])
    assert math.isnan(alone["gain"])
    write(results, Law(), "gp", test={"predictor_mean": [2.0, 4.0]})
    found = means.networks(only(results))
    assert row(found, method="theory")["distance"] == pytest.approx(0.5)
    assert row(found, method="gp")["distance"] == 0


def test_only_leading_components_count(results: Results) -> None:
    write(results, Law(), cell={"overlaps": [0.2] * 30 + [0.9]})
    write(results, Law(), seed=1, cell={"overlaps": None})
    setting = only(results)
    np.testing.assert_array_equal(setting.of("theory", 10)["largest_overlap"], [0.2, math.nan])
    assert list(means.overlaps(setting)["overlap"]) == [0.2] * 30 + [0.9]


def test_order_parameters_are_averaged_entry_by_entry(results: Results) -> None:
    for seed, entry in enumerate((-1.0, -3.0)):
        write(results, NOISY, seed=seed, cell={"order_parameter": [5, entry, entry, 7]})
    setting = only(results)
    mean = means.mean_order_parameter(setting, "theory", 10)
    np.testing.assert_array_equal(mean, [[5, -2], [-2, 7]])
    assert means.mean_order_parameter(setting, "slice", 10) is None
    found = row(means.order_parameters(setting), path="denoising", other_path="good")
    assert (found["order_parameter"], found["num_seeds"]) == (-2, 2)


def test_agreement_is_measured_seed_by_seed(results: Results) -> None:
    sampled = {"predictor_mean": [2.0, 2.0], "predictor_mean_error": [0.02, 0.02]}
    write(results, NOISY, test={"predictor_mean": [2.2, 2.2], "accuracy": 0.9},
          cell={"order_parameter": [2, 1, 1, 2]})  # fmt: skip
    write(results, NOISY, "slice", r_hat=1.002, test={"accuracy": 0.93, **sampled},
          cell={"order_parameter": [2, 0, 1, 2.2]})  # fmt: skip
    write(results, NOISY, "slice", seed=1, r_hat=1.005, draws=400)  # without theory
    write(results, NOISY, "slice", seed=2, r_hat=1.3)
    write(results, NOISY, "slice", 100.0)
    found = means.agreement(only(results))
    assert list(found["network_width"]) == [10, 100]
    assert row(found, network_width=10) == {
        "method": "slice", "network_width": 10, "paths": "all", "num_seeds": 1,
        "predictor_error": pytest.approx(0.1),
        "predictor_error_low": pytest.approx(math.nan, nan_ok=True),
        "predictor_error_high": pytest.approx(math.nan, nan_ok=True),
        "sampling_error": pytest.approx(0.01),
        "accuracy_difference": pytest.approx(-0.03),
        "accuracy_difference_low": pytest.approx(math.nan, nan_ok=True),
        "accuracy_difference_high": pytest.approx(math.nan, nan_ok=True),
        "order_parameter_difference": 1,
        "r_hat": 1.3, "effective_sample_size": 200, "num_unconverged": 1,
    }  # fmt: skip


# --- trained networks and their heads


def test_networks_count_at_the_end_of_training(results: Results) -> None:
    for seed, accuracy in enumerate((0.8, 0.9)):
        train(results, TRAINED, seed, test={"accuracy": accuracy})
    train(results, TRAINED, 2, status="diverged")
    train(results, TRAINED, 3, status="censored")
    found = row(pruning.trained(only(results)))
    assert found["accuracy_test"] == pytest.approx(0.85)
    assert [found[f"num_{name}"] for name in ("seeds", "diverged", "censored")] == [2, 1, 1]


def test_the_temperature_has_its_range(results: Results) -> None:
    for seed, temperature in enumerate((0.1, 0.5, 0.3)):
        score(results, TRAINED, seed=seed, temperature=temperature)
    found = row(pruning.networks(only(results)))
    ends = [found[f"temperature_{end}"] for end in ("median", "least", "most")]
    assert ends == [0.3, 0.1, 0.5]


def write_curves(results: Results) -> Trained:
    curves = {"theory": ([0.9, 0.8, 0.7], [0.9, 0.6, 0.3]), "random": ([0.9, 0.7, 0.5], None)}
    for seed in range(2):
        for method, lists in {**curves, "gp": (None, None)}.items():
            lower = [None if v is None else [a - 0.1 * seed for a in v] for v in lists]
            test = dict(zip(("accuracy_pruned", "accuracy_pruned_reverse"), lower, strict=True))
            score(results, SMALL, method, seed=seed, test=test)
    setting: Trained = only(results)
    return setting


def test_curves_and_areas_are_what_was_recorded(results: Results) -> None:
    setting = write_curves(results)
    curves, areas = pruning.pruning(setting), pruning.areas(setting)
    orders = [("theory", "removal"), ("theory", "reverse"), ("random", "removal")]
    assert [*areas[["method", "order"]].itertuples(index=False, name=None)] == orders
    assert list(curves["removed"]) == [0, 1, 2] * 3
    assert list(curves["accuracy"][:3]) == pytest.approx([0.85, 0.75, 0.65])
    assert list(areas["area"]) == pytest.approx([0.75, 0.55, 0.65])


def test_differences_are_paired_by_network(results: Results) -> None:
    write_curves(results)
    score(results, SMALL, "random", seed=2)
    setting = only(results)
    values, lost = pruning.differences(setting, "random")
    assert list(values) == pytest.approx([0.1, 0.1])
    assert lost == 1
    assert list(pruning.differences(setting, "reverse")[0]) == pytest.approx([0.2, 0.2])


def test_a_curve_that_one_network_lacks_is_not_known(results: Results) -> None:
    score(results, SMALL)
    score(results, SMALL, seed=1, test={"accuracy_pruned": None})
    setting = only(results)
    assert pruning.pruning(setting).query("order == 'removal'")["accuracy"].isna().all()
    assert math.isnan(row(pruning.areas(setting), order="removal")["area"])


def test_verdicts_are_one_family(results: Results) -> None:
    random = np.random.default_rng(0)
    offsets = {"random": 0.05, "entropy": 0.0}
    drawn = {name: offset + random.normal(0, 0.01, 7) for name, offset in offsets.items()}
    for seed in range(7):
        test = {"accuracy_pruned": [0.8] * 3, "accuracy_pruned_reverse": None}
        score(results, SMALL, seed=seed, test=test)
        for name, values in drawn.items():
            curve = {"accuracy_pruned": [0.8 - values[seed]] * 3}
            score(results, SMALL, name, seed=seed, test=curve)
    table = pruning.paired(only(results))
    assert list(table["second"]) == ["entropy", "random", "reverse"]
    assert list(table["verdict"]) == ["undecided", "better", "undecided"]
    p = {name: stats.ttest_1samp(values, 0).pvalue for name, values in drawn.items()}
    better = row(table, second="random")
    assert better["difference"] == pytest.approx(drawn["random"].mean())
    assert better["p_holm"] == pytest.approx(3 * p["random"])
    # The reversed order is not known, and stays in the family with p = 1.
    open_ = row(table, second="entropy")
    assert open_["p_holm"] == pytest.approx(min(1, 2 * p["entropy"]))
    assert open_["needed_seeds"] > 0
    assert row(table, second="reverse")["reason"] == "area is not known for every seed"


def test_the_rank_correlation_is_that_of_scipy() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        values = random.integers(0, 5, (2, 8)).astype(float)
        expected = stats.spearmanr(*values).statistic
        assert pruning.rank_correlation(*values) == pytest.approx(expected)
    for unranked in ([1, 1, 1], [1, 2, math.nan]):
        assert math.isnan(pruning.rank_correlation(np.array(unranked), np.array([1.0, 2, 3])))


def test_heads_are_shown_by_rank_and_by_place(results: Results) -> None:
    scores = ([0.2, 1.0, 0.4, 0.6], [1.0, 0.1, 0.3, 0.2])
    without = ([0.79, 0.70, 0.78, 0.75], [0.66, 0.80, 0.76, 0.79])
    for seed in (0, 1):
        train(results, SMALL, seed, test={"accuracy": 0.8, "accuracy_without_head": without[seed]})
        score(results, SMALL, seed=seed, head_scores=scores[seed])
    setting = only(results)
    ranks, places = pruning.ranks(setting), pruning.positions(setting)
    assert list(ranks["score"]) == pytest.approx([0.15, 0.3, 0.45, 1.0])
    assert list(ranks["drop"]) == pytest.approx([0.005, 0.015, 0.045, 0.12])
    assert [*zip(places["layer"], places["head"], strict=True)] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert list(places["score"]) == pytest.approx([0.6, 0.55, 0.35, 0.4])
    assert list(places["drop"]) == pytest.approx([0.075, 0.05, 0.03, 0.03])
    assert list(pruning.correlations(setting)["correlation"]) == pytest.approx([1, 1])


def test_paths_are_ordered_by_the_scores_of_theory(results: Results) -> None:
    """In layer 1 head 2 has the higher score, in layer 2 head 1: path (2, 1) comes first."""
    matrix = np.diag([11.0, 12, 21, 22])  # named by head and head
    matrix[0, 3] = matrix[3, 0] = -1
    given = {"head_scores": [0.2, 1.0, 0.6, 0.4], "order_parameter": matrix.ravel().tolist()}
    score(results, SMALL, **given)
    (found,) = pruning.by_score(only(results)).rows["order_parameter"]
    assert list(np.diag(found)) == [21, 22, 11, 12]
    assert found[2, 1] == -1
    assert found.sum() == matrix.sum()


# --- numbers of others


def test_the_prototype_stands_beside_the_same_network(results: Results) -> None:
    write_study(results, Law(), seeds=2)
    setting: Setting = only(results)
    found = beside.beside_prototype(setting)
    mine = row(found, measure="accuracy", network_width=10)
    assert mine["prototype"] == 0.964
    assert mine["ours"] == pytest.approx(setting.of("theory", 10)["accuracy"].mean())
    assert row(found, measure="accuracy", paths="good")["prototype"] == 0.94
    absent = row(found, measure="accuracy", network_width=30)
    assert absent["num_seeds"] == 0
    assert math.isnan(absent["ours"])
    assert "instead of" not in beside.source_of_prototype(setting)


def test_published_numbers_stand_beside_ours(results: Results) -> None:
    train(results, TRAINED, test={"accuracy": 0.9, "accuracy_without_head": [0.9 - 0.01] * 8})
    score(results, TRAINED)
    found = beside.beside_published(only(results))
    assert list(found["ours"]) == pytest.approx([0.9] + [0.01] * 8)


def test_they_are_of_eight_heads_and_omniglot(results: Results) -> None:
    for law in (SMALL, heads_results.Law(task="digits-one-shot")):
        train(results, law)
    assert all(beside.beside_published(setting).empty for setting in settings(results))
