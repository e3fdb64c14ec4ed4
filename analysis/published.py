"""Numbers that the paper prints, to be shown beside measured ones and never mixed with them.

Source: "On the Learning Dynamics of Attention Networks" (arXiv 2307.13421, ECAI 2023), Table 1,
"with equal compute time". The paper reports one number a group, without an interval.
"""

from __future__ import annotations

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
