"""What a classifier learns while the focus is held at alpha (fixed focus, section 3).

A *setting* is all cells that differ in nothing but alpha, schedule and seed. One learning rate a
paradigm is chosen for all its alphas, so that lines of one panel differ in alpha alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from analysis.groups import PARADIGMS, best_first, in_order, stacked
from analysis.settings import differences, setting_words, told_apart
from chapters.dynamics import linear_orthogonal as theory
from chapters.dynamics.section.mean_curves import mean_curves
from chapters.dynamics.task import TASK
from study.results import Results

MEASURES = ("loss", "incentive", "incentive_slope")
"""In nats; nats for .01 more attention; nats per unit of attention."""

_OPTION = ["paradigm", "lr", "schedule"]
_LINE = ["paradigm", "alpha"]
_VALUES = ["accuracy", "flow_time", *MEASURES]
_READ = ["cell_id", "mosaics_seen", "budget_fraction", "compute_flops", "split", *_VALUES]


@dataclass(frozen=True, eq=False)
class Setting:
    """One row of figures 2 and 3: a task, its m and n, network and budget.

    Attributes:
        name: tells it from the other settings of the directory, e.g. ``digits m=5``.
        task, m, n, num_classes: as its cells have them.
        shared: fields of `study.cell.Cell` that its cells share.
        cells: one row a cell: the columns of `CELLS_SCHEMA` but `cell`.
        rows: evaluations on the train split at all times and on validation at the end: `cell_id`,
            `split`, `mosaics_seen`, `budget_fraction`, `compute_flops`, `accuracy`, `flow_time`
            (missing but for linear models) and `MEASURES`; missing where not finite.
    """

    name: str
    task: str
    m: int
    n: int
    num_classes: int
    shared: Mapping[str, Any]
    cells: pd.DataFrame
    rows: pd.DataFrame

    @property
    def id(self) -> str:
        """16 hex digits, a hash of all that its cells share."""
        shared = json.dumps(self.shared, sort_keys=True)
        return hashlib.sha256(shared.encode()).hexdigest()[:16]

    @property
    def paradigms(self) -> list[str]:
        """Paradigms that have cells, in the order of the panels."""
        ran = set(self.cells["paradigm"])
        return [name for name in PARADIGMS if name in ran]

    @cached_property
    def options(self) -> pd.DataFrame:
        """Validation scores of every learning rate that was tried.

        One row a (paradigm, lr, schedule): `num_cells`, `num_alphas`, `num_seeds`,
        `num_diverged`, `num_censored`, `can_be_chosen`, `validation_accuracy` and
        `validation_loss`, means over alphas and seeds.

        An option can be chosen if none of its cells was censored and no other such option of its
        paradigm has more cells, which is all seeds at all alphas unless some are missing. Accuracy
        grows with alpha, so means of these options are over the (alpha, seed) that all of them
        have. A diverged cell counts as accuracy 1/C, and its loss is unknown.
        """
        at_end = self.rows.loc[self.rows["split"] == "validation", ["cell_id", "accuracy", "loss"]]
        table = self.cells.merge(at_end, on="cell_id", how="left")
        diverged = table["status"] == "diverged"
        table = table.assign(
            accuracy=table["accuracy"].mask(diverged, 1 / self.num_classes),
            loss=table["loss"].mask(diverged),
            diverged=diverged,
            censored=table["status"] == "censored",
        )
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
        table = table.merge(options[[*_OPTION, "can_be_chosen"]], on=_OPTION)
        fair = table["can_be_chosen"]
        rivals = options.groupby("paradigm")["can_be_chosen"].sum()
        common = fair.groupby([table[name] for name in (*_LINE, "seed")]).transform("sum")
        counted = table[~fair | (common == table["paradigm"].map(rivals))]
        means = counted.groupby(_OPTION)[["accuracy", "loss"]].mean(skipna=False)
        scores = means.add_prefix("validation_").reset_index()
        return in_order(options.merge(scores, on=_OPTION, how="left"), _OPTION)

    @cached_property
    def choice(self) -> pd.DataFrame:
        """The chosen rows of `options`, at most one a paradigm: the most accurate.

        Ties go to the lower loss, then to the smaller rate.
        """
        best = best_first(self.options, ["paradigm"], "validation_accuracy", ["lr", "schedule"])
        return best.drop_duplicates("paradigm", ignore_index=True)

    @cached_property
    def chosen(self) -> pd.DataFrame:
        """The rows of `cells` of the chosen options."""
        return self.cells.merge(self.choice[_OPTION], on=_OPTION)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """What the chosen cells that are done learned of the train split.

        One row a (cell, evaluation): `paradigm`, `alpha`, `seed`, `cell_id`, `budget_fraction`,
        `epoch` (mosaics seen / n), `compute_flops`, `flow_time` and `MEASURES`.
        """
        done = self.chosen.loc[self.chosen["status"] == "done", ["cell_id", *_LINE, "seed"]]
        runs = done.merge(self.rows[self.rows["split"] == "train"], on="cell_id")
        # Where steps are long, several evaluations fall on one step, far from their targets.
        seen = runs["mosaics_seen"] / runs.groupby("cell_id")["mosaics_seen"].transform("max")
        runs = runs.assign(
            epoch=runs["mosaics_seen"] / self.n,
            budget_fraction=seen.where(runs["budget_fraction"] < 1, 1.0).astype(float),
        )
        return runs.drop_duplicates(["cell_id", "budget_fraction"])

    @cached_property
    def curves(self) -> pd.DataFrame:
        """The means of `runs` over seeds, see `chapters.dynamics.section.mean_curves.mean_curves`.

        A line is a (paradigm, alpha); paradigms are in the order of the paper's panels.
        """
        means = mean_curves(self.runs, _LINE, ("epoch", "compute_flops", "flow_time"), MEASURES)
        return means.sort_values(
            [*_LINE, "budget_fraction"],
            key=lambda c: c.map(PARADIGMS.index) if c.name == "paradigm" else c,
            ignore_index=True,
        )

    @property
    def final(self) -> pd.DataFrame:
        """The last points of `curves`: one row a (paradigm, alpha) that has done cells."""
        return self.curves[self.curves["budget_fraction"] == 1].reset_index(drop=True)

    @cached_property
    def closed_form(self) -> pd.DataFrame:
        """Theorem 1 at the times of the curves, which are known for linear models only.

        The columns `paradigm`, `alpha`, `budget_fraction`, `epoch`, `flow_time` and `MEASURES`.
        """
        columns = [*_LINE, "budget_fraction", "epoch", "flow_time"]
        known = self.curves["flow_time"].notna() & (self.task == TASK)
        parts = [self.curves.loc[[], [*columns, *MEASURES]]]
        for (name, alpha), line in self.curves[known].groupby(_LINE, sort=False):
            solved = solution(str(name), self.num_classes, line["flow_time"], alpha, self.m)
            parts.append(line[columns].join(solved[[*MEASURES]].set_axis(line.index)))
        return stacked(parts)

    def alphas(self, paradigms: Iterable[str]) -> list[float]:
        """Alphas at which these paradigms all have cells of their chosen rates, sorted."""
        alphas = self.chosen["alpha"]
        return sorted(
            set.intersection(*(set(alphas[self.chosen["paradigm"] == each]) for each in paradigms))
        )


def floors(lines: pd.DataFrame, num_classes: int) -> pd.DataFrame:
    """The limit of the population loss: `paradigm`, `alpha`, `floor` (nats), once a line.

    Args:
        lines: with the columns `paradigm` and `alpha`.
        num_classes: C.

    Source: section 3.1. In the linear orthogonal setting it is the limit of Theorem 1; with any
    data no classifier has a lower expected loss where backgrounds say nothing of the class.
    """
    once = lines[_LINE].drop_duplicates(ignore_index=True)
    lines_of = zip(once["paradigm"], once["alpha"], strict=True)
    values = [float(theory.floor(name, alpha, num_classes)) for name, alpha in lines_of]
    return once.assign(floor=np.array(values, float))


def solution(
    paradigm: str, num_classes: int, times: Iterable[float], alpha: Any, m: int = 2
) -> pd.DataFrame:
    """Theorem 1: one row a time, columns `t`, `mu` and `MEASURES`.

    Args:
        paradigm, num_classes, alpha, m: see `chapters.dynamics.linear_orthogonal.trajectory`; the
            result does not depend on m.
        times: of gradient flow, >= 0, not decreasing.
    """
    table = theory.trajectory(paradigm, m, num_classes, np.array([*times], float), alpha)
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
    groups = [(json.loads(str(text)), own) for text, own in cells.groupby(cells["cell"].map(_key))]
    groups.sort(key=lambda group: _rank(group[0]))
    found = [shared for shared, _ in groups]
    names = [" ".join([e["task"], *setting_words(e, ["m", "num_classes"])]) for e in found]
    differ = differences(names, found)
    return [
        Setting(
            name=told_apart(name, shared, fields),
            task=shared["task"],
            m=shared["m"],
            n=shared["n"],
            num_classes=int(own["num_classes"].iloc[0]),
            shared=shared,
            cells=in_order(
                own.drop(columns="cell"), ["paradigm", "lr", "alpha", "seed", "cell_id"]
            ),
            rows=rows[rows["cell_id"].isin(own["cell_id"])],
        )
        for name, fields, (shared, own) in zip(names, differ, groups, strict=True)
    ]


def _key(cell: str) -> str:
    """What a cell shares with the others of its setting."""
    fields = json.loads(cell)
    for name in ("alpha", "schedule", "seed"):
        del fields[name]
    return json.dumps(fields, sort_keys=True)


def _rank(shared: Mapping[str, Any]) -> tuple[Any, ...]:
    task = shared["task"]
    sizes = shared["m"], shared.get("num_classes") or 0, shared["n"]
    return task == TASK, task, *sizes, json.dumps(shared, sort_keys=True)


def _evaluations(results: Results, cell_ids: Iterable[str]) -> pd.DataFrame:
    """The rows of `Setting`, of all cells."""
    rows = results.evaluations(cell_ids, _READ)
    at_end = (rows["split"] == "validation") & (rows["budget_fraction"] == 1)
    rows = rows[(rows["split"] == "train") | at_end]
    values = rows[_VALUES].astype(float)
    return rows.assign(**values.where(np.isfinite(values)))
