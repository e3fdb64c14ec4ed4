"""Paradigms at equal compute: the cut, the choice of an option a group, the summary.

The nouns: a *comparison* is all cells that differ in nothing but schedule and seed
(`comparison_id`); a *group* is one paradigm of it; an *option* is one learning rate, last learning
rate and switch point of a group, run with several seeds. Everything here is a pure function of
tables; the order of their rows never matters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis.statistics import t_interval
from study.results import EVALUATIONS_SCHEMA, METRICS, ResultsError

GROUP = ["task", "m", "paradigm"]
OPTION = ["lr", "last_lr", "switch_point", "schedule"]
"""`schedule` says no more than the other three, unless a schedule has more than two phases."""

SUMMARISED = ("saif", "accuracy", "loss", "foreground_attention_mean")
PARADIGM_ORDER = ("hard", "soft", "hybrid", "lvml")

_SETTINGS = [
    "n", "architecture", "batch_size", "precision", "budget_amount", "data_digest", "split_scheme",
]  # fmt: skip
_SPLITS = ("test", "train", "validation")
_EVALUATION_COLUMNS = [name for name in EVALUATIONS_SCHEMA.names if name != "cell_id"]

Select = Literal["accuracy", "saif"]

Axis = Literal["flops", "seconds", "mosaics"]

AXES: dict[Axis, str] = {
    "flops": "compute_flops",
    "seconds": "train_seconds",
    "mosaics": "mosaics_seen",
}
"""What a comparison may hold equal -> its column."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """One comparison, cut at equal compute and summarised.

    Attributes:
        task: name of the task.
        m: segments a mosaic.
        axis: what was made equal, see `AXES`.
        cut: the fraction of the cells' own budget that every done cell has reached within the
            cut, see `equal_compute`.
        cells: one row a cell, the columns of `CELLS_SCHEMA`.
        at_budget: one row a (cell, split), see `equal_compute`.
        options: one row an option, see `options`.
        choice: one row a group, see `choose`.
        summary: one row a group on the test split, see `summarise`.
        chosen: the rows of `at_budget` of the chosen options, with their heat maps.
        evaluations: all evaluations up to the cut of the chosen options' cells.
    """

    task: str
    m: int
    axis: Axis
    cut: float
    cells: pd.DataFrame
    at_budget: pd.DataFrame
    options: pd.DataFrame
    choice: pd.DataFrame
    summary: pd.DataFrame
    chosen: pd.DataFrame
    evaluations: pd.DataFrame


def compare(
    evaluations: pd.DataFrame, budget: float | None = None, select: Select = "accuracy"
) -> list[Comparison]:
    """Every comparison in the table, each by itself, in the order of `comparisons`.

    Args:
        evaluations: as `analysis.load` gives it.
        budget: training FLOPs, see `equal_compute`.
        select: metric that chooses the options, see `choose`.

    Raises:
        ResultsError: no finished cell, or a budget that is not usable.
    """
    return [_compare(part, budget, select) for part in comparisons(evaluations)]


def _compare(evaluations: pd.DataFrame, budget: float | None, select: Select) -> Comparison:
    at_budget = equal_compute(evaluations, budget)
    choice = choose(at_budget, select)
    within, cut = _cut(evaluations, budget)
    kept = within.index.union(evaluations.index[evaluations["split"].isna()])
    first = evaluations.iloc[0]
    return Comparison(
        task=str(first["task"]),
        m=int(first["m"]),
        axis="flops",
        cut=cut,
        cells=evaluations.drop_duplicates("cell_id").drop(columns=_EVALUATION_COLUMNS),
        at_budget=at_budget,
        options=options(at_budget),
        choice=choice,
        summary=summarise(at_budget, choice),
        chosen=_rows_of(choice, at_budget),
        evaluations=_rows_of(choice, evaluations.loc[kept]),
    )


def comparisons(evaluations: pd.DataFrame) -> list[pd.DataFrame]:
    """Splits the table by `comparison_id`: what may be compared stays together.

    Args:
        evaluations: as `analysis.load` gives it.

    Returns:
        One table a comparison, in the order of task, m, n, architecture, batch and budget.

    Raises:
        ResultsError: the table is empty.
    """
    if evaluations.empty:
        raise ResultsError("there is no finished cell to compare. Run or resume a study first.")
    by = ["task", "m", *_SETTINGS, "comparison_id"]
    heads = evaluations.drop_duplicates("comparison_id").sort_values(by)
    parts = dict(tuple(evaluations.reset_index(drop=True).groupby("comparison_id")))
    return [parts[comparison_id] for comparison_id in heads["comparison_id"]]


def equal_compute(evaluations: pd.DataFrame, budget: float | None = None) -> pd.DataFrame:
    """Cuts every cell at the same compute.

    With a budget: each cell's last evaluation with `compute_flops` <= budget. Without: each
    cell's last evaluation with `budget_fraction` <= the largest fraction that all *done* cells of
    the (task, m) reached, which is 1 unless a study changed while it ran.

    A diverged cell counts with its numbers at the cut as long as it has recorded an evaluation
    there (the one at which the done cells are cut, or a later one); if it ended earlier, it
    counts as SAIF 0 and accuracy 1/C, its other metrics are missing, and the step, compute and
    fraction are those of its last finite evaluation. A censored cell counts with its last numbers
    within the cut, if it has any. Neither lowers the cut.

    Args:
        evaluations: as `analysis.load` gives it; one comparison a (task, m).
        budget: training FLOPs, finite and > 0.

    Returns:
        One row a (cell, split), sorted, with the columns of `evaluations` and: `cut`, the budget
        fraction that every done cell of the (task, m) has reached within the cut; `diverged`,
        whether the row is counted as diverged; `last_saif` and `last_accuracy`, fractions, at the
        last finite evaluation within the cut (`saif` and `accuracy` themselves unless `diverged`).

    Raises:
        ResultsError: no cell, several comparisons of one (task, m), a budget that is not a
            positive finite number or lies below an evaluation that every cell starts with.
    """
    if budget is not None and not (math.isfinite(budget) and budget > 0):
        raise ResultsError(f"a budget must be a finite number of FLOPs > 0, got {budget}.")
    parts = comparisons(evaluations)
    _refuse_mixture(parts)
    table = pd.concat([_cut_cells(part, budget) for part in parts], ignore_index=True)
    return _in_order(table, [*GROUP, *OPTION, "seed", "cell_id", "split"])


def options(at_budget: pd.DataFrame) -> pd.DataFrame:
    """What the validation split says about every option that was tried.

    Args:
        at_budget: as `equal_compute` gives it.

    Returns:
        One row an option: the columns of GROUP and OPTION, `num_seeds`, `num_diverged`,
        `num_censored`, the seed means `validation_accuracy`, `validation_saif` (fractions) and
        `validation_loss` (nats; missing if a seed diverged), `num_options` of its group, and
        `most_seeds`, the number of seeds of the comparison's best filled option: where
        `num_seeds` is smaller, cells failed or have not run.

    Raises:
        ResultsError: there are no validation evaluations.
    """
    rows = at_budget[at_budget["split"] == "validation"]
    if rows.empty:
        raise ResultsError("there are no validation evaluations to choose options by.")
    rows = rows.assign(censored=rows["status"] == "censored").sort_values("seed")
    table = (
        rows.groupby(GROUP + OPTION, dropna=False)
        .agg(
            num_seeds=("cell_id", "size"),
            num_diverged=("diverged", "sum"),
            num_censored=("censored", "sum"),
            validation_accuracy=("accuracy", _mean),
            validation_saif=("saif", _mean),
            validation_loss=("loss", _mean),
        )
        .reset_index()
    )
    table["num_options"] = table.groupby(GROUP)["lr"].transform("size")
    table["most_seeds"] = table.groupby(["task", "m"])["num_seeds"].transform("max")
    return _in_order(table, GROUP + OPTION)


def choose(at_budget: pd.DataFrame, select: Select = "accuracy") -> pd.DataFrame:
    """The option of each group with the best seed-mean validation score.

    Ties go to the lower validation loss, then to the smaller learning rate. An option with a
    censored seed cannot be chosen; a group with no other option has no row.

    Args:
        at_budget: as `equal_compute` gives it.
        select: `accuracy`, or `saif`, which uses the hidden foreground: say so beside the result.

    Returns:
        One row a group: the columns of `options`, and `select`.

    Raises:
        ValueError: `select` is neither.
        ResultsError: there are no validation evaluations.
    """
    if select not in ("accuracy", "saif"):
        raise ValueError(f"select must be accuracy or saif, got {select!r}")
    table = options(at_budget)
    table = table[table["num_censored"] == 0]
    # Means of the same shares in another order differ in the last bit: that is a tie.
    score = -table[f"validation_{select}"].round(12)
    order = [*GROUP, "_score", "validation_loss", *OPTION]
    best = _in_order(table.assign(_score=score), order).drop_duplicates(GROUP)
    return best.drop(columns="_score").assign(select=select).reset_index(drop=True)


def summarise(
    at_budget: pd.DataFrame, choice: pd.DataFrame, split: str = "test", confidence: float = 0.95
) -> pd.DataFrame:
    """Mean and t interval over the seeds of each group's chosen option.

    Args:
        at_budget: as `equal_compute` gives it.
        choice: as `choose` gives it.
        split: `test`, `validation` or `train`.
        confidence: of the intervals, in (0, 1).

    Returns:
        One row a group: the columns of `choice`, with `num_seeds` and `num_diverged` counted on
        `split`; `saif`, `accuracy`, `loss` and `foreground_attention_mean`, each with its
        `<metric>_low` and `<metric>_high`: fractions (`loss` in nats), bounds NaN when n < 2, all
        NaN where a seed has no value (a diverged cell has no loss); `n`, `architecture`,
        `batch_size`, `precision`, `budget_amount`, `budget_unit`, `cut`, `comparison_id`; the
        largest `compute_flops` spent; `split` and `confidence`.

    Raises:
        ResultsError: there are no evaluations on `split`.
    """
    rows = _rows_of(choice, at_budget[at_budget["split"] == split])
    if rows.empty and not choice.empty:
        raise ResultsError(f"there are no {split} evaluations.")
    shared = [*GROUP, "n", "architecture", "batch_size", "precision", "budget_amount"]
    shared += ["budget_unit", "cut", "comparison_id"]
    records = []
    for _, group in rows.sort_values("seed").groupby(GROUP):
        record = group[shared].iloc[0].to_dict()
        record |= {"num_seeds": len(group), "num_diverged": int(group["diverged"].sum())}
        record["compute_flops"] = float(group["compute_flops"].astype(float).max())
        for metric in SUMMARISED:
            names = (metric, f"{metric}_low", f"{metric}_high")
            record |= dict(zip(names, t_interval(group[metric], confidence), strict=True))
        records.append(record | {"split": split, "confidence": confidence})
    measured = pd.DataFrame(records, columns=None if records else shared)
    picked = choice.drop(columns=["num_seeds", "num_diverged"])
    return _in_order(picked.merge(measured, on=GROUP), GROUP)


def paradigm_order(names: Iterable[str]) -> list[str]:
    """Hard, soft, hybrid, lvml, then the others by name; each once."""
    return sorted(set(names), key=_rank)


def finite_evaluations(rows: pd.DataFrame) -> pd.DataFrame:
    """Leaves out what a diverged cell recorded when its loss was no longer finite.

    Also leaves out the rows that stand for a cell without evaluations.
    """
    lost = (rows["status"] == "diverged") & ~np.isfinite(rows["loss"].astype(float))
    return rows[rows["split"].notna() & ~lost]


def _rank(name: str) -> str:
    known = PARADIGM_ORDER.index(name) if name in PARADIGM_ORDER else len(PARADIGM_ORDER)
    return f"{known}{name}"


def _in_order(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    return table.sort_values(
        by, key=lambda c: c.map(_rank) if c.name == "paradigm" else c, ignore_index=True
    )


def _mean(values: pd.Series) -> float:
    return float(np.mean(values.to_numpy(float)))  # NaN stays NaN, unlike Series.mean


def _rows_of(choice: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the chosen options; a missing switch point equals a missing one."""
    return rows.merge(choice[GROUP + OPTION], on=GROUP + OPTION)


def _cut(rows: pd.DataFrame, budget: float | None) -> tuple[pd.DataFrame, float]:
    """The finite evaluations of one comparison within the cut, and its budget fraction."""
    finite = finite_evaluations(rows)
    within = finite if budget is None else finite[finite["compute_flops"] <= budget]
    done = within[within["status"] == "done"].groupby("cell_id")["budget_fraction"].max()
    cut = float(done.min()) if len(done) else 1.0
    return (within[within["budget_fraction"] <= cut] if budget is None else within), cut


def _cut_cells(rows: pd.DataFrame, budget: float | None) -> pd.DataFrame:
    """One row a (cell, split) of one comparison: `equal_compute` says what."""
    finite = finite_evaluations(rows)
    if budget is not None:
        _refuse_early_budget(finite, budget)
    within, cut = _cut(rows, budget)
    last = (
        within.sort_values(["compute_flops", "budget_fraction"])
        .groupby(["cell_id", "split"])
        .tail(1)[["cell_id", *_EVALUATION_COLUMNS]]
    )
    cells = rows.drop(columns=_EVALUATION_COLUMNS).drop_duplicates("cell_id")
    splits = pd.DataFrame({"split": sorted(rows["split"].dropna().unique()) or list(_SPLITS)})
    table = cells.merge(splits, how="cross").merge(last, on=["cell_id", "split"], how="left")

    recorded = table["step"].notna()
    can_be_lost = table["status"] == "diverged"
    cannot_be_chosen = table["status"] == "censored"
    reached = finite.groupby("cell_id")[["budget_fraction", "compute_flops"]].max()
    at_cut = reached["budget_fraction"] >= cut
    if budget is not None:
        at_cut |= reached["compute_flops"] >= budget
    alive = table["cell_id"].isin(reached.index[at_cut])
    table["cut"] = cut
    table["diverged"] = can_be_lost & ~(recorded & alive)
    table["last_saif"] = table["saif"]
    table["last_accuracy"] = table["accuracy"]
    table.loc[table["diverged"], list(METRICS)] = np.nan
    table["heatmap"] = table["heatmap"].where(~table["diverged"], None)
    table.loc[table["diverged"], "saif"] = 0.0
    table.loc[table["diverged"], "accuracy"] = 1 / table["num_classes"]
    return table[recorded | can_be_lost | cannot_be_chosen]


def _refuse_early_budget(finite: pd.DataFrame, budget: float) -> None:
    first = finite.groupby(["cell_id", "split"])["compute_flops"].min()
    if (first > budget).any():
        task, m = finite[["task", "m"]].iloc[0]
        raise ResultsError(
            f"a budget of {budget:g} FLOPs lies below the first evaluation of {task} m={m}. "
            f"The smallest usable budget is {first.max():,d} FLOPs."
        )


def _refuse_mixture(parts: list[pd.DataFrame]) -> None:
    heads = pd.concat([part.iloc[[0]] for part in parts])
    for (task, m), rows in heads.groupby(["task", "m"]):
        if len(rows) > 1:
            raise ResultsError(
                f"{task} m={m} has {len(rows)} comparisons that must not be mixed; they differ "
                f"in {_differences(rows)}. Take one of analysis.compare.comparisons(evaluations), "
                "or select by the columns named."
            )


def _differences(heads: pd.DataFrame) -> str:
    """Names what differs between comparisons, with the values where they are columns."""
    differing = [name for name in _SETTINGS if heads[name].nunique(dropna=False) > 1]
    if differing:
        values = {name: ", ".join(map(str, heads[name].unique())) for name in differing}
        return "; ".join(f"{name} ({text})" for name, text in values.items())
    cells = [json.loads(text) for text in heads["cell"]]
    names = sorted({name for cell in cells for name in cell} - {"schedule", "seed"})
    return ", ".join(n for n in names if len({json.dumps(c.get(n)) for c in cells}) > 1)
