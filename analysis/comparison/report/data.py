"""What the report says of the data: how far the foreground is known, and what cells record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from analysis.digest.compare import Comparison
from analysis.words import listed, number
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
    modality = comparison.modality
    if not modality.partly:
        none = [split for split, share in found.items() if share == 0]
        what = modality.counted
        return [f"The {split} split has no {what}: no SAIF on it." for split in none]
    some = {split: share for split, share in found.items() if 0 < share < 1}
    sentences = []
    if some:
        parts = [
            f"{number(100 * share)} % of the {_inputs(each, modality.noun)}"
            for each, share in some.items()
        ]
        sentences.append(
            f"{listed(parts)} have {modality.partly}; SAIF, heat maps and attention on the "
            f"foreground are of these, loss and accuracy of all {modality.noun}."
        )
    return sentences + [
        f"No {_inputs(split, modality.noun).removesuffix('s')} has {modality.partly}: no SAIF on "
        f"the {split} split."
        for split, share in found.items()
        if share == 0
    ]


def data_notes(found: Sequence[Comparison]) -> list[str]:
    """What the cells record about their data, a sentence each."""

    def recorded(comparison: Comparison) -> list[str]:
        texts = comparison.cells["data_notes"].dropna().unique()
        return [line for text in texts for line in text.splitlines()]

    return said_once(found, recorded)


def said_once(
    found: Sequence[Comparison], say: Callable[[Comparison], Iterable[str]]
) -> list[str]:
    """What is said of each comparison, each sentence once, with the settings it is not all of."""
    of: dict[str, list[str]] = {}
    for comparison in found:
        for text in dict.fromkeys(say(comparison)):
            of.setdefault(text, []).append(comparison.name)
    return [
        text if len(names) == len(found) else f"{listed(names)}: {text}"
        for text, names in of.items()
    ]


def _inputs(split: str, noun: str) -> str:
    return f"{_ADJECTIVES.get(split, split)} {noun}"
