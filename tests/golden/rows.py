"""What tiny studies of every kind record, in one process and through Ray."""

from __future__ import annotations

from pathlib import Path

import analysis
import search_spaces
from study import run
from study.terminal.command import DONE
from tests.conftest import REAL_DATA, not_drawn
from tests.golden.record import Part, Tolerance, table
from tests.made_up.chapters import brought
from tests.made_up.commands import answer
from tests.made_up.layouts import OF_TASK
from tests.made_up.tiny_studies import OF_REAL_DATA, STUDIES

THROUGH_RAY = "digits in two stages"
"""Its hybrids fork there; in one process, each cell is trained from its start."""

_LEFT_OUT = (
    "study", "cell_id", "comparison_id", "data_digest", "data_notes", "cell", "device", "threads",
    "code_version", "package_versions", "finished_at", "examples", "total_train_seconds",
    "total_evaluate_seconds", "total_seconds", "train_seconds", "pack", "shared_prefix",
    "planned_seeds", "network", "network_digest",
)  # fmt: skip
"""Columns on the record itself, its time, machine and order, and what is in other columns."""

_ORDER = (
    "task", "architecture", "schedule", "alpha", "method", "width", "network_width", "paths",
    "seed", "budget_fraction", "split",
)  # fmt: skip


def made(folder: Path) -> dict[str, str]:
    """The rows of all studies, as CSV."""
    found = {}
    for name, command in (STUDIES | brought().studies).items():
        data = folder / "data" / name
        words = [word.format(data) for word in command.split()]
        if str(data) in words:
            OF_TASK[search_spaces.STUDIES[words[0]].task].write(data)
        found[name] = _rows(folder / "results" / name, [*words, "--shard", "1/1"], folder)
    words = [*STUDIES[THROUGH_RAY].split(), "--tracking", "none"]
    return found | {f"{THROUGH_RAY}, through Ray": _rows(folder / "on Ray", words, folder)}


def of_real_data(folder: Path) -> dict[str, str]:
    """As `made`, of the data sets at hand."""
    return {
        name: _rows(folder / name, [*command.format(REAL_DATA).split(), "--shard", "1/1"], folder)
        for name, command in (OF_REAL_DATA | brought().studies_of_real_data).items()
    }


def _rows(results: Path, words: list[str], folder: Path) -> str:
    """What a command records."""
    where = ["--results", str(results), "--cache-dir", str(folder / "cache"), "--threads", "1"]
    with not_drawn():
        status, said = answer(run.main, [*words, *where])
    if status != DONE:  # nothing to record
        raise AssertionError(f"{' '.join(words)} ended with {status}: {said}")
    rows = analysis.load(str(results)).dropna(axis="columns", how="all")
    order = [name for name in _ORDER if name in rows]
    return table(rows.sort_values(order).drop(columns=list(_LEFT_OUT), errors="ignore"))


_ELSEWHERE = Tolerance(relative=1e-3, absolute=1e-4, share=0.05)
"""Other processors add up in another order, and some example lies on a border: with code for
processors without AVX, 2.6 % of the numbers of an entry were farther away."""

PART = Part("rows", made, elsewhere=_ELSEWHERE)
REAL = Part("rows_of_real_data", of_real_data, elsewhere=_ELSEWHERE)
