"""Numbers that the paper prints, to be shown beside measured ones and never mixed with them.

Source: "On the Learning Dynamics of Attention Networks" (arXiv 2307.13421, ECAI 2023), Table 1,
"with equal compute time". The paper reports one number a group, without an interval.
"""

from __future__ import annotations

import pandas as pd

TABLE_1: dict[tuple[str, int], dict[str, tuple[float, float]]] = {
    ("cifar10", 5): {
        "hard": (0.378, 0.633),
        "soft": (0.371, 0.753),
        "hybrid": (0.590, 0.766),
        "lvml": (0.620, 0.779),
    },
    ("cifar10", 20): {
        "hard": (0.019, 0.421),
        "soft": (0.238, 0.652),
        "hybrid": (0.382, 0.660),
        "lvml": (0.472, 0.710),
    },
    ("cifar100", 5): {
        "hard": (0.136, 0.466),
        "soft": (0.792, 0.832),
        "hybrid": (0.832, 0.800),
        "lvml": (0.775, 0.797),
    },
    ("cifar100", 20): {
        "hard": (0.017, 0.082),
        "soft": (0.670, 0.722),
        "hybrid": (0.668, 0.710),
        "lvml": (0.665, 0.690),
    },
}
"""(task, m) -> paradigm -> (SAIF, accuracy), fractions of the test mosaics."""

PUBLISHED_N = {"cifar10": 10_000, "cifar100": 50_000}
"""Training mosaics behind Table 1."""

PUBLISHED_EPOCHS = 100
"""The least that is known: 100 to 150 in the authors' scripts for CIFAR-10, for CIFAR-100 not
stated."""

PUBLISHED_BATCH = 256
PUBLISHED_ARCHITECTURES = ("scripts", "paper")
"""The networks of the authors' scripts, and those that the paper's appendix A.2 describes."""


def setting_differences(cells: pd.DataFrame, epochs: float) -> list[str]:
    """In what the cells of one comparison differ from the runs behind Table 1.

    Args:
        cells: one row a cell, at least one; the columns of `CELLS_SCHEMA`.
        epochs: passes over the training mosaics that a soft cell got; NaN where not known.

    Returns:
        One short phrase a difference; empty where Table 1 has no such task.
    """
    first = cells.iloc[0]
    n = PUBLISHED_N.get(first["task"])
    if n is None:
        return []
    texts = []
    if first["n"] != n:
        texts.append(f"n={first['n']:,d} training mosaics, not {n:,d}")
    # A training step never ends exactly on the target.
    if round(epochs) < PUBLISHED_EPOCHS if pd.notna(epochs) else False:
        texts.append(f"the compute of {epochs:.0f} epochs of soft, not {PUBLISHED_EPOCHS} or more")
    if first["architecture"] not in PUBLISHED_ARCHITECTURES:
        texts.append(f"the network {first['architecture']!r}, not the paper's")
    if first["batch_size"] != PUBLISHED_BATCH:
        texts.append(f"batch {first['batch_size']}, not {PUBLISHED_BATCH}")
    return texts
