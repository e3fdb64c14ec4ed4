"""What the report says of a human-marked foreground: how far it is known, and met.

It says nothing of mosaics, whose foreground is always known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from analysis.comparison.choice import PLAUSIBILITY
from analysis.comparison.compare import Comparison
from analysis.section.columns import by_columns, measured, plain
from analysis.words import level, listed, number
from study.results import SPLITS

PLAUSIBLE = (
    "Plausibility: how far the attention agrees with the tokens that people marked, by the "
    "measures of the HateXplain data set, those of ERASER, with t intervals. Predicted are the 5 "
    "tokens with most attention: token F1 compares them with the marked tokens, IOU F1 with the "
    "marked spans, where a token matches a span of at most two. AUPRC is the area under the "
    "precision-recall curve of the attention itself."
)

_MEASURES = {"token_f1": "token F1 %", "iou_f1": "IOU F1 %", "auprc": "AUPRC %"}
_ADJECTIVES = {"train": "training"}


def shares(comparison: Comparison) -> dict[str, float]:
    """Split -> share of its evaluated instances whose foreground is known.

    Splits for which no cell recorded it, as in results of an older version, are absent.
    """
    found = comparison.at_budget.groupby("split")["foreground_share"].max().dropna()
    return {name: float(found[name]) for name in SPLITS if name in found}


def share_sentences(comparison: Comparison) -> list[str]:
    """Which instances SAIF covers, where not all; none for mosaics."""
    found = shares(comparison)
    some = {split: share for split, share in found.items() if 0 < share < 1}
    sentences = []
    if some:
        parts = [f"{number(100 * share)} % of the {_posts(each)}" for each, share in some.items()]
        sentences.append(
            f"{listed(parts)} have a rationale; SAIF, heat maps and attention on the foreground "
            "are of these, loss and accuracy of all posts."
        )
    return sentences + [
        f"No {_posts(split).removesuffix('s')} has a rationale: no SAIF on the {split} split."
        for split, share in found.items()
        if share == 0
    ]


def share_notes(found: Sequence[Comparison]) -> list[str]:
    """The sentences of all comparisons, each once; where they differ, with the settings."""
    return _once((comparison.name, " ".join(share_sentences(comparison))) for comparison in found)


def data_notes(found: Sequence[Comparison]) -> list[str]:
    """What the cells record about their data, a paragraph a sentence, each text once."""
    return [
        line
        for text in _once(
            (comparison.name, text)
            for comparison in found
            for text in comparison.cells["data_notes"].dropna().unique()
        )
        for line in text.splitlines()
    ]


def plausibility_cells(summary: pd.DataFrame) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows, one a paradigm, of how far the rationales are met; None: not measured.

    Args:
        summary: as `analysis.summarise` gives it, of one comparison.
    """
    names = [name for name in PLAUSIBILITY if name in summary]
    if not names:
        return None
    bounds = f"{level(summary['confidence'].iloc[0])} interval"
    columns = [plain("paradigm")]
    for name in names:
        columns += measured(_MEASURES[name], name, bounds)
    return by_columns(columns, summary)


def _posts(split: str) -> str:
    return f"{_ADJECTIVES.get(split, split)} posts"


def _once(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Each text once, empty ones left out; of several, each with the names that it is of."""
    of: dict[str, list[str]] = {}
    for name, text in texts:
        if text and name not in of.setdefault(text, []):
            of[text].append(name)
    if len(of) < 2:
        return list(of)
    return [f"{listed(names)}: {text}" for text, names in of.items()]
