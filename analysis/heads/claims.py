"""The paper's claims about the heads of trained networks (P7 to P9): do they hold on this data?

The claims are read off figure 3e and f of the paper and its text. It shows one network and names
no thresholds, so each test here states what is measured, which threshold decides and why. All
numbers are of the test split; a network is a seed, and all is paired by it.

Every seed of the setting counts: one whose network diverged, whose saddle point was not found, or
whose cell is missing is lost to what needs it. Where all seeds that a claim needs are lost, it is
undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from analysis.attention_paths.networks import THEORY
from analysis.attention_paths.words import points_text
from analysis.heads.means import scored
from analysis.heads.methods import RANDOM, RULES
from analysis.heads.paired import differences
from analysis.heads.settings import Setting
from analysis.section.claim import LOST, Claim, Finding, decided, side
from analysis.words import listed


def claims(setting: Setting) -> list[Claim]:
    """P7 to P9, in this order."""
    return [_claim(setting, test) for test in _TESTS]


class _Test(NamedTuple):
    """How one claim is tested.

    Attributes:
        name, statement, test: as `Claim` has them.
        needs: methods that it takes besides theory; one of them is enough.
        findings: called where there are cells of them.
    """

    name: str
    statement: str
    test: str
    needs: Sequence[str]
    findings: Callable[[Setting], list[Finding]]


def _claim(setting: Setting, test: _Test) -> Claim:
    said = (test.name, test.statement, f"{test.test} {LOST}")
    if setting.chosen_on_test:
        text = "the temperature was chosen on the test episodes"
        return Claim(*said, "undecided", text, setting.name, text)
    for methods in ((THEORY,), test.needs):
        cells, found = (
            table[table["method"].isin(methods)] for table in (setting.cells, setting.orders)
        )
        if methods and cells.empty:
            text = f"no cell of {listed(methods)}"
            return Claim(*said, "not run", text, setting.name, text)
        if methods and found.empty:
            text = f"all cells of {listed(methods)} diverged"
            return Claim(*said, "undecided", text, setting.name, text)
    return decided(*said, test.findings(setting), setting.name)


# --- what they measure


def _p7(setting: Setting) -> list[Finding]:
    """Figure 3e: without a head of low score (blue) little accuracy is lost (red)."""
    found = scored(setting)
    lost = len(setting.seeds) - len(found)
    name = f"rank correlation of score at N={setting.reference:g} and lost accuracy"
    return [side(name, found["correlation"], 0, "above", lost, "{:+.2f}".format)]


def _p8(setting: Setting) -> list[Finding]:
    """Figure 3f: accuracy stays high while heads with low scores are removed."""
    return [_against(setting, RANDOM)]


def _p9(setting: Setting) -> list[Finding]:
    """The paper compares with no other score; a simple one would do if it pruned as well."""
    there = [name for name in RULES if name in set(setting.cells["method"])]
    missing = [name for name in RULES if name not in there]
    findings = [_against(setting, name) for name in there]
    if missing:
        reason = f"no cell of {listed(missing)}"
        findings.append(Finding("", reason=reason))
    return findings


def _against(setting: Setting, other: str) -> Finding:
    values, lost = differences(setting, other)
    name = f"mean accuracy by theory N={setting.reference:g} minus by {other}"
    return side(name, values, 0, "above", lost, points_text)


# --- what they say


_AREA = (
    "mean accuracy of the trained network without 0, 1, ..., K heads (the area under its curve), "
    "where every layer keeps a head and nothing is trained again"
)

_TESTS = (
    _Test(
        "P7",
        "Heads with low scores cost less: the higher the score that theory gives a head, the more "
        "accuracy the trained network loses without it.",
        "In every network, Spearman's rank correlation over its heads between theory's score at "
        "the smallest finite width and the accuracy lost on the test split without that head "
        "alone. Holds where the 95 % interval over networks lies above 0.",
        (),
        _p7,
    ),
    _Test(
        "P8",
        "Pruning by theory beats random order.",
        f"The {_AREA}: heads removed by increasing score of theory at the smallest finite width, "
        "minus the mean over random orders, network by network. Holds where the 95 % interval "
        "over networks lies above 0. (The table of orders corrects for its six.)",
        (RANDOM,),
        _p8,
    ),
    _Test(
        "P9",
        "Pruning by theory beats the simple rules.",
        f"The {_AREA}: by theory at the smallest finite width minus by (1) the norm of the "
        "values' weights, (2) the entropy of the attention and (3) the sensitivity of the loss to "
        "a mask of the head (Michel et al. 2019), network by network. Holds where all three 95 % "
        "intervals over networks lie above 0.",
        RULES,
        _p9,
    ),
)
