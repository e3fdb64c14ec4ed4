"""Trained cells of the linear orthogonal setting: their trajectories, and how far from theory."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.forms import percent
from analysis.groups import PARADIGMS, in_order, paradigm_order
from analysis.settings import differences, setting_words
from chapters.dynamics import linear_orthogonal
from study.results import Results, ResultsError

QUANTITIES = ("mu", "nu", "loss")

LINE = ["setting", "m", "num_classes", "paradigm"]
"""Columns that identify a curve."""

_COLUMNS = ["cell_id", "split", "budget_fraction", "compute_flops", "flow_time", *QUANTITIES]
_KEPT = ["cell_id", "setting", "m", "num_classes", "paradigm", "lr", "seed"]
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
    by = ["m", "num_classes", "setting", "paradigm", "seed", "cell_id", "flow_time"]
    return in_order(rows.assign(**numbers), by)


def with_settings(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with a column `setting`: which of them belong together, e.g. ``m=20, C=20``.

    Cells of a setting differ in paradigm and seed only. Where a paradigm has several learning
    rates, each of them is a setting; where each has one, they may differ. Names state what tells
    settings of one (m, C) apart.
    """
    rates = [_rates(row) for row in cells.to_dict("records")]
    keyed = cells.assign(rates=rates)
    tried = keyed.groupby(["comparison_id", "paradigm"])["rates"].transform("nunique")
    most = tried.groupby(cells["comparison_id"]).transform("max")
    keyed["rates"] = keyed["rates"].where(most > 1, "")
    key = ["comparison_id", "rates"]
    names: dict[tuple[str, str], str] = {}
    for (m, num_classes), group in keyed.groupby(["m", "num_classes"]):
        examples = group.drop_duplicates(key).sort_values(key)
        settings = [json.loads(text) for text in examples["cell"]]
        alike = f"m={m}, C={num_classes}"
        differs = differences([alike] * len(settings), settings)
        of_each = examples[key].itertuples(index=False, name=None)
        for (comparison_id, lr), fields, own in zip(of_each, differs, settings, strict=True):
            name = ", ".join([alike, *setting_words(own, fields), *[f"lr={lr}"] * bool(lr)])
            again = f" ({comparison_id[:8]})" if name in names.values() else ""
            names[comparison_id, lr] = name + again
    return cells.assign(setting=[names[each] for each in keyed[key].itertuples(index=False)])


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
    for line, group in rows[rows["paradigm"].isin(PARADIGMS)].groupby(LINE, sort=False):
        m, num_classes, paradigm = group[LINE[1:]].iloc[0]
        seeds, times = group["cell_id"].nunique(), np.unique(group["flow_time"])
        theory = linear_orthogonal.trajectory(paradigm, int(m), int(num_classes), times)
        exact = theory.iloc[np.searchsorted(times, group["flow_time"])]
        for name in QUANTITIES:
            off = group[name] - exact[name].to_numpy()
            at_once = off.groupby(group["budget_fraction"])
            spread = (at_once.max() - at_once.min()).max() if seeds > 1 else np.nan
            size = np.ptp(theory[name])
            record = [off.abs().max(), group["flow_time"][off.abs().idxmax()]]
            records.append([*line, name, seeds, *record, at_once.mean().abs().max(), spread, size])
    columns = [*LINE, "quantity", "num_seeds", "deviation", "at_time"]
    table = pd.DataFrame(records, columns=[*columns, "mean_deviation", "seed_spread", "range"])
    size = table["range"].where(table["range"] > 0)
    return table.assign(**{share: table[column] / size for share, column in _SHARES.items()})


def deviation_cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """One row a (setting, paradigm); each quantity with the spread of the seeds beside it."""
    header = ["setting", "paradigm", "n"]
    for name in QUANTITIES:
        header += [f"{name} %", "between seeds", "of the mean"]
    shown = ["relative", "relative_spread", "mean_relative"]
    lines = table.groupby(["setting", "paradigm", "num_seeds"], sort=False)
    rows = [
        [*map(str, line), *(percent(share, 2) for share in group[shown].to_numpy().ravel())]
        for line, group in lines
    ]
    return header, rows


def lost_seeds(cells: pd.DataFrame, status: str = "diverged") -> dict[str, int]:
    """Paradigm -> number of its cells that ended that way; absent where there are none."""
    counts = cells.loc[cells["status"] == status, "paradigm"].value_counts()
    return {name: int(counts[name]) for name in paradigm_order(counts.index)}


def _rates(cell: Mapping[Hashable, Any]) -> str:
    """Names what tells a paradigm's schedules apart."""
    if pd.isna(cell["switch_point"]):
        return f"{cell['lr']:g}"
    return f"{cell['lr']:g} > {cell['last_lr']:g} at {cell['switch_point']:g}"
