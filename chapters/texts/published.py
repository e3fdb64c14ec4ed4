"""What the paper printed of posts: HateXplain in two models (Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.digest.published import Published, Row, Source

TABLE_1: dict[str, dict[str, tuple[float, float]]] = {
    "HateXplain-1": {
        "hard": (0.027, 0.543),
        "soft": (0.046, 0.516),
        "hybrid": (0.216, 0.546),
        "lvml": (0.226, 0.546),
    },
    "HateXplain-2": {
        "hard": (0.234, 0.498),
        "soft": (0.092, 0.4963),
        "hybrid": (0.246, 0.490),
        "lvml": (0.192, 0.447),
    },
}
"""Row -> paradigm -> (SAIF, accuracy), fractions."""

MODELS = {"embedding": 1, "self-attention": 2}
"""Architecture on HateXplain -> which of the paper's two models it is."""

_VOCABULARY = 28_041
_TEST_POSTS = 1_924
_WORDS = 50
"""Of a post; few are longer (docs/hatexplain.md)."""


def _row(task: str, m: int, architecture: str) -> Row:
    """The row of Table 1, which the architecture tells, at any m.

    The scripts average the logits of a text where the paper's formula averages probabilities, so
    the number of lvml stands for `lvml-logits`, too.
    """
    model = MODELS.get(architecture)
    if model is None:
        return Row(f"{task} ({architecture})", {})
    scores = TABLE_1[f"HateXplain-{model}"]
    return Row(f"{task} ({model}, {architecture})", scores | {"lvml-logits": scores["lvml"]})


def _differences(settings: Mapping[str, Any], cells: pd.DataFrame) -> list[str]:
    paradigms, least = {*cells["paradigm"]}, settings.get("min_count", 1)
    rule, inference = settings.get("rationale_rule"), settings.get("inference")
    tested = settings["test_size"]
    often = f" that occur {least} times or more" if least > 1 else ""
    whose = f"{inference}'s inference" if inference else "each paradigm's own inference"
    also = " (lvml-logits does that)" if "lvml-logits" in paradigms else ""
    differences = {
        f"posts cut at {settings['m']} words": settings["m"] < _WORDS,
        f"{tested:,d} test posts, not {_TEST_POSTS:,d}": tested < _TEST_POSTS,
        "labels by majority, not the first annotator's": settings.get("label_rule") != "first",
        f"rationales by {rule}, not the first annotator's": rule != "first",
        f"a vocabulary of the words{often} in the training split, not of all {_VOCABULARY:,d} in "
        "all splits": True,
        f"{whose}, not soft's for all": inference != "soft",
        f"lvml by averaged probabilities, not by averaged logits{also}": "lvml" in paradigms,
    }
    return [text for text, differs in differences.items() if differs]


POSTS = Published(
    {"hatexplain": Source("HateXplain", 15_383, 550, "up to 550 epochs", tuple(MODELS))},
    _row,
    differences=_differences,
)
