"""Where it looks: the same test inputs, with the attention of every paradigm on their segments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison
from analysis.figures.style import by_paradigm
from analysis.groups import rows_of
from analysis.section.blocks import Block, Heading, Html, Text
from analysis.section.picture import Picture
from analysis.words import listed
from study import tasks
from study.door import imported
from study.evaluate.looks import Example, looks_html, looks_page

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
        f"option of each on seed {seed}. {comparison.modality.how_shown or _SEGMENTS} Last "
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


def gallery(comparison: Comparison) -> Iterator[Picture]:
    """The pictures of inputs that its modality has instead; none of most."""
    if own := comparison.modality.gallery:
        yield from imported(own.place)(comparison)


def _of_one_seed(comparison: Comparison) -> tuple[int, dict[str, list[Example]]]:
    """The first of the seeds that most paradigms have, and the examples of each on it."""
    rows = recorded(comparison)
    if rows.empty or comparison.modality.gallery:
        return 0, {}
    seed: Any = rows.groupby("seed")["paradigm"].nunique().idxmax()
    mine = by_paradigm(rows[rows["seed"] == seed])
    return seed, {name: json.loads(each["examples"].iloc[0]) for name, each in mine.items()}


def _warning(comparison: Comparison) -> str:
    """What readers of its instances are to be warned of; empty: of nothing."""
    known = tasks.TASKS.get(comparison.task)
    return known.warning if known else ""


def recorded(comparison: Comparison) -> pd.DataFrame:
    """The rows of chosen options that hold examples, by seed."""
    rows = comparison.evaluations
    rows = rows[rows["examples"].notna()] if "examples" in rows else rows[:0]
    return rows_of(comparison.choice, rows).sort_values("seed")
