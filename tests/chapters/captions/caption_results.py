"""Results of cells that wrote captions, with chosen numbers, as a study writes them."""

from __future__ import annotations

import base64
import functools
import io
import json
from typing import Any

import numpy as np
from PIL import Image

from chapters.captions.evaluation.caption_examples import Example
from chapters.captions.settings import DecoderSettings
from study.cell import HYBRIDS, Cell, Phase, Schedule
from study.results import Results
from tests.made_up.comparisons import Row, make_cell, write

REGIONS = 49
OBJECTS = {"a.jpg": "ball", "b.jpg": "sun"}
"""Image -> category of the one box that is looked at."""

BOXES = {"ball": [0.6, 0.6, 0.25, 0.25], "sun": [0.7, 0.05, 0.2, 0.2]}


def make_caption_cell(
    paradigm: str = "soft", lr: float = 0.001, seed: int = 0, **settings: Any
) -> Cell:
    """A cell of the mscoco task, trained by Adam; `settings` are fields of `Cell`."""
    if paradigm in HYBRIDS:
        phases = [Phase("soft", lr, 0.5, "adam"), Phase(HYBRIDS[paradigm], lr, 1.0, "adam")]
    else:
        phases = [Phase(paradigm, lr, optimiser="adam")]
    defaults: dict[str, Any] = {
        "task": "mscoco",
        "m": REGIONS,
        "n": 650,
        "architecture": "show-attend-tell",
        "batch_size": 32,
        "encoder": "lite0",
        "min_count": 2,
        "test_size": 520,
        "settings": DecoderSettings(embedding=128, attention=128, hidden=256),
        "schedule": Schedule(tuple(phases)),
    }
    return make_cell(seed=seed, **(defaults | settings))


def write_captions(
    results: Results, cell: Cell, bleu: float = 0.1, saif: float = 0.2, **settings: Any
) -> Cell:
    """Records a cell of captions, as `write`; `bleu` is Bleu-4, of which the others follow."""
    defaults: dict[str, Any] = {
        "study": "mscoco",
        "num_classes": 300,
        "shares": dict.fromkeys(("train", "validation", "test"), 1.0),
        "examples": json.dumps([example(image, saif) for image in OBJECTS]),
        "further": _written,
    }
    return write(results, cell, bleu, saif, **(defaults | settings))


def _written(evaluation: Row) -> Row:
    """Bleu-1 to Bleu-3 are 4, 3 and 2 times Bleu-4, CIDEr 5 times."""
    bleu = evaluation["accuracy"]
    bleus = {f"bleu_{n}": (5 - n) * bleu for n in (1, 2, 3, 4)}
    return bleus | {"cider": 5 * bleu, "caption_length": 9.0}


def example(
    image: str = "a.jpg", saif: float = 0.2, words: str = "a ball on the grass"
) -> Example:
    """A caption whose second word looks at the box; `saif` is its score, twice that its a_z."""
    category = OBJECTS[image]
    x, y, width, height = BOXES[category]
    said = words.replace("ball", category).split()
    regions = [REGIONS // 2] * len(said)
    if len(said) > 1:
        regions[1] = _region(x + width / 2, y + height / 2)
    return {
        "image": image,
        "jpeg": base64.b64encode(jpeg()).decode(),
        "category": category,
        "box": [x, y, width, height],
        "word": min(1, len(said)),
        "score": saif,
        "attention_on_box": 2 * saif,
        "words": said,
        "attention": np.eye(REGIONS)[regions].tolist(),
    }


@functools.cache
def jpeg() -> bytes:
    """A picture made for the purpose."""
    file = io.BytesIO()
    Image.linear_gradient("L").resize((224, 224)).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def _region(x: float, y: float) -> int:
    """That at a place, which is given in fractions of the image."""
    side = round(REGIONS**0.5)
    return side * int(side * y) + int(side * x)
