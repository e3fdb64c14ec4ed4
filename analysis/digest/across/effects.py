"""What a factor changes: each level minus the base, paired by seed, with verdicts.

A seed draws the training mosaics, the initial weights and the order, so the cells of one seed at a
level and at the base are a pair. The test mosaics of two settings may differ, and are held fixed:
intervals and verdicts are over seeds alone.
"""

from __future__ import annotations

import pandas as pd

from analysis.digest.across.factors import Family, Setting, value_text
from analysis.digest.across.order import pairs
from analysis.digest.pairs import decided, of_seeds
from analysis.groups import paradigm_order

EFFECT_COLUMNS = [
    "task", "factor", "level", "base", "first", "second", "subject", "metric", "num_pairs",
    "difference", "low", "high", "p", "p_holm", "verdict", "reason", "confidence",
]  # fmt: skip


def effects(family: Family, factor: str) -> pd.DataFrame:
    """What each level of a factor changes, and whether it changes a paradigm's advantage.

    Scores are those of `Comparison.tested` on the test split: of the chosen options, a diverged
    cell as SAIF 0 and accuracy 1/C. At a look before the planned seeds have ended nothing is
    decided. A seed that failed on either side is no pair. Holm's
    correction is over all rows of the table.

    Args:
        family: settings of one task.
        factor: one of its factors.

    Returns:
        One row a (level, subject, metric): `task`, `factor`, its values `level` and `base`,
        `first` and `second` (names of the setting at the level and of the base), `subject` (a
        paradigm, or two of which the first's advantage is meant, ``lvml - soft``), `metric`,
        `num_pairs` (common seeds), `difference` = level - base with the 95 % t interval `low` and
        `high`, or none where differences fall apart (see `analysis.digest.pairs.of_seeds`)
        (fractions; of an advantage a difference of differences), two-sided `p`, `p_holm`,
        `verdict` (at the level it is better or worse than at the base, or that is undecided),
        `reason` why it is undecided, else empty, and `confidence`. Empty where no setting differs
        from the base in this factor alone.
    """
    cases = [
        (level, subject, metric)
        for level in family.levels(factor)
        for subject in _subjects(family.base, level)
        for metric in family.base.comparison.metrics
        if metric in level.comparison.metrics
    ]
    records = []
    for level, subject, metric in cases:
        both = level, family.base
        values = _minus(*(_scores(each, subject, metric) for each in both))
        doubts = (each.comparison.looks.of(*subject).doubt for each in both)
        records.append(
            {
                **of_seeds(values),
                "lacks": [*dict.fromkeys(filter(None, doubts))],
                "task": family.task,
                "factor": factor,
                "level": value_text(level.values[factor]),
                "base": value_text(family.base.values[factor]),
                "first": level.name,
                "second": family.base.name,
                "subject": " - ".join(subject),
                "metric": metric,
            }
        )
    return pd.DataFrame(decided(records)[0], columns=EFFECT_COLUMNS)


def is_advantage(subject: str) -> bool:
    """Whether a subject of `effects` is the advantage of one paradigm over another."""
    return " - " in subject


def _subjects(*settings: Setting) -> list[tuple[str, ...]]:
    """What all settings have: their paradigms, and the advantages over soft."""
    ran = [set(each.comparison.cells["paradigm"]) for each in settings]
    common = paradigm_order(set.intersection(*ran))
    against_soft = pairs(each.comparison for each in settings)
    advantages = [pair for pair in against_soft if pair[1] == "soft" and set(pair) <= set(common)]
    return [*((name,) for name in common), *advantages]


def _scores(setting: Setting, subject: tuple[str, ...], metric: str) -> pd.Series:
    """Seed -> score of a paradigm, or advantage of the first over the second, fractions."""
    tested = setting.comparison.tested(*subject)
    rows = tested.loc[tested["split"] == "test", ["paradigm", "seed", metric]].set_index("seed")
    scores = [rows.loc[rows["paradigm"] == name, metric].astype(float) for name in subject]
    return _minus(*scores) if len(scores) > 1 else scores[0]


def _minus(first: pd.Series, second: pd.Series) -> pd.Series:
    """The difference on the common seeds; an unknown value stays unknown."""
    common = first.index.intersection(second.index).sort_values()
    return first[common] - second[common]
