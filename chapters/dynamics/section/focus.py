"""What a classifier learns while the focus is held at alpha (fixed focus, section 3).

A *setting* is all cells that differ in nothing but alpha, schedule and seed. One learning rate per
paradigm is chosen for all its alphas, so that lines of one panel differ in alpha alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.groups import PARADIGMS, best_first, in_order, stacked, with_chosen
from analysis.settings import differences, setting_words, told_apart
from chapters.dynamics import linear_orthogonal as theory
from chapters.dynamics.section.mean_curves import mean_curves
from chapters.dynamics.task import TASK
from study.results import Results

MEASURES = ("loss", "incentive", "incentive_slope")
"""In nats; nats for .01 more attention; nats per unit of attention."""

SETTING = ["setting", "task", "m", "n", "num_classes"]
"""Columns that say of a row which setting it is of."""

LINE = [*SETTING, "paradigm", "alpha"]
_RIVALS = [*SETTING, "paradigm"]
_OPTION = [*_RIVALS, "lr", "schedule"]
_VALUES = ["accuracy", "flow_time", *MEASURES]
_READ = ["cell_id", "mosaics_seen", "budget_fraction", "compute_flops", "split", *_VALUES]


@dataclasses.dataclass(frozen=True, eq=False)
class Focus:
    """Some settings. Each table has the columns of `SETTING`, in the order of `settings`.

    Attributes:
        settings: one row per setting: `momentum`, `train_metrics_size` and `id`, a hash of all
            that its cells share.
        cells: one row per cell: the columns of `CELLS_SCHEMA`.
        options: see `options_of`, with `chosen`: at most one per paradigm of a setting, the most
            accurate; ties go to the lower loss, then to the smaller rate.
        chosen: the rows of `cells` of the chosen options.
        runs: what those of them that are done learned of the train split, one row per (cell,
            evaluation): `paradigm`, `alpha`, `seed`, `cell_id`, `budget_fraction`, `epoch`
            (mosaics seen / n), `compute_flops`, `flow_time` (missing but for linear models),
            `loss_share`, the loss as a share of log C, and `MEASURES`, missing where not finite.
        curves: the means of `runs` over seeds, see
            `chapters.dynamics.section.mean_curves.mean_curves`; paradigms are in the order of the
            paper's panels.
    """

    settings: pd.DataFrame
    cells: pd.DataFrame
    options: pd.DataFrame
    chosen: pd.DataFrame
    runs: pd.DataFrame
    curves: pd.DataFrame

    def of(self, names: Collection[str]) -> Focus:
        """Those settings alone."""
        tables = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Focus(**{k: t[t["setting"].isin(names)] for k, t in tables.items()})

    @property
    def choice(self) -> pd.DataFrame:
        """The options that were chosen."""
        return self.options[self.options["chosen"]]


def read(results: Results, cells: pd.DataFrame) -> Focus | None:
    """Every setting in a results directory, data tasks first, the linear orthogonal one last.

    Args:
        results: the directory; only evaluations of these cells are read.
        cells: rows of fixed-focus cells with all columns of `CELLS_SCHEMA`. Cells of paradigms
            other than `PARADIGMS` are in no setting.

    Returns:
        None without a setting.

    Raises:
        ResultsError: unreadable results.
    """
    cells = cells[cells["paradigm"].isin(PARADIGMS) & cells["alpha"].notna()]
    if cells.empty:
        return None
    rows = results.evaluations(cells["cell_id"], _READ)
    values = rows[_VALUES].astype(float)
    rows = rows.assign(**values.where(np.isfinite(values)))
    keys = cells["cell"].map(_shared)
    found = sorted(map(json.loads, keys.unique()), key=_rank)
    names = [
        " ".join([each["task"], *setting_words(each, ["m", "num_classes"])]) for each in found
    ]
    settings = pd.DataFrame(found, columns=["task", "m", "n", "momentum", "train_metrics_size"])
    settings["setting"] = [*map(told_apart, names, found, differences(names, found))]
    settings["id"] = [_id(json.dumps(each, sort_keys=True)) for each in found]
    cells = settings[["setting", "id"]].merge(cells.assign(id=keys.map(_id)), on="id")
    classes = cells.drop_duplicates("id")[["id", "num_classes"]]
    return focus_of(settings.merge(classes, on="id"), cells.drop(columns="id"), rows)


def focus_of(settings: pd.DataFrame, cells: pd.DataFrame, rows: pd.DataFrame) -> Focus:
    """Chooses the learning rates, and takes the means of what they gave.

    Args:
        settings, cells: see `Focus`.
        rows: evaluations of the cells: `cell_id`, `split`, `mosaics_seen`, `budget_fraction`,
            `compute_flops`, `accuracy`, `flow_time` and `MEASURES`.
    """

    def in_their_order(table: pd.DataFrame) -> pd.DataFrame:
        return settings[["setting"]].merge(table, on="setting")

    cells = in_their_order(in_order(cells, ["paradigm", "lr", "alpha", "seed", "cell_id"]))
    at_end = rows[(rows["split"] == "validation") & (rows["budget_fraction"] == 1)]
    options = in_their_order(in_order(options_of(cells, at_end), _OPTION))
    ranked = best_first(options, _RIVALS, "validation_accuracy", ["lr", "schedule"])
    options = with_chosen(options, ranked.drop_duplicates(_RIVALS), _OPTION)
    chosen = cells.merge(options[options["chosen"]][_OPTION], on=_OPTION)
    runs = _runs(chosen, rows[rows["split"] == "train"])
    curves = mean_curves(runs, LINE, ("epoch", "compute_flops", "flow_time"), MEASURES)
    panels = {name: place for place, name in enumerate(PARADIGMS)}
    curves = curves.sort_values("paradigm", key=lambda names: names.map(panels), kind="stable")
    return Focus(settings, cells, options, chosen, runs, in_their_order(curves))


def options_of(cells: pd.DataFrame, at_end: pd.DataFrame) -> pd.DataFrame:
    """Validation scores of every learning rate that was tried.

    Args:
        cells: see `Focus`.
        at_end: `cell_id`, `accuracy` and `loss` on validation at the end of training.

    Returns:
        One row per (setting, paradigm, lr, schedule): `num_cells`, `num_alphas`, `num_seeds`,
        `num_diverged`, `num_censored`, `can_be_chosen`, `validation_accuracy` and
        `validation_loss`, means over alphas and seeds.

        An option can be chosen if none of its cells was censored and no other such option of its
        paradigm has more cells, which is all seeds at all alphas unless some are missing. Accuracy
        grows with alpha, so means of these options are over the (alpha, seed) that all of them
        have. A diverged cell counts as accuracy 1/C, and its loss is unknown.
    """
    table = cells.merge(at_end[["cell_id", "accuracy", "loss"]], on="cell_id", how="left")
    diverged = table["status"] == "diverged"
    table = table.assign(
        accuracy=table["accuracy"].mask(diverged, 1 / table["num_classes"]),
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
    by = [options[name] for name in _RIVALS]
    whole = options["num_cells"].where(options["num_censored"] == 0)
    options["can_be_chosen"] = fair = whole == whole.groupby(by).transform("max")
    rivals = options[_OPTION].assign(fair=fair, rivals=fair.groupby(by).transform("sum"))
    table = table.merge(rivals, on=_OPTION)
    common = table.groupby([*LINE, "seed"])["fair"].transform("sum")
    counted = table[~table["fair"] | (common == table["rivals"])]
    scores = counted.groupby(_OPTION)[["accuracy", "loss"]].mean(skipna=False)
    return options.join(scores.add_prefix("validation_"), on=_OPTION)


def _runs(chosen: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """See `Focus`; `rows` are of the train split."""
    done = chosen.loc[chosen["status"] == "done", [*LINE, "seed", "cell_id"]]
    runs = done.merge(rows, on="cell_id")
    # Where steps are long, several evaluations fall on one step, far from their targets.
    seen = runs["mosaics_seen"] / runs.groupby("cell_id")["mosaics_seen"].transform("max")
    runs = runs.assign(
        epoch=runs["mosaics_seen"] / runs["n"],
        loss_share=runs["loss"] / np.log(runs["num_classes"].astype(float)),
        budget_fraction=seen.where(runs["budget_fraction"] < 1, 1.0).astype(float),
    )
    return runs.drop_duplicates(["cell_id", "budget_fraction"])


def final(curves: pd.DataFrame) -> pd.DataFrame:
    """The last points of curves, with `floor`, the limit of the population loss, in nats.

    Also with `loss_share`, the loss as a share of log C.

    Source: section 3.1. In the linear orthogonal setting it is the limit of Theorem 1; with any
    data no classifier has a lower expected loss where backgrounds say nothing of the class.
    """
    last = curves[curves["budget_fraction"] == 1]
    lines = last[["paradigm", "alpha", "num_classes"]].itertuples(index=False)
    floors = [float(theory.floor(*line)) for line in lines]
    return last.assign(
        floor=np.array(floors, float),
        loss_share=last["loss"] / np.log(last["num_classes"].astype(float)),
    )


def closed_form(focus: Focus) -> pd.DataFrame:
    """Theorem 1 at the times of the curves of linear models: `LINE`, times and `MEASURES`."""
    curves = focus.curves
    linear = curves[(curves["task"] == TASK) & curves["flow_time"].notna()]
    return theorem(linear[[*LINE, "budget_fraction", "epoch", "flow_time"]])


def theorem(times: pd.DataFrame) -> pd.DataFrame:
    """Theorem 1 at given times: adds the columns of `MEASURES`.

    Args:
        times: `LINE` and `flow_time`, which does not decrease along a line.
    """
    parts = [times.assign(**dict.fromkeys(MEASURES, math.nan))[:0]]
    for line, points in times.groupby(LINE, sort=False):
        of: dict[str, Any] = dict(zip(LINE, line, strict=True))
        name, num_classes, alpha = of["paradigm"], of["num_classes"], of["alpha"]
        solved = theory.trajectory(name, of["m"], num_classes, points["flow_time"], alpha)
        slope = theory.incentive_slope(name, alpha, solved["mu"], num_classes)
        solved = solved.assign(incentive_slope=slope).set_axis(points.index)
        parts.append(points.join(solved[[*MEASURES]]))
    return stacked(parts)


def tables(focus: Focus) -> dict[str, pd.DataFrame]:
    """Name -> table of all settings.

    `fixed-focus-curves`: one row per (setting, paradigm, alpha, evaluation), means with their
    intervals, in nats. `-final`: the last of them, see `final`. `-closed-form`: Theorem 1 at the
    times of the linear models' curves; empty without any. `-options`: every learning rate that
    was tried, with what validation says, and whether it was chosen.
    """
    rates = focus.choice[[*_RIVALS, "lr"]]
    return {
        "fixed-focus-curves": focus.curves.merge(rates, "left", _RIVALS),
        "fixed-focus-final": final(focus.curves).merge(rates, "left", _RIVALS),
        "fixed-focus-closed-form": closed_form(focus),
        "fixed-focus-options": focus.options,
    }


def _id(shared: str) -> str:
    """16 hex digits, a hash of all that the cells of a setting share."""
    return hashlib.sha256(shared.encode()).hexdigest()[:16]


def _shared(cell: str) -> str:
    """What a cell shares with the others of its setting."""
    fields = json.loads(cell)
    for name in ("alpha", "schedule", "seed"):
        del fields[name]
    return json.dumps(fields, sort_keys=True)


def _rank(shared: Mapping[str, Any]) -> tuple[Any, ...]:
    task = shared["task"]
    sizes = shared["m"], shared.get("num_classes") or 0, shared["n"]
    return task == TASK, task, *sizes, json.dumps(shared, sort_keys=True)
