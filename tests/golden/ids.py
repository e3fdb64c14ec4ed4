"""The ids of all cells that the presets of all studies declare, where no data are at hand."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from search_spaces import all_studies
from study.cell import AnyCell
from study.plan.planning import planned
from study.run_options import requested
from tests.golden.record import Part

_NEEDED = {"images": ("--set", "foreground=heron+stork")}
"""Study -> options without which it has no plan."""


def made(_: Path) -> dict[str, str]:
    """A line for each preset: how the ids of its cells begin, in their order."""
    presets = [(name, preset) for name, space in all_studies().items() for preset in space.presets]
    return {" ".join(each): f"{' '.join(c.id[:5] for c in _cells(*each))}\n" for each in presets}


def _said(entry: str, word: int) -> str:
    cells = _cells(*entry.split())
    if word >= len(cells):
        return "(no such cell now)"
    cell = cells[word]
    return f"({cell.task}, n={cell.n}, {cell.text}, seed={cell.seed}, {cell.id})"


@functools.cache
def _cells(study: str, preset: str) -> Sequence[AnyCell]:
    with TemporaryDirectory() as cache:
        words = [study, "--preset", preset, "--plan", "--cache-dir", cache, "--results", cache]
        return planned(requested([*words, *_NEEDED.get(study, ())])).cells


PART = Part("ids", made, said=_said)
