"""The kinds of cell, see `study.kind`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from search_spaces import all_studies
from search_spaces.base import By, Values
from study import tasks
from study.cell.declared import NONE, Axis
from study.cell.work import RECORDED
from study.errors import RequestError
from study.heads.kind import HEADS
from study.kind import Kind
from study.posterior.kind import POSTERIOR
from study.train.kind import TRAINING

KINDS: Mapping[str, Kind[Any]] = {
    "training": TRAINING,
    "posterior": POSTERIOR,
    "heads": HEADS,
}
"""Name, as in `search_spaces.base.SearchSpace.kind` -> kind."""


def axes_as_markdown() -> str:
    """The axes of all studies for docs/axes.md, each as it is declared."""
    studies, every = all_studies().values(), tuple(tasks.TASKS)
    lines: list[str] = []
    told: list[Axis] = []
    for name, kind in KINDS.items():
        of = ", ".join(f"`{space.name}`" for space in studies if space.kind == name)
        lines += [f"## Of {of}", "", "| axis | values | default | meaning |", "|---|---|---|---|"]
        own = {axis: each for axis, each in kind.axes(every).items() if each not in told}
        told += own.values()
        for axis, declared in own.items():
            about = declared.about if not declared.of else f"of {declared.of}: {declared.about}"
            values = ", ".join([declared.takes.bounds, *declared.words])
            lines.append(f"| `{axis}` | {values} | {_default(declared)} | {about} |")
        if len(own) < len(kind.axes(every)):
            lines += ["", "All others are as above."]
        lines.append("")
    return "\n".join(lines)


def _default(axis: Axis) -> str:
    """A default for people: ``256``; ``mscoco: 512``; empty, if every preset says it."""

    def said(values: Values | By) -> str:
        if not isinstance(values, By):
            return ", ".join(axis.nothing if v is None else str(v) for v in values)
        each = [f"{where or NONE}: {said(some)}" for where, some in values.values.items() if some]
        rest = said(values.otherwise) if values.axis != "task" else ""
        return "; ".join([*each, *([f"else {rest}"] if rest else [])])

    return said(axis.default)


def kind_of(row: Mapping[Any, Any]) -> Kind[Any]:
    """The kind of a recorded cell, by its row of `study.results.CELLS_SCHEMA`.

    Raises:
        RequestError: another training loop trained the cell, so it is of none.
    """
    if row["kind"] == RECORDED:
        raise RequestError(
            f"run {row['cell_id']} was trained elsewhere and recorded by analysis.record: only "
            "the training loop that trained it can do that again."
        )
    return KINDS[row["kind"]]
