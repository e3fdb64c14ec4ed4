"""Tables of runs of another training loop, as `analysis.record` takes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

SPENT = (250, 500, 1_000)


def runs(
    scores: Mapping[str, float], seeds: int = 8, noise: float = 0.01, **columns: Any
) -> pd.DataFrame:
    """Runs whose accuracy grows with what they spend, and whose SAIF does so more slowly.

    Args:
        scores: paradigm -> accuracy at the end.
        noise: standard deviation over seeds.
        columns: of all runs.
    """
    random = np.random.default_rng(len(scores))
    rows: list[dict[str, Any]] = []
    for place, (paradigm, score) in enumerate(scores.items()):
        for seed in range(seeds):
            own = score + random.normal(0, noise)
            for spent in SPENT:
                share = math.sqrt(spent / SPENT[-1])
                for split in ("validation", "test"):
                    accuracy = min(1.0, (own + random.normal(0, 0.005)) * share)
                    saif = accuracy * (0.5 + place / 10) * share
                    row = {"paradigm": paradigm, "seed": seed, "compute": spent, "split": split}
                    rows.append(row | {"accuracy": accuracy, "saif": saif, "loss": 1 - accuracy})
    return pd.DataFrame(rows).assign(**columns)


def _options(ends: Mapping[float, float], **changes: Any) -> pd.DataFrame:
    """Soft, and hard that is worse, at several learning rates."""
    tried = (runs({"soft": end, "hard": end - 0.04}, lr=lr, **changes) for lr, end in ends.items())
    return pd.concat(tried)


ORDER = {"soft": 0.7, "hard": 0.72, "lvml": 0.8}
CLEAR = runs(ORDER)
_LOST, _BLIND = "paradigm == 'hard' and seed == 1", "paradigm == 'hard' and seed % 3 == 0"
_CONFIRM = runs({"soft": 0.78, "hard": 0.77}, lr=0.3, stage="confirm")

TABLES: Mapping[str, pd.DataFrame] = {
    "a clear order": CLEAR,
    "equal paradigms": runs(dict.fromkeys(ORDER, 0.7)),
    "much noise": runs(ORDER, noise=0.15),
    "five seeds, too few": runs(ORDER, seeds=5),
    "six seeds, just enough": runs(ORDER, seeds=6),
    "options, tested where they were chosen": _options({0.1: 0.7, 0.2: 0.8}),
    "options in two stages": pd.concat(
        [
            _options({0.1: 0.7, 0.3: 0.8}, seeds=2, stage="tune"),
            _CONFIRM.assign(seed=_CONFIRM["seed"] + 100),
        ]
    ),
    "a dearer paradigm": CLEAR.assign(
        compute=CLEAR["compute"] + 70 * CLEAR["paradigm"].eq("lvml")
    ),
    "a shorter paradigm": CLEAR.query("paradigm != 'hard' or compute < 1_000"),
    "a diverged seed": CLEAR.assign(
        num_classes=3, status=np.where(CLEAR.eval(_LOST), "diverged", "done")
    ).query("status == 'done' or compute < 1_000"),
    "seeds that one paradigm lacks": CLEAR.query("paradigm != 'soft' or seed > 1"),
    "seeds that never learn": CLEAR.assign(
        num_classes=3, accuracy=CLEAR["accuracy"].mask(CLEAR.eval(_BLIND), 1 / 3)
    ),
}
"""Name -> runs."""
