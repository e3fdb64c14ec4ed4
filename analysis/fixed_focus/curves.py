"""What a classifier learns while the focus is held at alpha (fixed focus, section 3).

A *setting* is all cells that differ in nothing but alpha, schedule and seed. One learning rate a
paradigm is chosen for all its alphas, so that lines of one panel differ in alpha alone.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from analysis.groups import LINEAR_ORTHOGONAL, PARADIGMS, best_first, in_order
from analysis.section.curves import mean_curves
from analysis.words import differences, setting_words, told_apart
from study.results import Results
from study.theory import linear_orthogonal as theory

MEASURES = ("loss", "incentive", "incentive_slope")
"""In nats; nats for .01 more attention; nats per unit of attention."""

_OPTION = ["paradigm", "lr", "schedule"]
_LINE = ["paradigm", "alpha"]
_READ = (
    "cell_id", "mosaics_seen", "budget_fraction", "compute_flops", "split", "loss", "accuracy",
    "incentive", "incentive_slope", "flow_time",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Setting:
    """One row of figures 2 and 3: a task, its m and n, network and budget.

    Attributes:
        id: 16 hex digits, a hash of all that its cells share.
        name: tells it from the other settings of the directory, e.g. ``digits m=5``.
        task, m, n, num_classes: as its cells have them.
        shared: fields of `study.cell.Cell` that its cells share.
        cells: one row a cell: the columns of `CELLS_SCHEMA` but `cell`.
        options: one row a (paradigm, learning rate) that was tried, see `options_of`.
        choice: the rows of `options` that were chosen, at most one a paradigm.
        chosen: the rows of `cells` of the chosen options.
        runs: one row a (cell, evaluation) on the train split, of the chosen cells that are done:
            `paradigm`, `alpha`, `seed`, `cell_id`, `budget_fraction`, `epoch` (mosaics seen / n),
            `compute_flops`, `flow_time` (missing but for linear models) and `MEASURES`.
        curves: their means over seeds, see `analysis.section.curves.mean_curves`; a line is a
            (paradigm, alpha).
    """

    id: str
    name: str
    task: str
    m: int
    n: int
    num_classes: int
    shared: Mapping[str, Any]
    cells: pd.DataFrame
    options: pd.DataFrame
    choice: pd.DataFrame
    chosen: pd.DataFrame
    runs: pd.DataFrame
    curves: pd.DataFrame

    @cached_property
    def final(self) -> pd.DataFrame:
        """The last points of `curves`: one row a (paradigm, alpha) that has done cells."""
        return self.curves[self.curves["budget_fraction"] == 1].reset_index(drop=True)

    @property
    def paradigms(self) -> list[str]:
        """Paradigms that have cells, in the order of the panels."""
        ran = set(self.cells["paradigm"])
        return [name for name in PARADIGMS if name in ran]

    def alphas(self, paradigms: Iterable[str] = PARADIGMS) -> list[float]:
        """Alphas at which these paradigms all have cells of their chosen rates, sorted."""
        of_each = [
            set(self.chosen.loc[self.chosen["paradigm"] == name, "alpha"]) for name in paradigms
        ]
        return sorted(set.intersection(*of_each)) if of_each else []

    def seeds_of(self, paradigm: str, alpha: float, measure: str) -> pd.DataFrame:
        """One curve a seed.

        Args:
            paradigm, alpha: the line.
            measure: one of `MEASURES`.

        Returns:
            (seeds, evaluations): index the seeds of the done cells, columns the budget fractions.
        """
        rows = self.runs[(self.runs["paradigm"] == paradigm) & (self.runs["alpha"] == alpha)]
        return rows.pivot(index="seed", columns="budget_fraction", values=measure)

    def closed_form(self) -> pd.DataFrame:
        """Theorem 1 at the times of the curves, which are known for linear models only.

        Returns:
            `paradigm`, `alpha`, `budget_fraction`, `epoch`, `flow_time` and `MEASURES`, sorted.
        """
        rows = self.curves[self.curves["flow_time"].notna()]
        if self.task != LINEAR_ORTHOGONAL:
            rows = rows.iloc[:0]
        parts = []
        for (name, alpha), line in rows.groupby(_LINE, sort=False):
            line = line.sort_values("budget_fraction")
            times = line["flow_time"]
            solved = solution(str(name), self.num_classes, times, float(str(alpha)), self.m)
            keys = line[[*_LINE, "budget_fraction", "epoch", "flow_time"]].reset_index(drop=True)
            parts.append(pd.concat([keys, solved[[*MEASURES]]], axis=1))
        columns = [*_LINE, "budget_fraction", "epoch", "flow_time", *MEASURES]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def floors(lines: pd.DataFrame, num_classes: int) -> pd.DataFrame:
    """The limit of the population loss: `paradigm`, `alpha`, `floor` (nats), once a line.

    Args:
        lines: with the columns `paradigm` and `alpha`.
        num_classes: C.

    Source: section 3.1. In the linear orthogonal setting it is the limit of Theorem 1; with any
    data no classifier has a lower expected loss where backgrounds say nothing of the class.
    """
    once = lines[_LINE].drop_duplicates().reset_index(drop=True)
    values = [
        float(theory.floor(name, alpha, num_classes))
        for name, alpha in zip(once["paradigm"], once["alpha"], strict=True)
    ]
    return once.assign(floor=np.array(values, np.float64))


def solution(
    paradigm: str, num_classes: int, times: Iterable[float], alpha: float, m: int = 2
) -> pd.DataFrame:
    """Theorem 1: one row a time, columns `t`, `mu` and `MEASURES`.

    Args:
        paradigm, num_classes, alpha, m: see `study.theory.linear_orthogonal.trajectory`; the
            result does not depend on m.
        times: of gradient flow, >= 0, not decreasing.
    """
    table = theory.trajectory(paradigm, m, num_classes, np.array([*times], np.float64), alpha)
    slope = theory.incentive_slope(paradigm, alpha, table["mu"], num_classes)
    return table.assign(incentive_slope=slope)[["t", "mu", *MEASURES]]


def read_settings(results: Results, cells: pd.DataFrame) -> list[Setting]:
    """Every setting in a results directory, data tasks first, the linear orthogonal one last.

    Args:
        results: the directory; only evaluations of these cells are read.
        cells: rows of fixed-focus cells with all columns of `CELLS_SCHEMA`. Cells of paradigms
            other than `PARADIGMS` are in no setting.

    Raises:
        ResultsError: unreadable results.
    """
    cells = cells[cells["paradigm"].isin(PARADIGMS) & cells["alpha"].notna()]
    if cells.empty:
        return []
    rows = _evaluations(results, cells["cell_id"])
    parts = dict(tuple(cells.groupby(cells["cell"].map(_shared))))
    order = sorted(parts, key=lambda text: _rank(json.loads(text)))
    names = _names([json.loads(text) for text in order])
    return [
        _setting(text, name, parts[text], rows) for text, name in zip(order, names, strict=True)
    ]


def options_of(cells: pd.DataFrame, validation: pd.DataFrame) -> pd.DataFrame:
    """Validation scores of every learning rate that was tried.

    Args:
        cells: of one setting.
        validation: one row a cell: `cell_id`, `accuracy` (fraction) and `loss` (nats), at the end.

    Returns:
        One row a (paradigm, lr, schedule): `num_cells`, `num_alphas`, `num_seeds`,
        `num_diverged`, `num_censored`, `can_be_chosen`, `validation_accuracy` and
        `validation_loss`, means over alphas and seeds.

    An option can be chosen if none of its cells was censored and no other such option of its
    paradigm has more cells, which is all seeds at all alphas unless some are missing. Accuracy
    grows with alpha, so means of these options are over the (alpha, seed) that all of them have.
    A diverged cell counts as accuracy 1/C, and its loss is unknown.
    """
    table = cells.merge(validation[["cell_id", "accuracy", "loss"]], on="cell_id", how="left")
    diverged = table["status"] == "diverged"
    table["accuracy"] = table["accuracy"].mask(diverged, 1 / table["num_classes"])
    table["loss"] = table["loss"].mask(diverged)
    table = table.assign(diverged=diverged, censored=table["status"] == "censored")
    options = table.groupby(_OPTION, as_index=False).agg(
        num_cells=("cell_id", "size"),
        num_alphas=("alpha", "nunique"),
        num_seeds=("seed", "nunique"),
        num_diverged=("diverged", "sum"),
        num_censored=("censored", "sum"),
    )
    whole = options["num_censored"] == 0
    most = options["num_cells"].where(whole).groupby(options["paradigm"]).transform("max")
    options["can_be_chosen"] = whole & (options["num_cells"] == most)
    means = [_validated(table, options, option) for option in options.to_dict("records")]
    options[["validation_accuracy", "validation_loss"]] = np.array(means).reshape(-1, 2)
    return in_order(options, _OPTION)


def choose(options: pd.DataFrame) -> pd.DataFrame:
    """The best option of each paradigm: ties go to the lower loss, then to the smaller rate."""
    best = best_first(options, ["paradigm"], "validation_accuracy", ["lr", "schedule"])
    return best.drop_duplicates("paradigm").reset_index(drop=True)


def chance_loss(setting: Setting) -> float:
    """log C: the loss, in nats, of a classifier that knows nothing."""
    return math.log(setting.num_classes)


def _shared(text: str) -> str:
    cell = json.loads(text)
    for name in ("alpha", "schedule", "seed"):
        del cell[name]
    return json.dumps(cell, sort_keys=True)


def _rank(shared: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        shared["task"] == LINEAR_ORTHOGONAL,
        shared["task"],
        shared["m"],
        shared.get("num_classes") or 0,
        shared["n"],
        json.dumps(shared, sort_keys=True),
    )


def _names(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of settings: task, m, classes, and the fields in which those of one name differ."""
    names = [
        " ".join([each["task"], *setting_words(each, ["m", "num_classes"])]) for each in settings
    ]
    return [
        told_apart(name, each, fields)
        for name, each, fields in zip(names, settings, differences(names, settings), strict=True)
    ]


def _id(shared: str) -> str:
    return hashlib.sha256(shared.encode()).hexdigest()[:16]


def _setting(shared: str, name: str, cells: pd.DataFrame, rows: pd.DataFrame) -> Setting:
    first = cells.iloc[0]
    cells = cells.drop(columns="cell")
    cells = in_order(cells, ["paradigm", "lr", "alpha", "seed", "cell_id"])
    mine = rows[rows["cell_id"].isin(cells["cell_id"])]
    options = options_of(cells, mine[mine["split"] == "validation"])
    choice = choose(options)
    chosen = cells.merge(choice[_OPTION], on=_OPTION)
    done = chosen.loc[chosen["status"] == "done", ["cell_id", *_LINE, "seed"]]
    runs = done.merge(mine[mine["split"] == "train"], on="cell_id")
    runs["epoch"] = runs["mosaics_seen"] / int(first["n"])
    # Where steps are long, several evaluations fall on one step, far from their targets.
    seen = runs["mosaics_seen"] / runs.groupby("cell_id")["mosaics_seen"].transform("max")
    runs["budget_fraction"] = seen.where(runs["budget_fraction"] < 1, 1.0).astype(float)
    runs = runs.drop_duplicates(["cell_id", "budget_fraction"])
    columns = ["budget_fraction", "epoch", "compute_flops", "flow_time", *MEASURES]
    runs = runs[[*_LINE, "seed", "cell_id", *columns]]
    runs = in_order(runs, [*_LINE, "seed", "budget_fraction"])
    return Setting(
        id=_id(shared),
        name=name,
        task=str(first["task"]),
        m=int(first["m"]),
        n=int(first["n"]),
        num_classes=int(first["num_classes"]),
        shared=json.loads(shared),
        cells=cells,
        options=options,
        choice=choice,
        chosen=chosen,
        runs=runs,
        curves=_curves(runs),
    )


def _curves(runs: pd.DataFrame) -> pd.DataFrame:
    """The means of `Setting.runs`, paradigms in the order of the paper's panels."""
    table = mean_curves(runs, _LINE, ("epoch", "compute_flops", "flow_time"), MEASURES)
    ranks = {name: rank for rank, name in enumerate(PARADIGMS)}
    return table.sort_values(
        [*_LINE, "budget_fraction"],
        key=lambda c: c.map(ranks) if c.name == "paradigm" else c,
        ignore_index=True,
    )


def _validated(
    table: pd.DataFrame, options: pd.DataFrame, option: Mapping[Any, Any]
) -> tuple[float, float]:
    """Accuracy and loss of an option, see `options_of`."""
    of_paradigm = table[table["paradigm"] == option["paradigm"]]
    scores = {
        key: rows.set_index(["alpha", "seed"])[["accuracy", "loss"]]
        for key, rows in of_paradigm.groupby(["lr", "schedule"])
    }
    own = scores[option["lr"], option["schedule"]]
    if option["can_be_chosen"]:
        rivals = options[options["can_be_chosen"] & (options["paradigm"] == option["paradigm"])]
        common = own.index
        for key in zip(rivals["lr"], rivals["schedule"], strict=True):
            common = common.intersection(scores[key].index)
        own = own.loc[common.sort_values()]
    means = own.mean(skipna=False)
    return float(means["accuracy"]), float(means["loss"])


def _evaluations(results: Results, cell_ids: Iterable[str]) -> pd.DataFrame:
    """The train split at all times, and validation at the end; values not finite are missing."""
    rows = results.evaluations(cell_ids, _READ)
    at_end = (rows["split"] == "validation") & (rows["budget_fraction"] == 1)
    rows = rows[(rows["split"] == "train") | at_end]
    numbers = ["loss", "accuracy", "incentive", "incentive_slope", "flow_time"]
    values = rows[numbers].astype(float)
    return rows.assign(**values.where(np.isfinite(values)))
