"""Terminal text and CSV files of reports: of recorded CIFAR-10 cells and of made-up results."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from analysis.conclude import conclude
from analysis.page.exports import exports
from analysis.section.section import Question
from study.results import Results
from tests.conftest import PROJECT
from tests.golden.record import ROUNDING, Part, table
from tests.made_up.chapters import brought
from tests.made_up.comparisons import make_results
from tests.made_up.settings import write_settings

RECORDED = PROJECT / "docs" / "cifar10-results"
QUESTIONS = {
    "cifar10-results": Question(),
    "cifar10-results at a budget": Question(budget=1.238e13, select="saif"),
    "cifar10-results, interpolated": Question(budget=1.238e13, interpolate=True, threshold=0.6),
    "cifar10-results by mosaics": Question(axis="mosaics"),
}
"""Name -> what is asked of them; some cells spend 1.238e13 FLOPs in half of their budget."""

MADE_UP: Mapping[str, Callable[[Results], object]] = {
    "across settings": write_settings,
    **{name: each.write for name, each in brought().results.items()},
}
"""Name -> what writes results."""

MOST_ROWS = 60
"""Of a table that is recorded row by row."""


def made(folder: Path) -> dict[str, str]:
    """Of each report what it prints, and its CSV files."""
    found: dict[str, str] = {}
    for name, question in QUESTIONS.items():
        found |= _report(name, RECORDED, question)
    for name, write in MADE_UP.items():
        write(make_results(folder / name))
        found |= _report(name, folder / name)
    return found


def _report(name: str, results: Path, question: Question | None = None) -> dict[str, str]:
    conclusions = conclude(results, question)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        conclusions.print()
    files = exports(conclusions.sections)
    tables = sorted(file for file in files if file.endswith(".csv"))
    return {
        f"{name}, printed": printed.getvalue(),
        **{f"{name}, {file}": _short(files[file].decode()) for file in tables},
    }


def _short(csv: str) -> str:
    """A table, or of one with many rows its columns, added up."""
    if csv.count("\n") <= MOST_ROWS:
        return csv
    rows = pd.read_csv(io.StringIO(csv))
    return table(rows.apply(lambda column: [column.to_numpy()]))


PART = Part("reports", made, ROUNDING)
