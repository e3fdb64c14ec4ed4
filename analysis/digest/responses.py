"""How the score of a paradigm responds to its learning rate and its switch point.

As the choice sees it: on validation, on the seeds that options are chosen by.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.digest.choose import by_preference
from analysis.groups import GROUP, OPTION, Select, in_order
from analysis.rules.stages import tuning

MAX_RATES = 12
"""So many learning rates can be told apart in one figure; of more, equal parts are made."""


def learning_rate_response(
    at_budget: pd.DataFrame, options: pd.DataFrame, select: Select = "accuracy"
) -> pd.DataFrame:
    """What each (first) learning rate reaches at its best on validation.

    Where the comparison tried more than `MAX_RATES` rates, as a random search does, their range
    is divided into `MAX_RATES` parts of equal ratio, and a part counts as one rate.

    Args:
        at_budget: as `analysis.equal_compute` gives it, of one comparison.
        options: as `analysis.digest.choose.options` gives it of that.
        select: metric that chooses among the options of one rate.

    Returns:
        One row a (paradigm, rate), sorted: the columns of GROUP and OPTION, `num_tried` options
        of that rate, `num_seeds`, `num_diverged`, the seed means of all metrics that options have
        with the lowest and the highest seed, `_low` and `_high` (fractions), and `chosen`, whether
        it is the group's choice. Where no option of a rate can be chosen, the scores are NaN and n
        is 0.
    """
    rates = np.sort(options["lr"].dropna().unique())
    part = options["lr"]
    if len(rates) > MAX_RATES:
        width = np.log(rates[-1] / rates[0]) / MAX_RATES
        part = np.log(part / rates[0]).floordiv(width).clip(upper=MAX_RATES - 1)
    parts = options.assign(_part=part)
    table = _response(at_budget, parts, select)
    smallest = parts.groupby([*GROUP, "_part"])["lr"].min().rename("_lr")
    table = table.join(smallest, on=[*GROUP, "_part"])
    return table.assign(lr=table["lr"].fillna(table["_lr"])).drop(columns=["_part", "_lr"])


def switch_response(
    at_budget: pd.DataFrame, options: pd.DataFrame, select: Select = "accuracy"
) -> pd.DataFrame:
    """What each switch point reaches on validation at its best learning rates.

    Args:
        at_budget, options, select: as for `learning_rate_response`.

    Returns:
        One row a (paradigm, switch point) of the paradigms that switch, with the columns of
        `learning_rate_response`; `switch_point` is a fraction of the budget.
    """
    switching = options[options["switch_point"].notna()]
    parts = switching.assign(_part=switching["switch_point"])
    table = _response(at_budget, parts, select)
    return table.assign(switch_point=table["_part"]).drop(columns="_part")


def _response(at_budget: pd.DataFrame, options: pd.DataFrame, select: Select) -> pd.DataFrame:
    """The best option of each (group, `_part`), scored; `_part` is a column of `options`."""
    keys = [*GROUP, "_part"]
    ranked = by_preference(options, select)
    chosen = ranked.assign(chosen=~ranked.duplicated(GROUP)).drop_duplicates(keys)
    table = options.groupby(keys).size().rename("num_tried").reset_index()
    table = table.merge(chosen[[*keys, *OPTION, "chosen"]], on=keys, how="left")
    table["chosen"] = table["chosen"].eq(True)
    rows = tuning(at_budget)
    start = "validation_"
    scored = [name.removeprefix(start) for name in map(str, options) if name.startswith(start)]
    table = table.join(_scores(table, rows[rows["split"] == "validation"], scored))
    table = in_order(table, keys)
    front = [*GROUP, *OPTION, "num_tried", "num_seeds", "num_diverged"]
    return table[[*front, *(c for c in table if c not in front)]]


def _scores(picks: pd.DataFrame, rows: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Mean, lowest and highest seed of each pick, a row a pick."""
    found = picks[GROUP + OPTION].reset_index(names="_row")
    found = found[found["schedule"].notna()].merge(rows, on=GROUP + OPTION).sort_values("seed")
    seeds = found.groupby("_row")
    table = seeds.agg(num_seeds=("seed", "size"), num_diverged=("diverged", "sum"))
    for metric in metrics:
        for end, how in (("", "mean"), ("_low", "min"), ("_high", "max")):
            table[f"{metric}{end}"] = getattr(seeds[metric], how)(skipna=False).astype(float)
    counts = ["num_seeds", "num_diverged"]
    table = table.reindex(picks.index)
    return table.astype(float).fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int))
