"""What is missing from the numbers of trained networks, or unusual about them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.paths.heads.heads_cell import SOLVED
from chapters.paths.section.heads.heads_settings import Trained
from chapters.paths.section.networks import NETWORK, network_text, of_network
from chapters.paths.section.settings import vectors


def unscored(setting: Trained) -> dict[tuple[int, ...], list[str]]:
    """Seeds of trained networks -> the scorers that have no cell of them."""
    without: dict[tuple[int, ...], list[str]] = {}
    for network in setting.cells[NETWORK].drop_duplicates().to_dict("records"):
        scored = of_network(setting.cells, *network.values())["seed"]
        if lacking := set(setting.networks["seed"]) - set(scored):
            without.setdefault(tuple(sorted(lacking)), []).append(network_text(network))
    return without


def at_ends(setting: Trained) -> pd.DataFrame:
    """How often a temperature was chosen at an end of those that were tried.

    Returns:
        One row of theory at a width, or of the limit: `NETWORK`, in how many of its cells it is
        the `least` and the `largest`, and `num_cells`.
    """
    cells = setting.cells[setting.cells["method"].isin(SOLVED)]
    several = cells.assign(tried=vectors(cells["temperatures"]))
    several = several[several["tried"].map(len) > 1]
    ends = {"least": several["tried"].map(min), "largest": several["tried"].map(max)}
    at = {name: np.isclose(end, several["temperature"]) for name, end in ends.items()}
    counts = several[NETWORK].assign(**at, num_cells=1)
    return counts.groupby(NETWORK, sort=False).sum().reset_index()
