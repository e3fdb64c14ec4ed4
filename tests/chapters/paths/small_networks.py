"""A study of one-shot images so small that its networks train in a tenth of a second."""

from __future__ import annotations

import functools
from typing import Any

from chapters.paths.heads.heads_cell import HeadsCell
from chapters.paths.studies import ONE_SHOT as SPACE
from study import tasks
from study.cell import Options
from study.cell.work import Work
from study.kinds import KINDS
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.plan.plan import Plan
from study.tasks.task import Facts

SMALL = (
    "task=digits-one-shot", "n=200", "epochs=2", "batch_size=50", "seed=0", "examples=30",
    "d_model=8", "qk=4", "evaluations=1", "train_metrics_size=20", "validation_size=40",
    "test_size=40", "heads=2", "network_width=5",
)  # fmt: skip


@functools.cache
def facts_of(task: str, options: Options) -> Facts:
    return tasks.load(task, options=options).facts


def assignments(*changes: str) -> list[str]:
    """Of --set: the small study, with changes."""
    named = {text.partition("=")[0] for text in changes}
    return [*(text for text in SMALL if text.partition("=")[0] not in named), *changes]


def plan(*changes: str) -> Plan:
    """The plan of the small study, with changes."""
    axes = resolve(SPACE, "quick", assignments(*changes))
    return make_plan(SPACE, "quick", axes, facts_of)


def cells(*changes: str) -> tuple[HeadsCell, ...]:
    return plan(*changes).cells


def work(results: object, *of: Any, **given: Any) -> Work:
    """The work of jobs of such cells, of either kind."""
    kind = next(name for name, each in KINDS.items() if isinstance(of[0], each.cell))
    return Work(study="one-shot", kind=kind, results=str(results), code_version="test", **given)
