"""How a focus and a classifier differ from their named architecture, as a part of a cell."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from study.cell.checks import is_int, is_positive, require

NORMALISATIONS = ("batch", "layer", "group")
"""Before each activation: over the batch (Ioffe and Szegedy 2015), over all features of a segment
(Ba et al. 2016), or over groups of its channels (Wu and He 2018)."""

ACTIVATIONS = ("tanh", "gelu")
"""In place of ReLU."""

LARGEST_WIDTH = 1_000
"""Far above any study, but low enough to catch a mistyped zero before it takes all memory."""

MOST_LAYERS = 100


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """What differs from the architecture; None: nothing.

    Args:
        focus_width: factor on the hidden widths of the focus, > 0, in place of the cell's `width`.
        classifier_width: the same of the classifier.
        depth: hidden linear layers more than the architecture has, in focus and classifier, each
            as wide as the last; below 0, as many of the last ones fewer.
        normalisation: one of `NORMALISATIONS`.
        activation: one of `ACTIVATIONS`.

    Raises:
        ValueError: a value is out of range, or nothing differs.
    """

    focus_width: float | None = None
    classifier_width: float | None = None
    depth: int | None = None
    normalisation: str | None = None
    activation: str | None = None

    def __post_init__(self) -> None:
        for name in ("focus_width", "classifier_width"):
            width = getattr(self, name)
            rule = f"a number > 0 and at most {LARGEST_WIDTH:,}"
            if width is not None:
                require(is_positive(width) and width <= LARGEST_WIDTH, name, width, rule)
                object.__setattr__(self, name, float(width))
        depth = self.depth
        require(
            depth is None or (is_int(depth) and depth != 0 and abs(depth) <= MOST_LAYERS),
            "depth",
            depth,
            f"an integer from -{MOST_LAYERS} to {MOST_LAYERS}",
        )
        for name, known in (("normalisation", NORMALISATIONS), ("activation", ACTIVATIONS)):
            value = getattr(self, name)
            require(value is None or value in known, name, value, f"one of {', '.join(known)}")
        given = [each for each in dataclasses.astuple(self) if each is not None]
        require(bool(given), "settings of a network", given, "at least one; else a cell has none")
