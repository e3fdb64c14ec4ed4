"""Reads a results directory: equal compute, choice of options, intervals, tables, figures, report.

Analysis is table in, numbers out: nothing here trains, logs or changes a results directory, but
that `record` makes one of runs that were trained elsewhere. It knows of `study` only the schema of
the results (`study.results`), the closed forms (`study.theory`), how wide a terminal is
(`study.terminal`), how a command ends (`study.terminal.command`) and how it shows that it works
(`study.terminal.working`).
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.comparison.choice import choose, summarise
    from analysis.comparison.compare import compare, compare_results, comparisons, equal_compute
    from analysis.comparison.heat_maps import mean_heatmaps
    from analysis.comparison.learning_curves import learning_curve
    from analysis.reading import load
    from analysis.recording.recorder import record

__all__ = [
    "choose",
    "compare",
    "compare_results",
    "comparisons",
    "equal_compute",
    "learning_curve",
    "load",
    "mean_heatmaps",
    "record",
    "summarise",
]

_MODULES = {
    "choose": "comparison.choice",
    "summarise": "comparison.choice",
    "learning_curve": "comparison.learning_curves",
    "mean_heatmaps": "comparison.heat_maps",
    "load": "reading",
    "record": "recording.recorder",
}


def __dir__() -> list[str]:
    """What TAB finds."""
    return __all__


def __getattr__(name: str) -> Any:
    """Imports a function when it is asked for: pandas and SciPy take seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'analysis' has no attribute {name!r}")
    return pkgutil.resolve_name(f"analysis.{_MODULES.get(name, 'comparison.compare')}:{name}")
