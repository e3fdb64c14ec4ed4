"""Reads a results directory: equal compute, choice of options, intervals, tables, figures, report.

Analysis is table in, numbers out: nothing here trains, logs or changes a results directory. It
knows of `study` only the schema of the results (`study.results`), the closed forms
(`study.theory`) and how wide a terminal is (`study.terminal`).
"""

from __future__ import annotations

from analysis.choice import choose, summarise
from analysis.compare import compare, compare_results, comparisons, equal_compute
from analysis.loading import load

__all__ = [
    "choose",
    "compare",
    "compare_results",
    "comparisons",
    "equal_compute",
    "load",
    "summarise",
]
