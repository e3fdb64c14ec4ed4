"""A small data set of posts in the official layout of HateXplain, of fruit and colours alone.

A post's label follows from one kind of word in it, which its rationale marks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from chapters.texts.texts import TextTask
from study import tasks
from study.cell import Budget, Cell, Options, Schedule
from study.tasks.sources.places import Places
from tests.conftest import lasting, tiny_cell

OPTIONS = Options(label_rule="majority", rationale_rule="majority", min_count=1)
SIZES = {"train": 60, "val": 30, "test": 40}
M = 12

_REASONS = {
    "hatespeech": ("red", "crimson"),
    "normal": ("green", "olive"),
    "offensive": ("blue", "navy"),
}
_OTHERS = [f"fruit{i}" for i in range(20)]


def write_posts(folder: Path, train_rationales: bool = False) -> Path:
    """Writes `dataset.json` and `post_id_divisions.json`; like the data at hand, training posts
    have no rationales unless asked for, and posts labelled normal never have."""
    rng = np.random.default_rng(0)
    data: dict[str, Any] = {}
    divisions: dict[str, list[str]] = {}
    for split, size in SIZES.items():
        divisions[split] = [f"{split}-{i}" for i in range(size)]
        marked = train_rationales or split != "train"
        for name in divisions[split]:
            data[name] = _post(rng, name, marked)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset.json").write_text(json.dumps(data))
    (folder / "post_id_divisions.json").write_text(json.dumps(divisions))
    return folder


def load(folder: Path, options: Options = OPTIONS) -> TextTask:
    task = tasks.load("hatexplain", Places(str(folder)), options)
    assert isinstance(task, TextTask)
    return task


def text_cell(
    task: TextTask,
    schedule: Schedule | None = None,
    architecture: str = "embedding",
    epochs: float = 6,
    **changes: Any,
) -> Cell:
    """A cell that trains in a fraction of a second."""
    values: dict[str, Any] = {
        "m": M,
        "n": SIZES["train"],
        "architecture": architecture,
        "validation_size": SIZES["val"],
        "test_size": SIZES["test"],
        "budget": Budget(1),
        "options": OPTIONS,
    }
    cell = tiny_cell(task, schedule, **(values | changes))
    return cell if "budget" in changes else lasting(cell, task, epochs)


def _post(rng: np.random.Generator, name: str, marked: bool) -> dict[str, Any]:
    label = str(rng.choice(list(_REASONS)))
    words = list(rng.choice(_OTHERS, size=int(rng.integers(2, 11))))
    place = int(rng.integers(len(words)))
    words[place : place + 1] = _REASONS[label]
    marks = [int(place <= i <= place + 1) for i in range(len(words))]
    return {
        "post_id": name,
        "annotators": [{"label": label, "annotator_id": i, "target": ["None"]} for i in range(3)],
        "rationales": [marks, marks] if marked and label != "normal" else [],
        "post_tokens": [str(word) for word in words],
    }
