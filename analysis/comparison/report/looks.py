"""Where it looks: the same test inputs, with the attention of every paradigm on their segments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis.comparison.compare import Comparison
from analysis.figures.captions import caption_figure
from analysis.figures.style import by_paradigm
from analysis.groups import rows_of
from analysis.section.blocks import Block, Heading, Html, Text
from analysis.section.picture import Picture
from analysis.words import is_text, listed
from study import tasks
from study.evaluate.caption_examples import Example
from study.evaluate.looks import Example as Looked
from study.evaluate.looks import looks_html, looks_page

CAPTIONS_STEM = "captions-"

HOW_TO_READ = (
    "Captions of images that no model trained on, written by the chosen option of each paradigm, "
    "of its lowest seed. Each word stands below the image as the model saw it when it wrote the "
    "word: lit where the attention is, as large as its largest, and dark where there is none. "
    "Every image has the box of one category. Framed is the word at which the category's words "
    "have most probability: its score s_y, and the attention in the box a_z there, are what SAIF "
    "counts."
)

_WORDS = "The shade of a word grows with the attention on it, and the rationale is underlined."
_SEGMENTS = (
    "The orange frame of a segment grows with the attention on it, which stands below in %, and "
    "true segments are underlined in green."
)


def looks(comparison: Comparison) -> list[Block]:
    """Mosaics, posts or series on one seed; empty where no cell recorded any."""
    seed, examples = _of_one_seed(comparison)
    if not examples:
        return []
    absent = [name for name in comparison.choice["paradigm"] if name not in examples]
    text = (
        f"Test {comparison.noun} drawn at random, the same for every paradigm, with the chosen "
        f"option of each on seed {seed}. {_WORDS if is_text(comparison.task) else _SEGMENTS} Last "
        "comes the predicted class with its score."
        + (f" This seed has none of {listed(absent)}." if absent else "")
    )
    warned = [Text(warning, "warning")] if (warning := _warning(comparison)) else []
    return [Heading("Where it looks"), *warned, Text(text), Html(looks_html(examples))]


def looks_pages(comparison: Comparison) -> dict[str, bytes]:
    """Paradigm -> a page with what `looks` shows of it."""
    seed, examples = _of_one_seed(comparison)
    return {
        name: looks_page(mine, f"{name}, seed {seed}", _warning(comparison)).encode()
        for name, mine in examples.items()
    }


def caption_pictures(comparison: Comparison) -> Iterator[Picture]:
    """A picture an object: the captions of all paradigms that recorded the same one."""
    if comparison.modality is not tasks.CAPTIONS:
        return
    rows = by_paradigm(_recorded(comparison))
    examples = {name: json.loads(mine["examples"].iloc[0]) for name, mine in rows.items()}
    found = {name: {_object(each): each for each in of} for name, of in examples.items()}
    objects = dict.fromkeys(key for of in found.values() for key in of)
    for number, key in enumerate(objects, start=1):
        shown = {name: of[key] for name, of in found.items() if key in of}
        image, category = key
        yield Picture(
            name=f"{CAPTIONS_STEM}{number}",
            title=f"{category} ({image})",
            caption=f"Captions of {image} by {listed(list(shown))}; box: {category}.",
            figure=caption_figure(shown),
        )


def _of_one_seed(comparison: Comparison) -> tuple[int, dict[str, list[Looked]]]:
    """The first of the seeds that most paradigms have, and the examples of each on it."""
    rows = _recorded(comparison)
    if rows.empty or comparison.modality is tasks.CAPTIONS:
        return 0, {}
    seed: Any = rows.groupby("seed")["paradigm"].nunique().idxmax()
    mine = by_paradigm(rows[rows["seed"] == seed])
    return seed, {name: json.loads(each["examples"].iloc[0]) for name, each in mine.items()}


def _warning(comparison: Comparison) -> str:
    """What readers of its instances are to be warned of; empty: of nothing."""
    known = tasks.TASKS.get(comparison.task)
    return known.warning if known else ""


def _recorded(comparison: Comparison) -> pd.DataFrame:
    """The rows of chosen options that hold examples, by seed."""
    rows = comparison.evaluations
    rows = rows[rows["examples"].notna()] if "examples" in rows else rows[:0]
    return rows_of(comparison.choice, rows).sort_values("seed")


def _object(example: Example) -> tuple[str, str]:
    return example["image"], example["category"]
