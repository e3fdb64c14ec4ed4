"""Chooses an option of each paradigm on validation, and tells what each value of an axis reaches.

An *option* that was tried is one learning rate, last learning rate and switch point of a paradigm
(`analysis.groups`), run with several seeds; the seeds that tune choose (`analysis.rules.stages`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.digest.at_cut import cut_cells
from analysis.digest.cut import Cut
from analysis.digest.measures import METRICS, measures_of
from analysis.digest.read import CELL_COLUMNS, Source, opened
from analysis.groups import (
    GROUP,
    OPTION,
    Select,
    best_first,
    in_order,
    is_compared,
    is_recorded,
    rows_of,
)
from analysis.rules.stages import tuning
from analysis.rules.statistics import ROUNDING
from study import tasks
from study.results import Results, ResultsError, unknown

STOPPED, UNSWITCHED, SEEDS, SCORE = "stopped", "unswitched", "seeds", "score"
"""Why an option cannot be chosen, see `barred`."""

MAX_RATES = 12
"""So many learning rates can be told apart in one figure; of more, equal parts are made."""


def known_metrics(at_budget: pd.DataFrame, own: Iterable[str] = ()) -> list[str]:
    """The metrics that any cell of a comparison has recorded; `METRICS` where none has.

    Args:
        at_budget: as `equal_compute` gives it.
        own: measures in the column `measures`, which then are columns of `at_budget`.
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
        own: measures in the column `measures`, of any comparison.
        select: the metric asked for; None: accuracy, or the only one that is known.
        test: the metrics asked for; None: SAIF and accuracy, and all of recorded runs.

    Raises:
        ResultsError: no cell has recorded one that was asked for, or `select` has to be given.
    """
    task = at_budget["task"].iloc[0]
    known = known_metrics(at_budget, sorted(own, key=lambda name: name != select))
    recorded = is_recorded(at_budget).any()
    # Tests that nobody asked for would weaken those of studies that are known.
    usually = [name for name in known if recorded or name in METRICS]
    usual = "accuracy" if "accuracy" in known else known[0]
    if select is None and usual != "accuracy" and len(known) > 1:
        raise ResultsError(
            f"the runs of {task} have no accuracy to choose options by. Name the measure that "
            f"chooses, --select {usual}; recorded: {', '.join(known)}."
        )
    tested = [test] if isinstance(test, str) else [*(test or usually)]
    # Where no cell of a study has a usual one, no option can be chosen, which is said there.
    may_choose = known if recorded else [*usually, *METRICS]
    of_test = [("--test", name, known) for name in tested]
    for asked, name, there in (("--select", select or usual, may_choose), *of_test):
        if name not in there:
            raise ResultsError(
                f"{asked}: {unknown(f'measure of {task}', name, dict.fromkeys(there))}"
            )
        if not (recorded or name in (*METRICS, *tasks.MEASURES)):
            raise ResultsError(
                f"{asked} {name}: name the file that registers it, --with FILE, which tells "
                "whether more of it is better."
            )
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
    seeds = rows_of(table[whole], rows).groupby(GROUP)["seed"].nunique().reset_index()
    table["can_be_chosen"] = whole & (table["num_seeds"] == table.merge(seeds, "left")["seed"])
    table["num_options"] = table.groupby(GROUP)["schedule"].transform("size")
    return in_order(table, keys)


def barred(options: pd.DataFrame, select: Select) -> pd.Series:
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
    lone = _unvalidated(options) & (options["num_options"] == 1)
    applies = [
        (options["num_censored"] > 0, STOPPED),
        (options["num_unswitched"] > 0, UNSWITCHED),
        (~options["can_be_chosen"], SEEDS),
        (options[f"validation_{select}"].isna() & ~lone, SCORE),
    ]
    return pd.Series("", options.index).case_when(applies)


def _unvalidated(options: pd.DataFrame) -> bool:
    """Whether no option has a score, as of recorded runs, of which a lone one needs none."""
    return bool(options.filter(like="validation_").isna().all(axis=None))


def by_preference(options: pd.DataFrame, select: Select, sign: int = 1) -> pd.DataFrame:
    """The options that can be chosen, best first within each group.

    Args:
        options: as `options` gives them.
        select: see `choose`.
        sign: of its measure, see `analysis.digest.measures.Measure.sign`.
    """
    if _unvalidated(options):
        lone = options["can_be_chosen"] & (options["num_options"] == 1)
        return in_order(options[lone], GROUP)
    return best_first(options, GROUP, f"validation_{select}", OPTION, sign)


def best_of(options: pd.DataFrame, select: Select, sign: int = 1) -> pd.DataFrame:
    """The result of `choose`, from given `options`; `sign` as of `by_preference`."""
    best = by_preference(options, select, sign).drop_duplicates(GROUP, ignore_index=True)
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
    sign = measures_of(at_budget, [select])[select].sign
    return best_of(options(at_budget, [*METRICS, select]), select, sign)


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
    cells = results.cells(cell_ids, CELL_COLUMNS)
    cells = cells[is_compared(cells)]
    if cells.empty:
        return {}
    found = cut_cells(Source(results, cells), Cut()).table
    parts = (each for _, each in found.groupby("comparison_id"))
    rows = pd.concat(rows_of(choose(each, select), each) for each in parts)
    of_each = rows.groupby(["comparison_id", "paradigm"])["cell_id"]
    first: dict[Any, str] = of_each.first().to_dict()
    return first


def moved_by_choice(
    at_budget: pd.DataFrame, choice: pd.DataFrame, metrics: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How far a paradigm's test scores would move with an option that may be the better choice.

    A score between evaluations may be off by `between_<metric>` (`analysis.digest.at_cut`),
    on validation, too: an option that seems a little worse than the chosen one may be better.

    Args:
        at_budget, choice, metrics: see `analysis.digest.pairs.paired_table`.

    Returns:
        How far down, and how far up, both >= 0 and infinite where it is not known: a row per
        paradigm that has such an option, none where nothing is between evaluations, and a column
        per metric.
    """
    select = choice["select"].iloc[0] if len(choice) else ""
    off = f"between_{select}"
    if off not in at_budget:
        nowhere = pd.DataFrame(columns=[*metrics], dtype=float)
        return nowhere, nowhere
    sign = measures_of(at_budget, [select])[select].sign
    tried = by_preference(options(at_budget, [select, off]), select, sign)
    rows = tuning(at_budget)
    tests = rows[rows["split"] == "test"].groupby(GROUP + OPTION, dropna=False)
    names, betweens = [*metrics], [f"between_{metric}" for metric in metrics]
    means = tests[names + betweens].mean().reset_index()
    tried = tried.merge(means, "left", GROUP + OPTION).set_index("paradigm")
    best = tried[~tried.index.duplicated()].loc[tried.index]
    behind = sign * (best[f"validation_{select}"] - tried[f"validation_{select}"])
    either_off = best[f"validation_{off}"] + tried[f"validation_{off}"]
    rivals = (either_off > 0) & (behind <= either_off + ROUNDING) & tried.index.duplicated()
    change, off_by = (
        (tried[names] - best[names])[rivals],
        tried[rivals][betweens].set_axis(names, axis=1),
    )
    down, up = (
        each.fillna(math.inf).clip(lower=0).groupby(level=0).max()
        for each in (off_by - change, off_by + change)
    )
    return down, up


def response(
    at_budget: pd.DataFrame, options: pd.DataFrame, axis: str, select: Select = "accuracy"
) -> pd.DataFrame:
    """What each value of an axis reaches on validation at its best option.

    Where the comparison tried more than `MAX_RATES` first learning rates, as a random search does,
    their range is divided into `MAX_RATES` parts of equal ratio, and a part counts as one rate.

    Args:
        at_budget: as `analysis.equal_compute` gives it, of one comparison.
        options: as `options` gives it of that.
        axis: `lr`, the first learning rate, or `switch_point`, a fraction of the budget.
        select: metric that chooses among the options of one value.

    Returns:
        One row a (paradigm, value), sorted, of paradigms that have the axis: the columns of its
        best option, with the metrics by their names, the lowest and the highest seed of each,
        `_low` and `_high` (fractions), and `chosen`, whether it is the group's choice. Where no
        option of a value can be chosen, the scores are NaN and `num_seeds` is 0.
    """
    part = options[axis]
    if axis == "lr" and part.nunique() > MAX_RATES:
        part = pd.cut(np.log(part), MAX_RATES, labels=False)
    option, keys = GROUP + OPTION, [*GROUP, "part"]
    tried = options.assign(part=part, chosen=False).dropna(subset="part").sort_values(axis)
    ranked = by_preference(tried, select, measures_of(at_budget, [select])[select].sign)
    best = ranked.assign(chosen=~ranked.duplicated(GROUP)).drop_duplicates(keys)
    best = best.rename(columns=lambda name: name.removeprefix("validation_"))
    metrics = best.columns.difference(tried.columns)
    rows = tuning(at_budget)
    seeds = rows_of(best, rows[rows["split"] == "validation"]).groupby(option, dropna=False)
    lowest = seeds[[*metrics]].min(skipna=False).add_suffix("_low")
    highest = seeds[[*metrics]].max(skipna=False).add_suffix("_high")
    spread = pd.concat([lowest, highest], axis=1).reset_index()
    # Where no option of a value can be chosen, its smallest stands for it, without scores.
    others = tried[[*option, "part", "chosen"]].assign(num_seeds=0)
    shown = pd.concat([best.merge(spread, "left", option), others]).drop_duplicates(keys)
    return in_order(shown, keys).drop(columns="part")
