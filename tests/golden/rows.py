"""What tiny studies of every kind record, in one process and through Ray."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd

import analysis
import search_spaces
from study import run
from study.terminal.command import DONE
from tests.conftest import REAL_DATA, not_drawn
from tests.golden.record import Entries, Part, Tolerance, table
from tests.made_up.chapters import brought
from tests.made_up.commands import answer
from tests.made_up.layouts import OF_TASK
from tests.made_up.tiny_studies import OF_REAL_DATA, STUDIES

_COMMANDS = STUDIES | brought().studies
_OF_REAL_DATA = OF_REAL_DATA | brought().studies_of_real_data

_THROUGH_RAY = "digits in two stages"
"""Its hybrids fork there; in one process, each cell is trained from its start."""

_LEFT_OUT = (
    "study", "cell_id", "comparison_id", "data_digest", "data_notes", "cell", "device", "threads",
    "code_version", "package_versions", "finished_at", "examples", "total_train_seconds",
    "total_evaluate_seconds", "total_seconds", "train_seconds", "pack", "shared_prefix",
    "planned_seeds", "network", "network_digest", "labels", "measures",
)  # fmt: skip
"""Columns on the record itself, its time, machine and order, and what is in other columns."""

_ORDER = (
    "task", "architecture", "schedule", "alpha", "method", "width", "network_width", "paths",
    "seed", "budget_fraction", "split",
)  # fmt: skip


def _of_study(name: str, folder: Path) -> Entries:
    """The rows of a study, as CSV."""
    data = folder / "data"
    words = [word.format(data) for word in _COMMANDS[name].split()]
    if str(data) in words:
        OF_TASK[search_spaces.STUDIES[words[0]].task].write(data)
    return {name: _rows(folder, *words, "--shard", "1/1")}


def _through_ray(folder: Path) -> Entries:
    """The same of a study whose cells Ray trains."""
    words = STUDIES[_THROUGH_RAY].split()
    return {f"{_THROUGH_RAY}, through Ray": _rows(folder, *words, "--tracking", "none")}


def _of_real_data(name: str, folder: Path) -> Entries:
    """The same of a study of a data set at hand."""
    words = _OF_REAL_DATA[name].format(REAL_DATA).split()
    return {name: _rows(folder, *words, "--shard", "1/1")}


def _rows(folder: Path, *words: str) -> str:
    """What a command records."""
    results, cache = str(folder / "results"), str(folder / "cache")
    where = ["--results", results, "--cache-dir", cache, "--threads", "1"]
    with not_drawn():
        status, said = answer(run.main, [*words, *where])
    if status != DONE:  # nothing to record
        raise AssertionError(f"{' '.join(words)} ended with {status}: {said}")
    rows = _by_name(analysis.load(results)).dropna(axis="columns", how="all")
    order = [name for name in _ORDER if name in rows]
    return table(rows.sort_values(order).drop(columns=list(_LEFT_OUT), errors="ignore"))


def _by_name(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column for each name in `instance_bits`."""
    of_each = [dict(each) if isinstance(each, list) else {} for each in rows["instance_bits"]]
    held = pd.DataFrame(of_each, index=rows.index).add_prefix("instance_")
    return rows.drop(columns="instance_bits").join(held)


_ELSEWHERE = Tolerance(relative=1e-3, absolute=1e-4, share=0.05)
"""Other processors add up in another order, and some example lies on a border: with code for
processors without AVX, 2.6 % of the numbers of an entry were farther away."""

_MADE = {name: partial(_of_study, name) for name in _COMMANDS}
_MADE_OF_REAL_DATA = {name: partial(_of_real_data, name) for name in _OF_REAL_DATA}

PART = Part("rows", _MADE | {f"{_THROUGH_RAY}, through Ray": _through_ray}, elsewhere=_ELSEWHERE)
REAL = Part("rows_of_real_data", _MADE_OF_REAL_DATA, elsewhere=_ELSEWHERE)
