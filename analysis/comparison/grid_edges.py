"""Choices at the edge of a grid: a better option may lie beyond."""

from __future__ import annotations

import pandas as pd

from analysis.groups import GROUP
from analysis.words import listed, number


def edge_warnings(options: pd.DataFrame, choice: pd.DataFrame) -> list[str]:
    """One sentence for each end of an axis that is chosen, with the paradigms that chose it.

    The axes are the learning rate, or, of a schedule with phases, the first and last learning rate
    and the switch point.

    Args:
        options: as `analysis.comparison.choice.options` gives it.
        choice: as `analysis.choose` gives it.
    """
    chosen_for: dict[str, list[str]] = {}
    for pick in choice.to_dict("records"):
        tried = options[(options[GROUP] == pd.Series(pick)[GROUP]).all(axis=1)]
        for name, column in _axes(tried).items():
            grid = sorted(tried[column].dropna().unique())
            if len(grid) > 1 and pick[column] in (grid[0], grid[-1]):
                end = "smallest" if pick[column] == grid[0] else "largest"
                text = (
                    f"the chosen {name} {number(pick[column])} is the {end} of the {len(grid)} "
                    "tried; a better one may lie beyond the grid."
                )
                chosen_for.setdefault(text, []).append(str(pick["paradigm"]))
    return [f"{listed(names)}: {text}" for text, names in chosen_for.items()]


def _axes(tried: pd.DataFrame) -> dict[str, str]:
    """Name -> column of each axis that was searched in one group."""
    if tried["switch_point"].isna().all():
        return {"learning rate": "lr"}
    switch = {"switch point": "switch_point"}
    if (tried["lr"] == tried["last_lr"]).all():  # one rate for all phases: one warning
        return {"learning rate": "lr"} | switch
    return {"first learning rate": "lr", "last learning rate": "last_lr"} | switch
