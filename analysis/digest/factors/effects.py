"""What holds across settings: what a factor changes, and whether the order of paradigms stays.

An effect is a level minus the base, paired by seed, with a verdict. A seed draws the training
mosaics, the initial weights and the order, so the cells of one seed at a level and at the base are
a pair. The test mosaics of two settings may differ, and are held fixed: intervals and verdicts are
over seeds alone.

Verdicts on the order of paradigms are those of `Comparison.paired`: nothing tests them again.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison
from analysis.digest.factors.families import Family, families, settings_table, value_text
from analysis.digest.pairs import decided, of_seeds
from analysis.groups import STAND_INS, paradigm_order
from analysis.rules.learning import Scale

EFFECT_COLUMNS = [
    "task", "factor", "level", "base", "first", "second", "subject", "metric", "num_pairs",
    "difference", "low", "high", "p", "p_holm", "verdict", "reason", "confidence",
]  # fmt: skip

Pair = tuple[str, str]
"""First and second paradigm; a difference is the first minus the second."""

VERDICTS = ["better", "worse", "undecided"]
"""Of the first paradigm."""

_SAMPLED = {"lvml": ("lvml-sampled",), **STAND_INS}
"""Exact paradigm -> those that see samples of what it sees."""


def across_tables(found: Sequence[Comparison]) -> dict[str, pd.DataFrame]:
    """Stem of a file -> table: ``across-settings`` and ``across-effects``; none that is empty."""
    tables = {"across-settings": settings_table(found), "across-effects": effects(found)}
    return {stem: table for stem, table in tables.items() if len(table)}


def effects(found: Sequence[Comparison]) -> pd.DataFrame:
    """What each level of a factor changes, and whether it changes a paradigm's advantage.

    Scores are those of `Comparison.tested` on the test split: of the chosen options, a diverged
    cell as SAIF 0 and accuracy 1/C. At a look before the planned seeds have ended nothing is
    decided. A seed that failed on either side is no pair. Holm's correction is over all rows of a
    factor.

    Args:
        found: as `analysis.digest.compare.compare` gives them.

    Returns:
        One row per (task, factor, level, subject, metric): the values `level` and `base`,
        `first` and `second` (names of the setting at the level and of the base), `subject` (a
        paradigm, or two of which the first's advantage is meant, ``lvml - soft``), `metric`,
        `num_pairs` (common seeds), `difference` = level - base with the 95 % t interval `low` and
        `high`, or none where differences fall apart (see `analysis.digest.pairs.of_seeds`)
        (fractions; of an advantage a difference of differences), two-sided `p`, `p_holm`,
        `verdict` (at the level it is better or worse than at the base, or that is undecided),
        `reason` why it is undecided, else empty, and `confidence`. Empty where no setting differs
        from a base in one factor alone.
    """
    rows = [
        row
        for family in families(found)
        for factor in family.factors
        for row in decided([*_of_factor(family, factor)])
    ]
    return pd.DataFrame(rows, columns=EFFECT_COLUMNS)


def _of_factor(family: Family, factor: str) -> Iterator[dict[str, Any]]:
    """The rows of one factor, without verdicts."""
    base = family.base
    known = base.comparison.measures
    for level in family.levels(factor):
        both = level.comparison, base.comparison
        for subject in _subjects(*both):
            doubts = {each.looks.of(*subject).doubt for each in both}
            differences = _minus(*(_scores(each, subject) for each in both))
            for metric, values in differences.items():
                yield {
                    **of_seeds(values, Scale(is_share=known[str(metric)].is_share)),
                    "lacks": sorted(doubts - {""}),
                    "task": family.task,
                    "factor": factor,
                    "level": value_text(level.values[factor]),
                    "base": value_text(base.values[factor]),
                    "first": level.name,
                    "second": base.name,
                    "subject": " - ".join(subject),
                    "metric": metric,
                }


def _subjects(one: Comparison, other: Comparison) -> list[tuple[str, ...]]:
    """What both have: their paradigms, and the advantages over soft."""
    common = {*one.cells["paradigm"]}.intersection(other.cells["paradigm"])
    of_each = [(name,) for name in paradigm_order(common)]
    return of_each + [
        pair for pair in pairs([one, other]) if pair[1] == "soft" and common.issuperset(pair)
    ]


def _scores(comparison: Comparison, subject: tuple[str, ...]) -> pd.DataFrame:
    """A row per seed, a column per metric: of a paradigm, or its advantage over a second one."""
    tested = comparison.tested(*subject)
    rows = tested[tested["split"] == "test"].set_index("seed").sort_index()
    scores = rows[[*comparison.metrics]].astype(float)
    return functools.reduce(_minus, (scores[rows["paradigm"] == name] for name in subject))


def _minus(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The difference on common seeds, in common metrics; an unknown value stays unknown."""
    ours, theirs = one.align(other, join="inner")
    return ours - theirs


def pairs(found: Iterable[Comparison]) -> list[Pair]:
    """The pairs against soft, against hard, and of sampled paradigms against their exact one.

    The first of each is the latest paradigm. Where no setting has exact hard attention, what
    stands for it is taken; where there are no such pairs, all that there are.
    """
    tables = [comparison.paired for comparison in found]
    there = {pair for each in tables for pair in zip(each["first"], each["second"], strict=True)}
    names = paradigm_order(itertools.chain(*there))[::-1]
    hard = next((name for name in ("hard", *STAND_INS["hard"]) if name in names), "hard")
    every = [
        *((first, second) for second in ("soft", hard) for first in names),
        *((sampled, exact) for exact, each in _SAMPLED.items() for sampled in each),
    ]
    return [*dict.fromkeys(pair for pair in every if pair in there)] or sorted(there)


def verdicts(found: Sequence[Comparison]) -> pd.DataFrame:
    """The verdicts of each comparison on `pairs`, side by side.

    Returns:
        One row per (first, second, setting, metric), in the order of the pairs: `setting` is the
        number of the comparison in `found`; `difference` (a fraction); `verdict`, of `VERDICTS`.
    """
    columns = ["first", "second", "metric", "difference", "verdict"]
    tables = [each.paired[columns].assign(setting=i) for i, each in enumerate(found)]
    return pd.DataFrame(pairs(found), columns=columns[:2]).merge(pd.concat(tables))
