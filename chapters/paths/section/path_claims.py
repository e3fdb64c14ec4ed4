"""The paper's claims about attention paths (P1 to P9): do they hold on this data?

The claims are read off figures 2 and 3 of the paper and its text. It shows one draw of data and
heads, or one network, and names no thresholds, so each test states what is measured, which
threshold decides and why. All numbers are of the test split; networks are paired by seed.

A network whose saddle point was not found has diverged: its seed is lost to what needs it, as is
one whose cell is missing while other networks of theory (for the claim about sampling, other
sampled ones; of trained networks, any other cell) have it. Where all seeds of a width that a claim
needs are lost, the claim is undecided. Chains that have not converged are not averaged, and leave
the claim about sampling undecided, unless other chains contradict it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from analysis.forms import points
from analysis.rules.claim import LOST, Claim, Finding, decided
from chapters.paths.section.networks import ALL
from chapters.paths.section.settings import UNCONVERGED, Setting


class Need(NamedTuple):
    """Networks that a claim takes: any of these methods with these paths, and both in words."""

    methods: Sequence[str]
    words: str
    paths: str = ALL


class Test(NamedTuple):
    """How one claim is tested.

    Attributes:
        name, statement, test: as `Claim` has them.
        needs: networks that it takes, at least one cell of each.
        findings: called with a setting that has seeds of each.
        variants: the variants that the claim is about; empty: all.
    """

    name: str
    statement: str
    test: str
    needs: Sequence[Need]
    findings: Callable[[Any], list[Finding]]
    variants: Sequence[str] = ()


def claims_of(setting: Setting, tests: Sequence[Test], doubt: str = "") -> list[Claim]:
    """The claims about the setting's variant.

    Args:
        setting: what they are tested on.
        tests: of all claims.
        doubt: why nothing is decided here, if so.
    """
    mine = (test for test in tests if not test.variants or setting.variant in test.variants)
    return [_claim(setting, test, doubt) for test in mine]


def _claim(setting: Setting, test: Test, doubt: str) -> Claim:
    said = (test.name, test.statement, f"{test.test} {LOST}")
    if doubt:
        return Claim(*said, "undecided", doubt, setting.name, doubt)
    cells = setting.cells
    for need in test.needs:
        there = cells[cells["method"].isin(need.methods) & (cells["paths"] == need.paths)]
        if there.empty:
            text = f"no cell of {need.words}"
            return Claim(*said, "not run", text, setting.name, text)
        if not there["status"].isin(["done", UNCONVERGED]).any():
            text = f"all cells of {need.words} diverged"
            return Claim(*said, "undecided", text, setting.name, text)
    return decided(*said, test.findings(setting), setting.name)


def points_text(share: float) -> str:
    """A difference of accuracies: 0.012 -> ``+1.2 points``."""
    return f"{points(share)} points"
