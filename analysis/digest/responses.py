"""How the score of a paradigm responds to its learning rate and its switch point.

As the choice sees it: on validation, on the seeds that options are chosen by.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.digest.choose import by_preference
from analysis.groups import GROUP, OPTION, Select, in_order, rows_of
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
        One row a (paradigm, rate), sorted: the columns of its best option, with the metrics by
        their names, the lowest and the highest seed of each, `_low` and `_high` (fractions), and
        `chosen`, whether it is the group's choice. Where no option of a rate can be chosen, the
        scores are NaN and `num_seeds` is 0.
    """
    rates = options["lr"]
    if rates.nunique() > MAX_RATES:
        rates = pd.cut(np.log(rates), MAX_RATES, labels=False)
    return _response(at_budget, options, select, "lr", rates)


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
    return _response(at_budget, options, select, "switch_point", options["switch_point"])


def _response(
    at_budget: pd.DataFrame, options: pd.DataFrame, select: Select, axis: str, part: pd.Series
) -> pd.DataFrame:
    """The best option of each group and part of an axis; a missing part has no row."""
    option, keys = GROUP + OPTION, [*GROUP, "part"]
    tried = options.assign(part=part, chosen=False).dropna(subset="part").sort_values(axis)
    ranked = by_preference(tried, select)
    best = ranked.assign(chosen=~ranked.duplicated(GROUP)).drop_duplicates(keys)
    rows = tuning(at_budget)
    seeds = rows_of(best, rows[rows["split"] == "validation"]).groupby(option, dropna=False)
    scores = map(str, options.filter(regex="^validation_"))
    metrics = [name.removeprefix("validation_") for name in scores]
    lowest = seeds[metrics].min(skipna=False).add_suffix("_low")
    highest = seeds[metrics].max(skipna=False).add_suffix("_high")
    spread = pd.concat([lowest, highest], axis=1).reset_index()
    scored = best.rename(columns=lambda name: name.removeprefix("validation_"))
    # Where no option of a part can be chosen, its smallest stands for it, without scores.
    others = tried[[*option, "part", "chosen"]].assign(num_seeds=0)
    shown = pd.concat([scored.merge(spread, "left", option), others]).drop_duplicates(keys)
    return in_order(shown, keys).drop(columns="part")
