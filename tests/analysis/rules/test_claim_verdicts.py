"""How claims are decided: simulated at the border of what they say, and by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from analysis.rules.claim import Evidence, Finding, decided, evidence
from analysis.rules.statistics import on_logit_scale
from benchmarks.support.calibration_claims import KEPT, falsely_decided

REPLICATES = 400
# A share of .05 of so many studies exceeds this in one of 1,000.
MOST = stats.binom.ppf(0.999, REPLICATES, 0.05) / REPLICATES


@pytest.mark.parametrize("n", [6, 12])
@pytest.mark.parametrize("border", KEPT, ids=lambda border: border.name)
def test_false_verdicts_are_few_at_the_border(border, n):
    assert max(falsely_decided(border, n, REPLICATES)) <= MOST


def test_p_is_that_of_scipy():
    values = np.array([0.11, 0.12, 0.09, 0.14, 0.13, 0.1, 0.12])
    expected = stats.ttest_1samp(values, 0.1).pvalue
    assert evidence(values, 0.1, "above") == Evidence(True, pytest.approx(expected))
    assert evidence(values, 0.1, "below") == Evidence(False, pytest.approx(expected))
    signs = stats.binomtest(5, 8).pvalue
    assert evidence(values, 0.1, "above", lost=1) == Evidence(True, pytest.approx(signs))


def test_shares_must_lie_beyond_a_threshold_on_the_logit_scale_too():
    """Where that is nearer: below .1 for few large shares among many small ones."""
    small = np.array([0.01, 0.02, 0.03, 0.01, 0.09, 0.12])
    interval = stats.ttest_1samp(small, 0.1).confidence_interval(0.95)
    assert interval.high < 0.1 < on_logit_scale(small.mean(), *interval)[1]
    found = [evidence(small, 0.1, "below", are_shares=shares).p for shares in (False, True)]
    assert found[0] < 0.05 < found[1]
    large = small + 0.15
    plain, of_shares = (evidence(large, 0.1, "above", are_shares=s) for s in (False, True))
    assert plain == of_shares


@pytest.mark.parametrize("n", range(6, 16))
def test_how_many_seeds_may_be_lost(n):
    allowed = max(0, math.floor(n / 3) - 2)
    for lost in range(n // 2):
        found = evidence(np.linspace(1, 2, n - lost), 0, "above", lost)
        assert (found.p < 0.05) == (lost <= allowed), (n, lost)


def test_values_that_do_not_vary_leave_the_sign_test():
    assert evidence([0.0] * 6, 0.1, "below") == Evidence(True, 2 / 2**6)
    assert evidence([0.1] * 6, 0.1, "below").p == 1


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([0.0] * 5, "fewer than 6 seeds decide nothing"),
        ([0.0] * 6 + [math.nan], "a number is not known"),
        ([0.0] * 3 + [0.9] * 3, "its seeds fall apart"),
    ],
)
def test_what_is_not_known_decides_nothing(values, why):
    found = evidence(values, 0.1, "below")
    assert math.isnan(found.p)
    assert found.why == why


YES, NO, OPEN = Evidence(True, 1e-6), Evidence(False, 0.02), Evidence(True, 0.3)
AGAINST = Evidence(False, 0.001)


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([Finding("", [YES, YES])], "holds"),
        ([Finding("", [YES, OPEN])], "undecided"),
        ([Finding("", [NO])], "does not hold"),
        # A part is refuted at the level over those that can refute: .02 < .05 / 2.
        ([Finding("", [NO, YES])], "does not hold"),
        ([Finding("", [NO, YES, YES])], "undecided"),
        ([Finding("", [NO, YES]), Finding("", [YES], role="for")], "does not hold"),
        ([Finding("", [YES], reason="a reason")], "undecided"),
        # What almost any run has must be so but is no evidence.
        ([Finding("", [YES], role="against")], "undecided"),
        ([Finding("", [YES]), Finding("", [YES], role="against")], "holds"),
        ([Finding("", [YES]), Finding("", [OPEN], role="against")], "undecided"),
        ([Finding("", [YES]), Finding("", [AGAINST], role="against")], "does not hold"),
        ([Finding("", [AGAINST], role="for")], "undecided"),
        ([Finding("shown")], "undecided"),
    ],
    ids=itertools.count(),
)
def test_findings_decide_a_claim(findings, expected):
    assert decided("", "", "", findings).verdict == expected
    assert decided("", "", "", findings, doubt="interim").verdict == "undecided"


def test_what_is_corrected_already_is_refuted_at_the_level_itself():
    assert decided("", "", "", [Finding("", [NO, YES, YES])], parts=1).verdict == "does not hold"
