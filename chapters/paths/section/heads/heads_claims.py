"""What the paper claims of the heads of trained networks: P7 to P9, see `path_claims`."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from analysis.forms import listed
from analysis.rules.claim import Claim, Finding, side
from chapters.paths.heads.heads_cell import RANDOM, SIMPLE
from chapters.paths.posterior.posterior_cell import THEORY
from chapters.paths.section.heads.heads_orders import differences
from chapters.paths.section.heads.heads_scores import scored
from chapters.paths.section.heads.heads_settings import ON_TEST, Trained
from chapters.paths.section.path_claims import Need, Test, claims_of, points_text


def claims(setting: Trained) -> list[Claim]:
    """P7 to P9; undecided where theory's temperature was chosen on the test split."""
    return claims_of(setting, _TESTS, ON_TEST if setting.chosen_on_test else "")


def _p7(setting: Trained) -> list[Finding]:
    """Figure 3e: without a head of low score (blue) little accuracy is lost (red)."""
    name = f"rank correlation of score at N={setting.reference:g} and lost accuracy"
    return [_above_zero(setting, name, scored(setting)["correlation"], "{:+.2f}".format)]


def _p8(setting: Trained) -> list[Finding]:
    """Figure 3f: accuracy stays high while heads with low scores are removed."""
    return [_against(setting, RANDOM)]


def _p9(setting: Trained) -> list[Finding]:
    """The paper compares with no other score; a simple one would do if it pruned as well."""
    methods = set(setting.cells["method"])
    findings = [_against(setting, name) for name in SIMPLE if name in methods]
    if missing := [name for name in SIMPLE if name not in methods]:
        findings.append(Finding("", reason=f"no cell of {listed(missing)}"))
    return findings


def _against(setting: Trained, other: str) -> Finding:
    name = f"mean accuracy by {setting.reference_text} minus by {other}"
    return _above_zero(setting, name, differences(setting, other))


def _above_zero(
    setting: Trained, name: str, values: pd.Series, form: Callable[[float], str] = points_text
) -> Finding:
    """Whether the values, one a seed, lie above 0; others of the setting's seeds are lost."""
    return side(name, values, 0, "above", len(setting.seeds) - len(values), form)


_AREA = (
    "mean accuracy of the trained network without 0, 1, ..., K heads (the area under its curve), "
    "where every layer keeps a head and nothing is trained again"
)

_BY_THEORY = Need([THEORY], "theory")

_TESTS = (
    Test(
        "P7",
        "Heads with low scores cost less: the higher the score that theory gives a head, the more "
        "accuracy the trained network loses without it.",
        "In every network, Spearman's rank correlation over its heads between theory's score at "
        "the smallest finite width and the accuracy lost on the test split without that head "
        "alone. Holds where the 95 % interval over networks lies above 0.",
        [_BY_THEORY],
        _p7,
    ),
    Test(
        "P8",
        "Pruning by theory beats random order.",
        f"The {_AREA}: heads removed by increasing score of theory at the smallest finite width, "
        "minus the mean over random orders, network by network. Holds where the 95 % interval "
        "over networks lies above 0. (The table of orders corrects for its six.)",
        [_BY_THEORY, Need([RANDOM], RANDOM)],
        _p8,
    ),
    Test(
        "P9",
        "Pruning by theory beats the simple rules.",
        f"The {_AREA}: by theory at the smallest finite width minus by (1) the norm of the "
        "values' weights, (2) the entropy of the attention and (3) the sensitivity of the loss to "
        "a mask of the head (Michel et al. 2019), network by network. Holds where all three 95 % "
        "intervals over networks lie above 0.",
        [_BY_THEORY, Need(SIMPLE, listed(SIMPLE))],
        _p9,
    ),
)
