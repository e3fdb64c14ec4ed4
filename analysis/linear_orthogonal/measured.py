"""Trained cells of the linear orthogonal setting: their trajectories, and how far from theory."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.groups import PARADIGMS, in_order, paradigm_order
from analysis.section.curves import mean_curves
from analysis.words import differences, setting_words
from study.results import Results, ResultsError
from study.theory import linear_orthogonal

QUANTITIES = ("mu", "nu", "loss")

_COLUMNS = [
    "cell_id", "split", "budget_fraction", "compute_flops", "flow_time", *QUANTITIES,
]  # fmt: skip
_KEPT = ["cell_id", "setting", "m", "num_classes", "paradigm", "lr", "seed", "comparison_id"]
_SETTING = ["setting", "m", "num_classes"]
_SHARES = {
    "deviation": "relative",
    "mean_deviation": "mean_relative",
    "seed_spread": "relative_spread",
}


def read(results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """The evaluations on the test split of the cells that were trained to the end.

    Args:
        results: the directory.
        cells: rows of `cells` with `setting`, see `with_settings`.

    Returns:
        One row an evaluation, by cell and time: `cell_id`, `setting`, `m`, `num_classes`,
        `paradigm`, `lr`, `seed`, `comparison_id`, `budget_fraction`, `compute_flops`,
        `flow_time`, `mu`, `nu` and `loss` (nats).

    Raises:
        ResultsError: unreadable results, a cell without projections or with a number that is not
            finite.
    """
    done = cells[cells["status"] == "done"]
    found = results.evaluations(done["cell_id"], _COLUMNS) if len(done) else None
    if found is None:
        found = pd.DataFrame(columns=_COLUMNS)
    rows = done[_KEPT].merge(found[found["split"] == "test"].drop(columns="split"), on="cell_id")
    names = ["flow_time", *QUANTITIES]
    values = rows[names].to_numpy(float)
    for at, column in np.argwhere(~np.isfinite(values)):
        raise ResultsError(
            f"cell {rows['cell_id'].iloc[at]} of the linear orthogonal setting has "
            f"{names[column]} {values[at, column]:g}, which must be a finite number. Only the "
            "architecture linear has a trajectory: leave other cells out with --study NAME, or "
            "move its files away and run its study again."
        )
    rows[names] = values
    by = ["m", "num_classes", "setting", "paradigm", "seed", "cell_id", "flow_time"]
    return in_order(rows, by)


def with_settings(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with a column `setting`: which of them belong together, e.g. ``m=20, C=20``.

    Cells of a setting differ in paradigm and seed only. Where a paradigm has several learning
    rates, each of them is a setting; where each has one, they may differ. Names state what tells
    settings of one (m, C) apart.
    """
    cells = cells.assign(_rates=[_rates(row) for row in cells.to_dict("records")])
    keys = {}
    for comparison_id, group in cells.groupby("comparison_id"):
        several = group.groupby("paradigm")["_rates"].nunique().max() > 1
        for cell_id, rates in zip(group["cell_id"], group["_rates"], strict=True):
            keys[cell_id] = (str(comparison_id), rates if several else "")
    cells = cells.assign(_key=cells["cell_id"].map(keys))
    names: dict[tuple[str, str], str] = {}
    for (m, num_classes), group in cells.groupby(["m", "num_classes"]):
        examples = group.drop_duplicates("_key").sort_values("_key")
        settings = [json.loads(text) for text in examples["cell"]]
        alike = f"m={m}, C={num_classes}"
        differs = differences([alike] * len(settings), settings)
        for (comparison_id, rates), mine, fields in zip(
            examples["_key"], settings, differs, strict=True
        ):
            parts = [alike, *setting_words(mine, fields)]
            name = ", ".join(parts + [f"lr={rates}"] * bool(rates))
            if name in names.values():
                name += f" ({comparison_id[:8]})"
            names[comparison_id, rates] = name
    return cells.assign(setting=cells["_key"].map(names)).drop(columns=["_key", "_rates"])


def curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean and t interval over the seeds of mu, nu and loss at every evaluation.

    Args:
        rows: as `read` gives them.

    Returns:
        One row a (setting, paradigm, evaluation) that all seeds have: `setting`, `m`,
        `num_classes`, `paradigm`, `budget_fraction`, `compute_flops`, `flow_time`, `num_seeds`,
        and each of mu, nu, loss with `_low` and `_high` (NaN with one seed).
    """
    line = [*_SETTING, "paradigm"]
    return mean_curves(rows, line, ("compute_flops", "flow_time"), QUANTITIES)


def deviations(rows: pd.DataFrame) -> pd.DataFrame:
    """How far trained models are from the closed form.

    Args:
        rows: as `read` gives them.

    Returns:
        One row a (setting, paradigm with a closed form, quantity): `setting`, `m`, `num_classes`,
        `paradigm`, `quantity` (mu, nu or loss), `num_seeds`, `deviation`, the largest distance
        of any seed at any evaluation, `at_time`, its time; `mean_deviation`, that of the mean
        over seeds; `seed_spread`, the largest distance between two seeds at one evaluation (NaN
        with one seed); `range`, how far the closed form goes meanwhile; `relative`,
        `mean_relative` and `relative_spread`, as shares of it. In the unit of the quantity.
    """
    records = []
    for (_, paradigm), group in rows.groupby(["setting", "paradigm"], sort=False):
        if paradigm not in PARADIGMS:
            continue
        first, seeds = group.iloc[0], group["cell_id"].nunique()
        times = np.unique(group["flow_time"])
        theory = linear_orthogonal.trajectory(
            str(paradigm), int(first["m"]), int(first["num_classes"]), times
        )
        at = np.searchsorted(times, group["flow_time"])
        for name in QUANTITIES:
            closed = theory[name].to_numpy()
            off = group[name].to_numpy() - closed[at]
            by_point = group.assign(_off=off).groupby("budget_fraction")["_off"]
            spread = by_point.max() - by_point.min()
            size = float(np.ptp(closed))
            record: dict[str, Any] = {column: first[column] for column in _SETTING}
            record |= {
                "paradigm": paradigm,
                "quantity": name,
                "num_seeds": seeds,
                "deviation": float(np.abs(off).max()),
                "at_time": float(group["flow_time"].to_numpy()[np.abs(off).argmax()]),
                "mean_deviation": float(by_point.mean().abs().max()),
                "seed_spread": float(spread.max()) if seeds > 1 else np.nan,
                "range": size,
            }
            for column, share in _SHARES.items():
                record[share] = record[column] / size if size > 0 else np.nan
            records.append(record)
    columns = [*_SETTING, "paradigm", "quantity", "num_seeds", "deviation", "at_time"]
    columns += ["mean_deviation", "seed_spread", "range", *_SHARES.values()]
    return pd.DataFrame(records, columns=columns)


def lost_seeds(cells: pd.DataFrame, status: str = "diverged") -> dict[str, int]:
    """Paradigm -> number of its cells that ended that way; absent where there are none."""
    ended = cells.loc[cells["status"] == status, "paradigm"]
    return {name: int((ended == name).sum()) for name in paradigm_order(ended)}


def _rates(cell: Mapping[Hashable, Any]) -> str:
    """Names what tells a paradigm's schedules apart."""
    if pd.isna(cell["switch_point"]):
        return f"{cell['lr']:g}"
    return f"{cell['lr']:g} > {cell['last_lr']:g} at {cell['switch_point']:g}"
