"""Words for networks and paths, which tables, figures and sentences share."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from analysis.attention_paths.networks import ALL, DENOISING, GOOD, LIMIT

Row = Mapping[Hashable, Any]

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


def limit_text(paths: str) -> str:
    """``limit, all paths``, ``limit, good path alone``."""
    return f"limit, {paths_text(paths).replace('the ', '')}"


def path_text(name: str) -> str:
    """The name of one path; where it lists heads, ``good → random``."""
    return name.replace(", ", " → ")


def network_text(row: Row) -> str:
    """``theory N=10``, ``slice N=10``, ``limit, all paths``.

    Args:
        row: has the columns `analysis.attention_paths.networks.NETWORK`.
    """
    method, width, paths = (row[name] for name in ("method", "network_width", "paths"))
    if method == LIMIT:
        return limit_text(paths)
    of_paths = "" if paths == ALL else f", {paths_text(paths)}"
    return f"{method} {width_text(width)}{of_paths}"


def points_text(share: float) -> str:
    """A difference of accuracies: 0.012 -> ``+1.2 points``."""
    return f"{signed(share)} points"


def three_decimals(value: float) -> str:
    """Of an overlap or an R-hat; ``-`` if not finite."""
    return f"{value:.3f}" if math.isfinite(value) else "-"


def signed(share: float, digits: int = 1) -> str:
    """0.012 -> ``+1.2``, in per cent; ``-`` if not finite."""
    return f"{round(100 * share, digits) + 0.0:+.{digits}f}" if math.isfinite(share) else "-"
