"""The measures that every classifying task has beside SAIF and accuracy; packages bring more."""

from __future__ import annotations

from study.door import Registry
from study.tasks.task import Measure

MEASURES: Registry[Measure] = Registry(
    {
        "follows": Measure("follows", "follows"),
        "falls": Measure("falls", "falls"),
        "stays": Measure("stays", "stays"),
    }
)
"""Name -> measure. Those of the core are made by `study.evaluate.follows`, at the last evaluation
on the test split; in results all are in the column `measures`."""
