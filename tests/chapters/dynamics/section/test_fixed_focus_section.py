"""Fixed-focus cells: their curves, the rate that is chosen, figures, and the closed form.

Words, names and tables are in the golden record.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.groups import PARADIGMS
from analysis.kinds import find
from analysis.section.section import Section
from chapters.dynamics.linear_orthogonal import incentive_slope, trajectory
from chapters.dynamics.section.focus import MEASURES, Focus, closed_form, final, read
from study.results import Results
from tests.chapters.dynamics.focus_results import EPOCHS, TIMES, focus_cell, record, record_all
from tests.made_up.comparisons import NUM_CLASSES
from tests.made_up.summaries import metrics_of


def focus_in(results: Results) -> Focus:
    found = read(results, results.cells())
    assert found
    return found


def last(focus: Focus) -> pd.DataFrame:
    return final(focus.curves)


def only(results: Results) -> Section[Focus]:
    (found,) = find(results)
    assert isinstance(found.subject, Focus)
    return found


def test_curves_are_means_over_seeds_of_the_train_split_against_epochs(results):
    """Of what did not diverge; figure 2c draws them."""
    record_all(results, seeds=3)
    record(results, focus_cell("hard", 0.2, 3), 9.0, status="diverged")
    found = only(results)
    hard = found.subject.curves.query("paradigm == 'hard' and alpha == 0.2")
    ends = np.array([0.8, 0.9, 1.0])
    interval = stats.t.interval(0.95, 2, ends.mean(), stats.sem(ends))
    numbers = hard[["loss", "loss_low", "loss_high", "epoch", "num_seeds"]].iloc[-1].tolist()
    assert numbers == pytest.approx([0.9, *interval, EPOCHS, 3])
    assert "1 at alpha 0.2" in found.text()
    lines = found.pictures[0].figure.axes[1].lines
    line = next(each for each in lines if len(each.get_xdata()) == len(hard))
    np.testing.assert_allclose(line.get_xydata(), hard[["epoch", "loss"]])


def test_values_that_are_not_known_are_missing(results):
    """Of one seed each, which has no interval."""
    unknown = {"incentive": [math.nan] * 11, "incentive_slope": [math.inf] * 11}
    for name in PARADIGMS:
        record(results, focus_cell(name), 0.5, **unknown)
    found = only(results)
    curves = found.subject.curves
    assert curves[["incentive", "incentive_slope", "loss_low"]].isna().all(axis=None)
    assert curves["loss"].notna().all()
    assert found.pictures[1].png.startswith(b"\x89PNG")
    assert not any("incentive" in name for run in found.summaries() for name in metrics_of(run))


# --- one learning rate a paradigm


@pytest.mark.parametrize(
    ("accuracies", "others", "chosen", "means"),
    [
        # One rate for all alphas; the best at each alpha by itself is another one.
        ({(0.1, 0.2): 0.7, (0.1, 0.8): 0.8, (0.2, 0.2): 0.4, (0.2, 0.8): 0.9, (0.3, 0.2): 0.72,
          (0.3, 0.8): 0.6}, {}, 0.1, [0.76, 0.66, 0.67]),
        # A tie goes to the lower loss, then to the smaller rate.
        ({(0.1, 0.2): 0.9, (0.2, 0.2): 0.9, (0.3, 0.2): 0.9},
         {(0.1, 0.2): {"validation_loss": 0.5}}, 0.2, [0.91, 0.91, 0.91]),
        # A rate that lacks cells, or was stopped early, cannot be chosen.
        ({(0.1, 0.8): 0.5, (0.2, 0.8): 0.9, (0.3, 0.8): 0.8},
         {(0.2, 0.8): {"seeds": 1}, (0.3, 0.8): {"status": "censored"}}, 0.1, [0.51, 0.9, 0.81]),
        # Accuracy grows with alpha: rates that lack other cells are compared on common ones.
        ({(0.1, 0.2): 0.2, (0.1, 0.8): 0.8, (0.2, 0.2): 0.3, (0.2, 0.8): 0.9},
         {(0.1, 0.2): {"seeds": 1}, (0.2, 0.8): {"seeds": 1}}, 0.2, [0.5, 0.6]),
        # A diverged cell counts as chance.
        ({(0.1, 0.2): 0.3, (0.2, 0.2): 0.5}, {(0.2, 0.2): {"status": "diverged"}},
         0.1, [0.31, 1 / NUM_CLASSES]),
    ],
)  # fmt: skip
def test_the_learning_rate_is_chosen_by_validation(results, accuracies, others, chosen, means):
    """(rate, alpha) -> accuracy of seed 0, and what else is not as usual."""
    for (lr, alpha), accuracy in accuracies.items():
        given = {"seeds": 2} | others.get((lr, alpha), {})
        for seed in range(given.pop("seeds")):
            cell = focus_cell("soft", alpha, seed, lr)
            record(results, cell, lr, accuracy=accuracy + 0.02 * seed, **given)
    focus = focus_in(results)
    assert focus.choice["lr"].tolist() == [chosen]
    assert focus.options["validation_accuracy"].tolist() == pytest.approx(means)
    assert last(focus)["loss"].tolist() == pytest.approx([chosen] * len(last(focus)))


def test_rates_that_were_all_stopped_early_leave_no_curve_and_a_gap(results):
    record_all(results, paradigms=("soft", "lvml"), alphas=(0.8,))
    record(results, focus_cell("hard", 0.8), status="censored")
    found = only(results)
    assert set(found.subject.choice["paradigm"]) == {"soft", "lvml"}
    assert "hard: no learning rate can be chosen" in found.text()
    assert [run.params["paradigm"] for run in found.summaries()] == ["soft", "lvml"]
    for picture in found.pictures:
        assert [text.get_text() for text in picture.figure.axes[1].texts] == ["no cells"]


# --- the closed form


def test_the_closed_form_is_theorem_1_at_the_times_of_linear_models(results):
    times = 300 * np.array(TIMES)
    for name in PARADIGMS:
        record(results, focus_cell(name, 0.8))
        linear = {"task": "linear-orthogonal", "architecture": "linear", "num_classes": 20}
        record(results, focus_cell(name, 0.8, **linear), flow_time=times)
    exact = closed_form(focus_in(results))
    assert len(exact) == len(PARADIGMS) * len(times)
    for name, rows in exact.groupby("paradigm"):
        theory = trajectory(name, 5, 20, times, 0.8)
        slope = incentive_slope(name, 0.8, theory["mu"], 20)
        expected = theory[["loss", "incentive"]].assign(incentive_slope=slope)
        np.testing.assert_array_equal(rows[[*MEASURES]], expected)
