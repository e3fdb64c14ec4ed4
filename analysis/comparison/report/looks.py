"""Where it looks: the same test inputs, and the attention of every paradigm on their segments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from analysis.comparison.compare import Comparison
from analysis.figures.style import by_paradigm
from analysis.groups import rows_of
from analysis.section.blocks import Block, Heading, Html, Text
from analysis.words import is_text, listed
from study import tasks
from study.evaluate.looks import Example, looks_html

_WORDS = "The shade of a word grows with the attention on it, and the rationale is underlined."
_SEGMENTS = (
    "The orange frame of a segment grows with the attention on it, which stands below in %, and "
    "true segments are underlined in green."
)


def looks(comparison: Comparison) -> list[Block]:
    """Its part of the page; empty where no cell recorded examples, or these are captions."""
    seed, examples = _of_one_seed(comparison)
    if not examples or comparison.modality is tasks.CAPTIONS:
        return []
    absent = [name for name in comparison.choice["paradigm"] if name not in examples]
    text = (
        f"Test {comparison.noun} drawn at random, the same for every paradigm, with the chosen "
        f"option of each on seed {seed}. {_WORDS if is_text(comparison.task) else _SEGMENTS} Last "
        "comes the predicted class with its score."
        + (f" This seed has none of {listed(absent)}." if absent else "")
    )
    known = tasks.TASKS.get(comparison.task)
    warning = known.warning if known else ""
    return [
        Heading("Where it looks"),
        *([Text(warning, "warning")] if warning else []),
        Text(text),
        Html(looks_html(examples)),
    ]


def _of_one_seed(comparison: Comparison) -> tuple[int, Mapping[str, list[Example]]]:
    """The lowest of the seeds that most paradigms recorded, and paradigm -> its examples there."""
    rows = comparison.evaluations
    if "examples" not in rows or rows["examples"].isna().all():
        return 0, {}
    rows = rows_of(comparison.choice, rows[rows["examples"].notna()])
    seed: Any = rows.groupby("seed")["paradigm"].nunique().idxmax()
    mine = by_paradigm(rows[rows["seed"] == seed])
    return seed, {name: json.loads(of["examples"].iloc[0]) for name, of in mine.items()}
