"""Reads a results directory: equal compute, choice of options, intervals, tables, figures, report.

Analysis is table in, numbers out: nothing here trains, logs or changes a results directory, but
a function that a chapter brings may make one. It knows of `study` only the schema of the results
(`study.results`), what chapters bring to it (`study.reported`, `study.door`), how wide a terminal
is (`study.terminal`), how a command ends (`study.terminal.command`) and how it shows that it works
(`study.terminal.working`).
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from study.door import imported
from study.reported import FUNCTIONS

if TYPE_CHECKING:
    from analysis.digest.choose import choose
    from analysis.digest.compare import compare, compare_results, comparisons, equal_compute
    from analysis.digest.means import learning_curve, mean_heatmaps, summarise
    from analysis.digest.read import load

__all__ = [
    "choose",
    "compare",
    "compare_results",
    "comparisons",
    "equal_compute",
    "learning_curve",
    "load",
    "mean_heatmaps",
    "summarise",
]

_MODULES = {
    "choose": "analysis.digest.choose",
    "summarise": "analysis.digest.means",
    "learning_curve": "analysis.digest.means",
    "mean_heatmaps": "analysis.digest.means",
    "load": "analysis.digest.read",
}


def __dir__() -> list[str]:
    """What TAB finds."""
    return [*__all__, *FUNCTIONS]


def __getattr__(name: str) -> Any:
    """Imports a function when it is asked for: pandas and SciPy take seconds."""
    if name in __all__:
        return pkgutil.resolve_name(f"{_MODULES.get(name, 'analysis.digest.compare')}:{name}")
    if name not in FUNCTIONS and not name.startswith("_"):
        importlib.import_module("study.results")  # lets packages in, which may bring it
    if name in FUNCTIONS:
        return imported(FUNCTIONS[name])
    raise AttributeError(f"module 'analysis' has no attribute {name!r}")
