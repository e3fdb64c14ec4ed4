"""The measures that every classifying task has beside SAIF and accuracy; packages bring more."""

from __future__ import annotations

from study.door import Registry
from study.tasks.task import Measure

MEASURES: Registry[Measure] = Registry(
    {
        "follows": Measure("follows", "follows", lost=0.0),
        "falls": Measure("falls", "falls", lost=0.0),
        "stays": Measure("stays", "stays", lost=0.0),
    }
)
"""Name -> measure. Those of the core are made by `study.evaluate.follows`, at the last evaluation
on the test split; in results all are in the column `measures`."""
