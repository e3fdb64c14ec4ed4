"""What is left of trained networks without heads, in theory's order against every other one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from analysis.digest.pairs import PAIRED_COLUMNS, of_seeds, with_verdicts
from analysis.forms import Row
from analysis.rules.statistics import MIN_SEEDS, sign_test
from chapters.paths.heads.heads_cell import GREEDY, RANDOM, SIMPLE, SOLVED
from chapters.paths.posterior.posterior_cell import THEORY
from chapters.paths.section.heads.heads_settings import ON_TEST, Trained
from chapters.paths.section.means import by_entry, over_seeds
from chapters.paths.section.networks import NETWORK, network_text, of_network
from chapters.paths.section.settings import once

REMOVAL, REVERSE = "removal", "reverse"
"""`order` of a scorer: heads with low scores first, or the same backwards."""

OTHERS = (*SIMPLE, RANDOM, REVERSE, GREEDY)
"""What theory's order is held against, in the order of the table; not the bound, which no order
can beat."""

ORDER = [*NETWORK, "order"]
"""Columns that name an order of removal."""

_CURVES = {"accuracy_pruned": REMOVAL, "accuracy_pruned_reverse": REVERSE}
_NOT_OF_HEADS = {
    "m", "later_seeds", "ended_seeds", "planned_seeds", "above", "num_images", "image_se",
    "num_backgrounds", "background_se", "learned_first", "learned_second", "given_first",
    "given_second", "p_learned",
}  # fmt: skip
_PAIRED = [*(name for name in PAIRED_COLUMNS if name not in _NOT_OF_HEADS), "num_lost"]


@once
def orders(setting: Trained) -> pd.DataFrame:
    """What is left of every network in each order of removal.

    Returns:
        One row a seed and order: `ORDER`, `seed`, `status`, `accuracy` (K + 1,): that on the test
        split without 0, 1, ..., K heads, and their mean, `area`; both NaN where it is not known.
    """
    of_rows = [*NETWORK, "seed", "status"]
    curves = setting.rows[[*of_rows, *_CURVES]].rename(columns=_CURVES)
    table = curves.melt(of_rows, var_name="order", value_name="accuracy", ignore_index=False)
    table = table.sort_index(kind="stable", ignore_index=True)
    unknown = np.full(setting.num_removed + 1, math.nan)
    known = table["accuracy"].map(lambda curve: curve if len(curve) else unknown)
    return table.assign(accuracy=known, area=known.map(np.mean).astype(np.float64))


def _known(setting: Trained) -> pd.DataFrame:
    """Of `orders` those that any seed of their scorer has."""
    table = orders(setting)
    return table[table.groupby(ORDER)["area"].transform("count") > 0]


@once
def pruning(setting: Trained) -> pd.DataFrame:
    """Accuracy on the test split without more and more heads.

    Returns:
        One row an order and number of heads: `ORDER`, `removed`, `num_seeds`, and `accuracy` with
        `_low` and `_high`, NaN where it is not known of a seed.
    """
    table = by_entry(_known(setting), "removed", ["accuracy"])
    table["removed"] -= 1
    return over_seeds(table, [*ORDER, "removed"], ["accuracy"])


def areas(setting: Trained) -> pd.DataFrame:
    """The area under each of these curves: mean accuracy without 0, 1, ..., K heads.

    Returns:
        One row an order: `ORDER`, `num_seeds`, and `area` with `_low` and `_high`.
    """
    return over_seeds(_known(setting), ORDER, ["area"])


def shown_orders(setting: Trained) -> pd.DataFrame:
    """Of `pruning`, theory at the reference width in both orders, and the rules in that which
    removes low scores first; others have tables of data.
    """
    table = pruning(setting)
    theory = (table["method"] == THEORY) & (table["network_width"] == setting.reference)
    rules = ~table["method"].isin(SOLVED) & (table["order"] == REMOVAL)
    return table[theory | rules].reset_index(drop=True)


def order_text(row: Row) -> str:
    """``theory N=10``, ``theory N=10 reversed``, ``weight-norm``, of a row with `ORDER`."""
    return network_text(row) + " reversed" * (row["order"] == REVERSE)


# --- theory against every other order


@once
def paired(setting: Trained) -> pd.DataFrame:
    """Theory against every order that there is, as one family of tests.

    Returns:
        One row an order: the columns of `analysis.digest.pairs.paired_table` that are not
        about images, with the metric ``area`` (mean accuracy on the test split without 0, 1, ...,
        K heads, a fraction), and `num_lost`, seeds without a difference, which count against
        either verdict: p is no smaller than that of a sign test in which they lie on the other
        side; empty without theory.
    """
    methods = set(setting.cells["method"])
    there = [name for name in OTHERS if name == REVERSE or name in methods]
    records: list[dict[str, Any]] = []
    for other in there if THEORY in methods else ():
        values = differences(setting, other)
        mine, lost = area(setting, THEORY)[values.index], len(setting.seeds) - len(values)
        numbers = of_seeds(values)
        if lost and len(values) >= MIN_SEEDS and not math.isnan(numbers["p"]):
            alike = int((np.sign(values) == np.sign(values.mean())).sum())
            numbers["p"] = max(numbers["p"], sign_test(alike, len(values) + lost))
        records.append(
            {
                **numbers,
                "task": setting.variant,
                "comparison_id": setting.id,
                "metric": "area",
                "first": setting.reference_text,
                "second": other,
                "num_lost": lost,
                "mean_first": mine.mean(skipna=False),
                "mean_second": (mine - values).mean(skipna=False),
            }
        )
    table = pd.DataFrame(with_verdicts(records), columns=_PAIRED)
    if setting.chosen_on_test:
        reason = table["reason"].mask(table["reason"] == "", ON_TEST)
        table = table.assign(verdict="undecided", reason=reason)
    return table


def differences(setting: Trained, other: str) -> pd.Series:
    """Area of theory at the reference width minus another order's, by seeds that have both.

    Args:
        setting: the setting.
        other: one of `OTHERS`.
    """
    sides = {"theory": area(setting, THEORY), "other": area(setting, other)}
    both = pd.concat(sides, axis="columns", join="inner").sort_index()
    return both["theory"] - both["other"]


def area(setting: Trained, name: str) -> pd.Series:
    """By seed, the mean accuracy without 0, 1, ..., K heads; NaN where it is not known.

    Args:
        setting: the setting.
        name: one of `OTHERS` or theory; both orders of that are of theory at the reference width.
    """
    table, of_theory = orders(setting), name in (THEORY, REVERSE)
    network = (THEORY, setting.reference) if of_theory else (name,)
    rows = of_network(table, *network)
    order = name if name == REVERSE else REMOVAL
    return rows[rows["order"] == order].set_index("seed")["area"]
