"""What only some networks have, as parts of a cell."""

from __future__ import annotations

from dataclasses import dataclass

from study.cell.declared import NONE, SAME, Declared, Name, Number, Whole, declared

NORMALISATIONS = ("batch", "layer", "group")
"""Before each activation: over the batch (Ioffe and Szegedy 2015), over all features of a segment
(Ba et al. 2016), or over groups of its channels (Wu and He 2018)."""

ACTIVATIONS = ("relu", "tanh", "gelu")

_FACTOR = Number(0, 1_000, "(]")


@dataclass(frozen=True, kw_only=True)
class NetworkSettings(Declared):
    """How focus and classifier differ from their named architecture; by default in nothing.

    Attributes:
        focus_width, classifier_width: factors on hidden widths in place of the cell's `width`.
        depth: of the layers more, each is as wide as the last; of fewer, the last ones go.
    """

    focus_width: float | None = declared(
        "width of the focus alone; same: width", _FACTOR, None, words=(SAME,), as_axis=SAME
    )
    classifier_width: float | None = declared(
        "width of the classifier alone; same: width", _FACTOR, None, words=(SAME,), as_axis=SAME
    )
    depth: int = declared(
        "hidden linear layers added to the architecture; below 0: removed",
        Whole(-100, 100),
        0,
        unsaid=True,
    )
    normalisation: str | None = declared(
        "after every layer but the last",
        Name(NORMALISATIONS),
        None,
        words=(NONE,),
    )
    activation: str = declared(
        "after hidden layers", Name(ACTIVATIONS), ACTIVATIONS[0], unsaid=True
    )
