"""Terminal text and tables of reports: of recorded CIFAR-10 cells and of made-up results."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pandas as pd

from analysis.conclude import conclude
from analysis.page.exports import exports
from analysis.section.section import Question
from study.results import Results
from tests.conftest import PROJECT
from tests.golden.record import ROUNDING, Entries, Part, table
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


def _of_recorded(name: str, _: Path) -> Entries:
    return _report(name, RECORDED, QUESTIONS[name])


def _of_made_up(name: str, folder: Path) -> Entries:
    MADE_UP[name](make_results(folder / "results"))
    return _report(name, folder / "results")


def _report(name: str, results: Path, question: Question | None = None) -> Entries:
    """What a report prints, and its tables."""
    conclusions = conclude(results, question)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        conclusions.print()
    files = exports(conclusions.sections)
    tables = sorted(file for file in files if file.endswith((".csv", ".md")))
    return {
        f"{name}, printed": printed.getvalue(),
        **{f"{name}, {file}": _short(files[file].decode()) for file in tables},
    }


def _short(text: str) -> str:
    """A table, or of one with many rows, in CSV, its columns, added up."""
    if text.count("\n") <= MOST_ROWS:
        return text
    rows = pd.read_csv(io.StringIO(text))
    return table(rows.apply(lambda column: [column.to_numpy()]))


_MADE = {name: partial(_of_recorded, name) for name in QUESTIONS}
PART = Part("reports", _MADE | {name: partial(_of_made_up, name) for name in MADE_UP}, ROUNDING)
