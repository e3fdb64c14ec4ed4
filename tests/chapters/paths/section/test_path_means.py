"""Settings of attention paths and of trained networks: which cells count, and in what.

Names, order and numbers of all tables are in the golden record.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.kinds import find
from chapters.paths.section.heads import heads_orders, heads_settings
from chapters.paths.section.theory import theory_settings
from study.results import Results, ResultsError
from tests.chapters.paths import heads_results
from tests.chapters.paths.heads_results import train
from tests.chapters.paths.heads_results import write as score
from tests.chapters.paths.path_results import NOISY, Law, write

TRAINED = heads_results.Law()
SMALL = heads_results.Law(heads=2)
"""Two layers of two heads: K = 2."""


def only(results: Results, asked: list[str] | None = None) -> Any:
    """The only setting of some cells, by default all."""
    cells = results.cells(asked)
    of = theory_settings if set(cells["kind"]) == {"posterior"} else heads_settings
    (setting,) = of.read(results, cells)
    return setting


# --- which cells count


def test_networks_of_other_learning_rates_are_not_lost(results):
    """Those that were taken apart are read, though only a cell of one was asked for."""
    for seed in (0, 1):
        train(results, TRAINED, seed)
        train(results, heads_results.Law(lr=1e-3), seed + 5)
    cell_id = score(results, TRAINED)
    score(results, TRAINED, "random", seed=1)
    setting = only(results)
    assert setting.seeds == [0, 1]
    assert list(setting.trained["lr"]) == [TRAINED.lr] * 2
    assert len(setting.recorded) == 6
    alone = only(results, [cell_id])
    assert (list(alone.cells["cell_id"]), len(alone.networks)) == ([cell_id], 1)


def test_of_chains_of_one_network_the_longest_counts(results):
    for draws in (500, 2_000, 1_000):
        write(results, Law(), "slice", draws=draws)
    setting = only(results)
    assert (len(setting.recorded), list(setting.cells["steps"])) == (3, [2_000])


@pytest.mark.parametrize(
    ("write_one", "law", "given", "fault"),
    [
        (write, Law(), {"test": {"predictor_mean": [1.0, math.nan]}}, "mean predictor"),
        (write, Law(), {"cell": {"order_parameter": [1.0] * 9}}, "order parameter"),
        (score, TRAINED, {"head_scores": [1.0]}, "head_scores"),
        (score, TRAINED, {"test": {"accuracy_pruned": [0.8] * 8}}, "accuracy_pruned"),
        (train, TRAINED, {"test": {"accuracy": None}}, "accuracy"),
    ],
)
def test_a_cell_that_lacks_something_is_refused(results, write_one, law, given, fault):
    cell_id = write_one(results, law, **given)
    with pytest.raises(ResultsError, match=f"cell {cell_id} has .*{fault}"):
        only(results)


@pytest.mark.parametrize("r_hat", [1.01, math.nan, None])
def test_what_diverged_or_has_not_converged_is_counted_and_in_no_mean(results, r_hat):
    """Nor is a sample compared with the theory of another seed."""
    for seed, accuracy in enumerate((0.9, 0.8)):
        write(results, NOISY, "slice", seed=seed, test={"accuracy": accuracy})
    write(results, NOISY, "slice", seed=2, cell={"r_hat": r_hat}, test={"accuracy": 0.1})
    write(results, NOISY, "slice", seed=3, status="diverged")
    for seed in (1, 2):
        write(results, NOISY, seed=seed, test={"accuracy": 0.7})
    setting = only(results)
    found = theory_settings.networks(setting).set_index("method").loc["slice"]
    assert [found[f"num_{name}"] for name in ("seeds", "diverged", "unconverged")] == [2, 1, 1]
    assert found["accuracy"] == pytest.approx(0.85)
    agreed = theory_settings.agreement(setting).iloc[0]
    assert (agreed["num_seeds"], agreed["accuracy_difference"]) == (1, pytest.approx(-0.1))


def test_only_leading_components_count(results):
    write(results, Law(), cell={"overlaps": [0.2] * 30 + [0.9]})
    write(results, Law(), seed=1, cell={"overlaps": None})
    np.testing.assert_array_equal(
        only(results).of("theory", 10)["largest_overlap"], [0.2, math.nan]
    )


# --- trained networks and their heads


def test_a_curve_that_one_network_lacks_is_not_known(results):
    score(results, SMALL)
    score(results, SMALL, seed=1, test={"accuracy_pruned": None})
    setting = only(results)
    assert heads_orders.pruning(setting).query("order == 'removal'")["accuracy"].isna().all()
    assert math.isnan(heads_orders.areas(setting).set_index("order").at["removal", "area"])


def test_a_lost_network_counts_where_differences_fall_apart(results):
    """Twelve are ahead by 30 points, but for one; two that theory lacks may lie with it.

    No advice is given: the t test would ask for fewer networks than there are.
    """
    for seed in range(14):
        score(results, SMALL, "random", seed=seed, test={"accuracy_pruned": [0.5] * 3})
    for seed in range(12):
        ahead = 0.3 + seed / 1_000 if seed else -0.001
        score(results, SMALL, seed=seed, test={"accuracy_pruned": [0.5 + ahead] * 3})
    found = heads_orders.paired(only(results)).set_index("second").loc["random"]
    assert (found["num_pairs"], found["num_lost"]) == (12, 2)
    assert found["p_signs"] < 0.002
    assert found["p"] == pytest.approx(stats.binomtest(11, 14).pvalue)
    assert found["verdict"] == "undecided"
    assert "would decide" not in find(results)[0].finding
