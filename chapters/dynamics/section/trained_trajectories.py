"""Trained cells of the linear orthogonal setting: their trajectories, and how far from theory."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.groups import PARADIGMS, in_order
from analysis.settings import differences, setting_words
from chapters.dynamics import linear_orthogonal
from study.results import Results, ResultsError

QUANTITIES = ("mu", "nu", "loss")

LINE = ["setting", "m", "num_classes", "paradigm"]
"""Columns that identify a curve."""

ORDER = ["m", "num_classes", "setting", "paradigm"]
"""The same, in the order in which curves stand."""

_COLUMNS = ["cell_id", "split", "budget_fraction", "compute_flops", "flow_time", *QUANTITIES]
_KEPT = ["cell_id", "setting", "m", "num_classes", "paradigm", "lr", "seed"]
_OFF = ["deviation", "at_time", "mean_deviation", "seed_spread", "range"]
_SHARES = {
    "relative": "deviation",
    "mean_relative": "mean_deviation",
    "relative_spread": "seed_spread",
}


def read(results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """The evaluations on the test split of the cells that were trained to the end.

    Args:
        results: the directory.
        cells: rows of `cells` with `setting`, see `with_settings`.

    Returns:
        One row an evaluation, by cell and time: `cell_id`, `setting`, `m`, `num_classes`,
        `paradigm`, `lr`, `seed`, `budget_fraction`, `compute_flops`, `flow_time`, `mu`, `nu` and
        `loss` (nats).

    Raises:
        ResultsError: unreadable results, a cell without projections or with a number that is not
            finite.
    """
    done = cells[cells["status"] == "done"]
    found = results.evaluations(done["cell_id"], _COLUMNS)
    rows = done[_KEPT].merge(found[found["split"] == "test"].drop(columns="split"), on="cell_id")
    numbers = rows[["flow_time", *QUANTITIES]].astype(float)
    for at, column in np.argwhere(~np.isfinite(numbers.to_numpy())):
        raise ResultsError(
            f"cell {rows['cell_id'].iloc[at]} of the linear orthogonal setting has "
            f"{numbers.columns[column]} {numbers.iloc[at, column]:g}, which must be a finite "
            "number. Only the architecture linear has a trajectory: leave other cells out with "
            "--study NAME, or move its files away and run its study again."
        )
    return in_order(rows.assign(**numbers), [*ORDER, "seed", "cell_id", "flow_time"])


def with_settings(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with a column `setting`: which of them belong together, e.g. ``m=20, C=20``.

    Cells of a setting differ in paradigm and seed only. Where a paradigm has several learning
    rates, each of them is a setting; where each has one, they may differ. Names state what tells
    settings of one (m, C) apart.
    """
    key = ["comparison_id", "rates"]
    keyed = cells.assign(rates=[_rates(row) for row in cells.to_dict("records")])
    tried = keyed.groupby(["comparison_id", "paradigm"])["rates"].transform("nunique")
    most = tried.groupby(cells["comparison_id"]).transform("max")
    keyed["rates"] = keyed["rates"].where(most > 1, "")
    examples = keyed.drop_duplicates(key).sort_values(["m", "num_classes", *key])
    alike = [f"m={each['m']}, C={each['num_classes']}" for each in examples.to_dict("records")]
    shared = [json.loads(text) for text in examples["cell"]]
    names = [
        ", ".join([name, *setting_words(own, fields), *[f"lr={rate}"] * bool(rate)])
        for name, own, fields, rate in zip(
            alike, shared, differences(alike, shared), examples["rates"], strict=True
        )
    ]
    named = examples[key].assign(setting=names)
    ids = " (" + named["comparison_id"].str[:8] + ")"
    named["setting"] += ids.where(named["setting"].duplicated(), "")
    found = keyed[key].merge(named, "left", key)
    return cells.assign(setting=found["setting"].to_numpy())


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
    records: list[Any] = []
    for line, group in rows[rows["paradigm"].isin(PARADIGMS)].groupby(LINE, sort=False):
        of: dict[str, Any] = dict(zip(LINE, line, strict=True))
        seeds, times = group["cell_id"].nunique(), np.unique(group["flow_time"])
        named = of["paradigm"], of["m"], of["num_classes"]
        theory = linear_orthogonal.trajectory(*named, times)[[*QUANTITIES]]
        exact = theory.iloc[np.searchsorted(times, group["flow_time"])]
        off = group[[*QUANTITIES]] - exact.to_numpy()
        at_once = off.groupby(group["budget_fraction"])
        found = {
            **of,
            "quantity": QUANTITIES,
            "num_seeds": seeds,
            "deviation": off.abs().max(),
            "at_time": group["flow_time"][off.abs().idxmax()].to_numpy(),
            "mean_deviation": at_once.mean().abs().max(),
            "seed_spread": (at_once.max() - at_once.min()).max() if seeds > 1 else np.nan,
            "range": np.ptp(theory, axis=0),
        }
        records += pd.DataFrame(found).to_dict("records")
    table = pd.DataFrame(records, columns=[*LINE, "quantity", "num_seeds", *_OFF])
    size = table["range"].where(table["range"] > 0)
    return table.assign(**{share: table[column] / size for share, column in _SHARES.items()})


def _rates(cell: Mapping[Hashable, Any]) -> str:
    """Names what tells a paradigm's schedules apart."""
    if pd.isna(cell["switch_point"]):
        return f"{cell['lr']:g}"
    return f"{cell['lr']:g} > {cell['last_lr']:g} at {cell['switch_point']:g}"
