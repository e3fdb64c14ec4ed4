"""Results of three settings: a base, one with other mosaics, one with other networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.cell.network_settings import NetworkSettings
from study.results import Results
from tests.made_up.comparisons import NUM_CLASSES, make_cell, write

SEEDS = range(7)
PARADIGMS = ("hard", "soft", "lvml")
BASE = "digits m=10 (base)"
SETTINGS: dict[str, dict[str, Any]] = {
    BASE: {},
    "m=5": {"m": 5},
    "depth 1": {"network": NetworkSettings(depth=1)},
}
DIVERGED = ("depth 1", "lvml", 3)
FAILED = ("m=5", "soft", 5)


def scores(setting: str, paradigm: str) -> NDArray[np.float64]:
    """(seeds, 2) SAIF and accuracy as they count; NaN where the cell failed.

    At m=5 lvml gains ten points of SAIF; lvml has ten more than hard everywhere. All else is noise
    of up to two points.
    """
    place = [*SETTINGS].index(setting), PARADIGMS.index(paradigm)
    noise = np.random.default_rng(place).uniform(-0.02, 0.02, (len(SEEDS), 2))
    gain = 0.1 * (setting == "m=5") * (paradigm == "lvml")
    values = noise + np.array([0.5 + 0.05 * place[1] + gain, 0.8])
    for lost, counted in ((DIVERGED, (0, 1 / NUM_CLASSES)), (FAILED, math.nan)):
        if lost[:2] == (setting, paradigm):
            values[lost[2]] = counted
    return values


def write_settings(results: Results) -> None:
    """All seeds of all paradigms in all settings, one option each."""
    for setting, fields in SETTINGS.items():
        for paradigm in PARADIGMS:
            for seed, (saif, accuracy) in zip(SEEDS, scores(setting, paradigm), strict=True):
                cell = make_cell(paradigm, seed=seed, evaluation_points=(0.5, 1.0), **fields)
                if (setting, paradigm, seed) == DIVERGED:
                    write(results, cell, status="diverged", points=(0.5,))
                elif (setting, paradigm, seed) != FAILED:
                    write(results, cell, float(accuracy), float(saif))
