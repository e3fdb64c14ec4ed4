"""Digests of every layout that tasks accept, and the first inputs that are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from study.tasks.task import Task
from tests.golden.record import Part, Tolerance, checksum
from tests.made_up.layouts import LAYOUTS, Layout

FIRST = 5
"""Inputs of each split that are recorded."""


def made(folder: Path) -> dict[str, str]:
    """Of every layout the digest, the facts, the notes, and the first inputs of each split."""
    found = {}
    for name, layout in LAYOUTS.items():
        task = layout.load(folder / name)
        lines = [*_facts(task), *_inputs(layout, task)]
        found[name] = "".join(f"{line}\n" for line in lines).replace(f"{folder}/", "")
    return found


def _facts(task: Task) -> Iterator[str]:
    facts = task.facts
    yield f"digest #{facts.digest}"
    yield f"{task.num_classes} classes, segments of {facts.input_shape}"
    yield f"sizes {dict(facts.sizes)}, lengths {dict(sorted(facts.lengths.items()))}"
    yield from facts.notes


def _inputs(layout: Layout, task: Task) -> Iterator[str]:
    for name, split in task.splits(layout.cell(task, 20, 20, 20)).items():
        batch = split.batch(torch.arange(FIRST))
        foreground = np.argwhere(batch.foreground.numpy()).tolist()
        yield f"{name}: {len(split)} inputs"
        yield f"  labels {batch.labels.tolist()}, foreground at {foreground}"
        yield f"  segments {list(batch.segments.shape)}, {checksum(batch.segments.numpy())}"


_ELSEWHERE = Tolerance(relative=1e-5, absolute=1e-5)
"""Pixels are whole numbers, but divided by what was measured of them."""

PART = Part("data", {"": made}, elsewhere=_ELSEWHERE)
