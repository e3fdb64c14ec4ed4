"""Tables of the linear orthogonal setting."""

from __future__ import annotations

import pandas as pd

from analysis.linear_orthogonal import measured
from analysis.linear_orthogonal.claims import LEVELS, time_text
from analysis.linear_orthogonal.closed_form import CONFIDENT
from analysis.words import number, percent


def deviation_cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """One row a (setting, paradigm); each quantity with the spread of the seeds beside it."""
    header = ["setting", "paradigm", "n"]
    for name in measured.QUANTITIES:
        header += [f"{name} %", "between seeds", "of the mean"]
    rows = []
    for (setting, paradigm), group in table.groupby(["setting", "paradigm"], sort=False):
        of_quantity = {row["quantity"]: row for row in group.to_dict("records")}
        cells = [str(setting), str(paradigm), str(group["num_seeds"].iloc[0])]
        for name in measured.QUANTITIES:
            row = of_quantity[name]
            cells += [
                percent(row[column], 2)
                for column in ("relative", "relative_spread", "mean_relative")
            ]
        rows.append(cells)
    return header, rows


def convergence_cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """One row a (m, C, paradigm); the first to get there is marked with *."""
    times = [f"time_to_{100 * share:g}" for share in LEVELS] + ["time_to_focus"]
    header = ["setting", "paradigm", *(f"{100 * share:g} %" for share in LEVELS)]
    header += [f"attention {CONFIDENT:g}", "nu", "loss"]
    best = table.groupby(["m", "num_classes"])[times].transform("min")
    rows = []
    both = zip(table.to_dict("records"), best.to_dict("records"), strict=True)
    for row, first in both:
        cells = [f"m={row['m']}, C={row['num_classes']}", str(row["paradigm"])]
        cells += [time_text(row[t]) + (" *" if row[t] == first[t] else "") for t in times]
        rows.append([*cells, f"{row['nu']:.2f}", number(row["loss"])])
    return header, rows
