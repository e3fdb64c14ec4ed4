"""What is concluded from 12 made-up tables of runs: choices, differences, intervals, p, verdicts.

`analysis.record` records them, so that nothing of how cells are kept matters here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import analysis
from tests.golden.record import ROUNDING, Part, table
from tests.made_up.runs import TABLES

_VERDICTS = (
    "metric", "first", "second", "num_pairs", "mean_first", "mean_second", "difference", "low",
    "high", "p", "p_holm", "verdict", "needed_seeds", "seen_seeds",
)  # fmt: skip
_SUMMARY = (
    "paradigm",
    "accuracy",
    "accuracy_low",
    "accuracy_high",
    "saif",
    "saif_low",
    "saif_high",
)


def made(folder: Path) -> dict[str, str]:
    """Of each table the choices with their means and intervals, and the verdicts."""
    return {name: "".join(_concluded(folder / name, rows)) for name, rows in TABLES.items()}


def _concluded(results: Path, rows: pd.DataFrame) -> Iterator[str]:
    options = [name for name in ("lr",) if name in rows]
    analysis.record(results, rows, options=options)
    for select in ("accuracy", *(["saif"] if options else [])):
        (found,) = analysis.compare_results(results, select=select)
        yield f"budget {found.budget}, cut at {found.cut}, chosen by {select}\n"
        yield table(found.summary[[*_SUMMARY, *options]])
    yield table(found.paired[list(_VERDICTS)])


PART = Part("verdicts", {"": made}, ROUNDING)
