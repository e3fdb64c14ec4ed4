"""The ids of all cells that the presets of all studies declare, on data as they are published."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from search_spaces import STUDIES
from study.cell import AnyCell
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.tasks.sources.places import Places
from tests.golden.record import Part
from tests.made_up.facts import published

_NEEDED = {"images": ("foreground=heron+stork",)}
"""Study -> values of axes without which it has no plan."""


def made(_: Path) -> dict[str, str]:
    """A line for each preset: how the ids of its cells begin, in their order."""
    presets = [(name, preset) for name, space in STUDIES.items() for preset in space.presets]
    return {" ".join(each): f"{' '.join(c.id[:5] for c in _cells(*each))}\n" for each in presets}


def _said(entry: str, word: int) -> str:
    cells = _cells(*entry.split())
    if word >= len(cells):
        return "(no such cell now)"
    cell = cells[word]
    return f"({cell.task}, n={cell.n}, {cell.text}, seed={cell.seed}, {cell.id})"


@functools.cache
def _cells(study: str, preset: str) -> Sequence[AnyCell]:
    space = STUDIES[study]
    axes = resolve(space, preset, _NEEDED.get(study, ()))
    with TemporaryDirectory() as cache:
        facts_of = functools.partial(published, places=Places(cache_dir=cache))
        return make_plan(space, preset, axes, facts_of).cells


PART = Part("ids", {"": made}, said=_said)
