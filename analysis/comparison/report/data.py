"""What the report says of the data: how far the foreground is known, and what cells record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analysis.comparison.compare import Comparison
from analysis.words import is_text, listed, number
from study.results import SPLITS

_ADJECTIVES = {"train": "training"}


def shares(comparison: Comparison) -> dict[str, float]:
    """Split -> share of its evaluated instances whose foreground is known.

    Splits for which no cell recorded it, as runs trained elsewhere may, are absent.
    """
    found = comparison.at_budget.groupby("split")["foreground_share"].max().dropna()
    return {name: float(found[name]) for name in SPLITS if name in found}


def share_sentences(comparison: Comparison) -> list[str]:
    """Which instances SAIF covers, where not all; none for mosaics."""
    found = shares(comparison)
    if not is_text(comparison.task):
        none = [split for split, share in found.items() if share == 0]
        what = comparison.modality.counted
        return [f"The {split} split has no {what}: no SAIF on it." for split in none]
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
