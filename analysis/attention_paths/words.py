"""Words for networks and paths, which tables, figures and sentences share."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from analysis.attention_paths.networks import ALL, DENOISING, GOOD, LIMIT
from analysis.words import known, points

Row = Mapping[Hashable, Any]

LONGER_CHAINS = "raise --set warmup=... draws=..."
"""What to do about chains that have not converged."""

_PATHS = {
    ALL: "all paths",
    GOOD: "the good path alone",
    DENOISING: "the good and the denoising path",
}


def width_text(width: float) -> str:
    """``N=10``; ``limit`` for an infinite one."""
    return f"N={width:g}" if math.isfinite(width) else "limit"


def paths_text(paths: str) -> str:
    """``all paths``, ``the good path alone``."""
    return _PATHS.get(paths, paths)


def path_text(name: str) -> str:
    """The name of one path; where it lists heads, ``good → random``."""
    return name.replace(", ", " → ")


def network_text(row: Row) -> str:
    """``theory N=10``, ``slice N=10``, ``limit, good path alone``.

    Args:
        row: has the columns `analysis.attention_paths.networks.NETWORK`.
    """
    method, width, paths = (row[name] for name in ("method", "network_width", "paths"))
    if method == LIMIT:
        return f"limit, {paths_text(paths).replace('the ', '')}"
    return f"{method} {width_text(width)}" + (f", {paths_text(paths)}" if paths != ALL else "")


def points_text(share: float) -> str:
    """A difference of accuracies: 0.012 -> ``+1.2 points``."""
    return f"{points(share)} points"


def r_hat_text(value: float) -> str:
    """``1.0096``: three decimals would round what has converged to the threshold, 1.01."""
    return f"{value:.4f}" if known(value) else "-"
