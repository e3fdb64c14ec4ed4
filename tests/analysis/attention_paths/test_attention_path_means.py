"""Settings of attention paths, their means over seeds, and how theory and sampling agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.attention_paths import means, prototype
from analysis.attention_paths.agreement import agreement
from analysis.attention_paths.settings import Setting, read
from study.results import Results, ResultsError
from tests.made_up.attention_path_results import NOISY, Law, write, write_study

EXACT = Law(noise=0.0)


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


# --- settings


def test_settings_are_plain_noisy_own(results: Results) -> None:
    for law in (Law(variant="own"), NOISY, Law()):
        write(results, law)
    assert [setting.name for setting in settings(results)] == ["plain", "noisy", "own"]


def test_settings_of_one_variant_are_told_apart(results: Results) -> None:
    for law in (Law(), Law(n=50), Law(n=50, other={"readout": "mean"}), NOISY):
        write(results, law)
    names = [setting.name for setting in settings(results)]
    assert len(set(names)) == 4
    assert "noisy" in names
    assert "plain, P=100" in names
    assert sum(name.startswith("plain, P=50") for name in names) == 2


def test_networks_are_in_the_order_of_the_report(results: Results) -> None:
    write_study(results, Law(), 1, (100.0, 10.0))
    found = means.networks(only(results))
    assert [*zip(found["method"], found["network_width"], found["paths"], strict=True)] == [
        ("theory", 10, "all"),
        ("theory", 100, "all"),
        ("theory", 1000, "all"),
        ("slice", 10, "all"),
        ("slice", 100, "all"),
        ("gp", math.inf, "all"),
        ("gp", math.inf, "good"),
        ("gp", math.inf, "good+denoising"),
    ]


def test_of_chains_of_one_network_the_longest_counts(results: Results) -> None:
    write(results, EXACT)
    for draws in (500, 2_000, 1_000):
        write(results, EXACT, "slice", draws=draws)
    setting = only(results)
    assert len(setting.recorded) == 4
    assert list(setting.cells["steps"]) == [50, 2_000]
    assert row(means.networks(setting), method="slice")["num_seeds"] == 1


@pytest.mark.parametrize("r_hat", [1.01, 1.2, math.nan, None])
def test_chains_that_have_not_converged_are_in_no_mean(
    results: Results, r_hat: float | None
) -> None:
    write_study(results, EXACT, seeds=2)
    write(results, EXACT, "slice", seed=2, cell={"r_hat": r_hat}, test={"accuracy": 0.1})
    found = row(means.networks(only(results)), method="slice")
    assert found["num_seeds"] == 2
    assert found["num_unconverged"] == 1
    assert found["accuracy"] > 0.9


def test_diverged_cells_are_counted_and_in_no_mean(results: Results) -> None:
    write(results, EXACT)
    write(results, EXACT, seed=1, status="diverged")
    found = row(means.networks(only(results)))
    assert (found["num_seeds"], found["num_diverged"]) == (1, 1)


@pytest.mark.parametrize(
    ("cell", "test", "fault"),
    [
        ({}, {"accuracy": None}, "no finite accuracy"),
        ({}, {"predictor_mean": [1.0, math.nan]}, "no finite mean predictor"),
        ({"order_parameter": [1.0] * 9}, {}, "no 4 x 4 order parameter for its 4 paths"),
        ({"path_names": None}, {}, "no 0 x 0 order parameter"),
    ],
)
def test_a_cell_that_lacks_something_is_refused(
    results: Results, cell: dict[str, object], test: dict[str, object], fault: str
) -> None:
    cell_id = write(results, Law(), cell=cell, test=test)
    with pytest.raises(ResultsError, match=f"cell {cell_id} of attention paths has {fault}"):
        only(results)


# --- means


def test_means_and_intervals_are_those_of_the_seeds(results: Results) -> None:
    accuracies = [0.95, 0.91, 0.93]
    for seed, accuracy in enumerate(accuracies):
        test = {"accuracy": accuracy, "accuracy_diagonal": accuracy - 0.01 * seed}
        write(results, Law(), seed=seed, test=test)
        write(results, Law(), "gp", seed=seed, test={"accuracy": 0.8})
    found = row(means.networks(only(results)), method="theory")
    half = stats.sem(accuracies) * stats.t.ppf(0.975, 2)
    assert found["accuracy"] == pytest.approx(0.93)
    assert found["accuracy_high"] == pytest.approx(0.93 + half)
    assert found["interplay"] == pytest.approx(0.01)
    assert found["gain"] == pytest.approx(0.13)
    assert found["gain_low"] == pytest.approx(0.13 - half)


def test_without_the_limit_its_distance_is_not_known(results: Results) -> None:
    write(results, Law())
    found = row(means.networks(only(results)))
    assert math.isnan(found["gain"])
    assert math.isnan(found["distance"])


def test_distance_from_the_limit_is_relative(results: Results) -> None:
    write(results, Law(), test={"predictor_mean": [3.0, 6.0]})
    write(results, Law(), "gp", test={"predictor_mean": [2.0, 4.0]})
    found = means.networks(only(results))
    assert row(found, method="theory")["distance"] == pytest.approx(0.5)
    assert row(found, method="gp")["distance"] == 0


def test_only_leading_components_count(results: Results) -> None:
    write(results, Law(), cell={"overlaps": [0.2] * 30 + [0.9]})
    write(results, Law(), seed=1, cell={"overlaps": None})
    overlaps = only(results).of("theory", 10)["largest_overlap"]
    assert overlaps[0] == 0.2
    assert math.isnan(overlaps[1])


def test_order_parameters_are_averaged_entry_by_entry(results: Results) -> None:
    for seed, entry in enumerate((-1.0, -3.0)):
        write(results, NOISY, seed=seed, cell={"order_parameter": [5, entry, entry, 7]})
    setting = only(results)
    mean = means.mean_order_parameter(setting, "theory", 10)
    np.testing.assert_array_equal(mean, [[5, -2], [-2, 7]])
    assert means.mean_order_parameter(setting, "slice", 10) is None
    found = row(means.order_parameters(setting), path="denoising", other_path="good")
    assert found["order_parameter"] == -2
    assert found["num_seeds"] == 2


# --- theory against sampling


def test_agreement_is_measured_seed_by_seed(results: Results) -> None:
    law = Law()
    sampled = {"predictor_mean": [2.0, 2.0], "predictor_mean_error": [0.02, 0.02]}
    write(results, law, test={"predictor_mean": [2.2, 2.2], "accuracy": 0.9})
    write(results, law, "slice", r_hat=1.002, test={"accuracy": 0.93, **sampled})
    write(results, law, "slice", seed=1, r_hat=1.005, draws=400)  # without theory
    write(results, law, "slice", seed=2, r_hat=1.3)
    found = row(agreement(only(results)))
    assert found["num_seeds"] == 1
    assert found["predictor_error"] == pytest.approx(0.1)
    assert found["sampling_error"] == pytest.approx(0.01)
    assert found["accuracy_difference"] == pytest.approx(-0.03)
    assert found["order_parameter_difference"] == 0
    assert (found["r_hat"], found["effective_sample_size"]) == (1.3, 200)
    assert found["num_unconverged"] == 1


def test_agreement_names_every_sampled_width(results: Results) -> None:
    write_study(results, Law(), 2, (10.0, 100.0))
    found = agreement(only(results))
    assert list(found["method"]) == ["slice", "slice"]
    assert list(found["network_width"]) == [10, 100]


def test_the_largest_difference_of_u_is_of_any_seed_and_entry(results: Results) -> None:
    for seed, entry in enumerate((1.5, 0.0)):
        write(results, NOISY, seed=seed, cell={"order_parameter": [2, 1, 1, 2]})
        write(results, NOISY, "slice", seed=seed, cell={"order_parameter": [2, entry, 1, 2.2]})
    assert row(agreement(only(results)))["order_parameter_difference"] == 1


# --- the prototype


def test_the_prototype_stands_beside_the_same_network(results: Results) -> None:
    write_study(results, EXACT, seeds=2)
    setting = only(results)
    found = prototype.beside(setting, means.networks(setting))
    mine = row(found, measure="accuracy", network_width=10)
    assert mine["prototype"] == 0.964
    assert mine["ours"] == pytest.approx(setting.of("theory", 10)["accuracy"].mean())
    assert row(found, measure="accuracy", paths="good")["prototype"] == 0.94
    absent = row(found, measure="accuracy", network_width=30)
    assert absent["num_seeds"] == 0
    assert math.isnan(absent["ours"])
    assert "instead of" not in prototype.source(setting)


def test_it_has_no_numbers_of_an_own_network(results: Results) -> None:
    write(results, Law(variant="own", n=50))
    setting = only(results)
    assert prototype.beside(setting, means.networks(setting)).empty
