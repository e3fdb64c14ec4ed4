"""Chooses an option of each paradigm on validation.

An *option* that was tried is one learning rate, last learning rate and switch point of a paradigm
(`analysis.groups`), run with several seeds; the seeds that tune choose (`analysis.rules.stages`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.digest.at_cut import cut_cells
from analysis.digest.cut import Cut
from analysis.digest.measures import METRICS
from analysis.digest.read import Source, opened
from analysis.groups import (
    GROUP,
    OPTION,
    Select,
    best_first,
    in_order,
    is_recorded,
    rows_of,
)
from analysis.rules.stages import tuning
from study.results import Results, ResultsError, unknown

ROUNDING = 1e-12

STOPPED, UNSWITCHED, SEEDS, SCORE = "stopped", "unswitched", "seeds", "score"
"""Why an option cannot be chosen, see `barred`."""


def summarised_metrics(columns: Iterable[Hashable]) -> list[str]:
    """The metrics of a summary with these columns: those whose spreads it has, else `METRICS`."""
    end = "_seed_se"
    found = [name.removesuffix(end) for name in map(str, columns) if name.endswith(end)]
    return found or [*METRICS]


def known_metrics(at_budget: pd.DataFrame, own: Iterable[str] = ()) -> list[str]:
    """The metrics that any cell of a comparison has recorded; `METRICS` where none has.

    Args:
        at_budget: as `equal_compute` gives it.
        own: measures of recorded runs, in which case they are columns of `at_budget`.
    """
    known = [name for name in (*METRICS, *own) if at_budget[f"last_{name}"].notna().any()]
    return known or [*METRICS]


def asked_metrics(
    at_budget: pd.DataFrame,
    own: Iterable[str],
    select: Select | None,
    test: Sequence[str] | None,
) -> tuple[Select, Sequence[str]]:
    """The metric that chooses in a comparison, and those that are tested.

    Args:
        at_budget: as `equal_compute` gives it, of one comparison.
        own: measures of recorded runs, of any comparison.
        select: the metric asked for; None: accuracy, or the only one that is known.
        test: the metrics asked for; None: all that are known.

    Raises:
        ResultsError: no cell has recorded one that was asked for, or `select` has to be given.
    """
    task = at_budget["task"].iloc[0]
    known = known_metrics(at_budget, sorted(own, key=lambda name: name != select))
    usual = "accuracy" if "accuracy" in known else known[0]
    if select is None and usual != "accuracy" and len(known) > 1:
        raise ResultsError(
            f"the runs of {task} have no accuracy to choose options by. Name the measure that "
            f"chooses, --select {usual}; recorded: {', '.join(known)}."
        )
    tested = [test] if isinstance(test, str) else [*(test or known)]
    # Where no cell of a study has a usual one, no option can be chosen, which is said there.
    may_choose = known if is_recorded(at_budget).any() else [*known, *METRICS]
    for asked, names, there in (
        ("--select", [select or usual], may_choose),
        ("--test", tested, known),
    ):
        for name in names:
            if name not in there:
                raise ResultsError(f"{asked}: {unknown(f'measure of {task}', name, known)}")
    return select or usual, tuple(dict.fromkeys(tested))


def options(at_budget: pd.DataFrame, metrics: Iterable[str] = METRICS) -> pd.DataFrame:
    """Validation scores of every option that was tried, on the seeds that tune.

    Args:
        at_budget: as `equal_compute` gives it.
        metrics: that may choose, perhaps repeated.

    Returns:
        One row an option: the columns of GROUP and OPTION, `num_seeds`, `num_diverged`,
        `num_censored`, `num_unswitched`, the seeds that were still in the first phase of their
        schedule at the cut, the seed means of the metrics, as `validation_accuracy` (fractions),
        and `validation_loss` (nats), each missing if a seed has none (the loss if one diverged),
        `can_be_chosen`, and `num_options` of its group.

    An option can be chosen if all of its seeds have switched, none was censored, and it has every
    seed that another such option of its group has. Otherwise one lucky seed would beat the mean of
    many, and options would differ by the seeds they lack.

    Raises:
        ResultsError: there are no validation evaluations.
    """
    keys, scores = GROUP + OPTION, [*dict.fromkeys([*metrics, "loss"])]
    tuned = tuning(at_budget)
    rows = tuned[tuned["split"] == "validation"]
    if rows.empty and is_recorded(tuned).any():  # lone options need no validation
        rows = tuned[tuned["split"] == "test"].assign(**dict.fromkeys(scores, math.nan))
    if rows.empty:
        raise ResultsError("there are no validation evaluations to choose options by.")
    counts: dict[str, Any] = {
        "num_seeds": 1,
        "num_diverged": rows["diverged"],
        "num_censored": rows["status"] == "censored",
        "num_unswitched": ~rows["diverged"] & (rows["budget_fraction"] <= rows["switch_point"]),
    }
    # Sorted, since the last bit of a mean depends on the order.
    rows = rows.assign(**counts).sort_values(["seed", "cell_id"])
    tried = rows.groupby(keys, dropna=False)
    means = tried[scores].mean(skipna=False).add_prefix("validation_")
    table = pd.concat([tried[[*counts]].sum(), means], axis=1).reset_index()
    whole = table[["num_censored", "num_unswitched"]].eq(0).all(axis=1)
    seeds = rows_of(table[whole], rows).groupby(GROUP)["seed"].nunique()
    every_seed = table.join(seeds.rename("every_seed"), on=GROUP)["every_seed"]
    table["can_be_chosen"] = whole & (table["num_seeds"] == every_seed)
    table["num_options"] = table.groupby(GROUP)["schedule"].transform("size")
    return in_order(table, keys)


def barred(options: pd.DataFrame, select: Select = "accuracy") -> pd.Series:
    """Why each option cannot be chosen.

    Args:
        options: as `options` gives them, of one comparison.
        select: metric that chooses, see `choose`.

    Returns:
        A reason an option, with the index of `options`: `STOPPED` (a seed was censored),
        `UNSWITCHED` (a seed was in its first phase at the cut), `SEEDS` (it lacks one that
        another option of its paradigm has), `SCORE` (its validation score is not known), the
        first that applies; empty where it can be chosen. Where nothing is validated, as of
        recorded runs it need not be, a lone option needs no score.
    """
    scored = options[f"validation_{select}"].notna()
    if options.filter(regex="^validation_").isna().all(axis=None):
        scored = options["num_options"] == 1
    applies = [
        options["num_censored"] > 0,
        options["num_unswitched"] > 0,
        options["can_be_chosen"].eq(False),
        ~scored,
    ]
    reasons = np.select(applies, [STOPPED, UNSWITCHED, SEEDS, SCORE], "")
    return pd.Series(reasons, options.index, dtype=object)


def by_preference(options: pd.DataFrame, select: Select) -> pd.DataFrame:
    """The options that can be chosen, best first within each group.

    Args:
        options: as `options` gives them.
        select: see `choose`.
    """
    there = options[barred(options, select) == ""]
    score = f"validation_{select}"
    if there[score].isna().all():  # lone options that nothing was validated of
        return in_order(there, GROUP)
    return best_first(there, GROUP, score, OPTION)


def best_of(options: pd.DataFrame, select: Select) -> pd.DataFrame:
    """The result of `choose`, from given `options`."""
    best = by_preference(options, select).drop_duplicates(GROUP, ignore_index=True)
    return best.assign(select=select)


def choose(at_budget: pd.DataFrame, select: Select = "accuracy") -> pd.DataFrame:
    """The option of each group with the best seed-mean validation score.

    Ties go to the lower validation loss, then to the smaller learning rate. Some options cannot
    be chosen (see `options`), nor can those without a score; a group that has no other option has
    no row.

    Args:
        at_budget: as `equal_compute` gives it.
        select: `accuracy`; `saif`, which uses the hidden foreground: say so beside the result; or
            a measure that recorded runs have.

    Returns:
        One row a group: the columns of `options`, and `select`.

    Raises:
        ValueError: `select` is none of these.
        ResultsError: there are no validation evaluations.
    """
    if select not in METRICS and f"last_{select}" not in at_budget:
        raise ValueError(f"select must be accuracy, saif or a recorded measure, got {select!r}")
    return best_of(options(at_budget, [*METRICS, select]), select)


def chosen(
    results: str | os.PathLike[str] | Results, cell_ids: Iterable[str], select: Select = "accuracy"
) -> dict[tuple[str, str], str]:
    """The options that a report of some cells would choose.

    A study tunes by it on machines that draw nothing: no section is imported here.

    Args:
        results: path, URL or an open `Results`.
        cell_ids: of cells that tune; ids without a result are ignored.
        select: validation metric, see `choose`.

    Returns:
        (comparison id, paradigm) -> id of a recorded cell of the chosen option; groups without an
        option that can be chosen are absent.

    Raises:
        ResultsError: unreadable results.
    """
    results = opened(results)
    ids = results.cells(cell_ids, ["cell_id"])["cell_id"]
    if ids.empty:
        return {}
    found = cut_cells(Source(results, cell_ids=ids), Cut(), [*METRICS, "loss"]).table
    parts = [each for _, each in found.groupby("comparison_id")]
    rows = pd.concat([rows_of(choose(each, select), each) for each in parts])
    of_each = rows.groupby(["comparison_id", "paradigm"])["cell_id"]
    cells: dict[Any, str] = of_each.first().to_dict()
    return cells


def moved_by_choice(
    at_budget: pd.DataFrame, choice: pd.DataFrame, metrics: Sequence[str]
) -> dict[tuple[str, str], tuple[float, float]]:
    """How far a paradigm's test scores would move with an option that may be the better choice.

    A score between evaluations may be off by `between_<metric>` (`analysis.digest.at_cut`),
    on validation, too: an option that seems a little worse than the chosen one may be better.

    Args:
        at_budget, choice, metrics: see `analysis.digest.pairs.paired_tables`.

    Returns:
        (paradigm, metric) -> how far down and up, both >= 0 and infinite where it is not known;
        no entry where nothing is between evaluations.
    """
    select = choice["select"].iloc[0] if len(choice) else ""
    off = f"between_{select}"
    if off not in at_budget:
        return {}
    tried = by_preference(options(at_budget, [select, off]), select)
    tried = tried.rename(columns={f"validation_{select}": "score", f"validation_{off}": "off"})
    rows = tuning(at_budget)
    rows = rows[rows["split"] == "test"]
    columns = [f"{part}{metric}" for metric in metrics for part in ("", "between_")]
    found = {}
    for name, mine in tried.groupby("paradigm"):
        best, others = mine.iloc[0], mine.iloc[1:]
        behind, either_off = best["score"] - others["score"], best["off"] + others["off"]
        rivals = others[(either_off > 0) & (behind <= either_off + ROUNDING)]
        of_best = rows_of(mine[:1], rows)[columns].mean()
        of_each = rows_of(rivals, rows).groupby(OPTION, dropna=False)[columns].mean()
        for metric in metrics:
            up, off_by = of_each[metric] - of_best[metric], of_each[f"between_{metric}"]
            down, up = (off_by - up).fillna(math.inf), (off_by + up).fillna(math.inf)
            found[str(name), metric] = max([0.0, *down]), max([0.0, *up])
    return found


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
