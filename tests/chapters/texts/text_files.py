"""Small texts of fruit and colours, in the form of texts of your own.

A text's label follows from one colour in it, which its rationale marks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]

COLOURS = {"warm": ("red", "orange"), "cold": ("blue", "green")}
_FRUIT = [f"fruit{i}" for i in range(20)]


def rows(count: int, labels: Sequence[Any] = ("warm", "cold"), seed: int = 0) -> list[Row]:
    """So many texts, whose labels take turns; `labels` are what the two are called."""
    rng = np.random.default_rng(seed)
    found: list[Row] = []
    for number in range(count):
        colours = COLOURS[("warm", "cold")[number % 2]]
        words = [str(word) for word in rng.choice(_FRUIT, size=int(rng.integers(2, 11)))]
        place = int(rng.integers(len(words)))
        words[place] = colours[int(rng.integers(2))]
        rationale = [int(i == place) for i in range(len(words))]
        found.append({"tokens": words, "label": labels[number % 2], "rationale": rationale})
    return found


def write_jsonl(path: Path, texts: Iterable[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in texts))
    return path


def write_texts(folder: Path) -> Path:
    """A file of each split."""
    for seed, (split, count) in enumerate(SIZES.items()):
        write_jsonl(folder / f"{split}.jsonl", rows(count, seed=seed))
    return folder


SIZES: Mapping[str, int] = {"train": 60, "validation": 30, "test": 40}
