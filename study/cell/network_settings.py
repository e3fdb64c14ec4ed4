"""What only some networks have, as parts of a cell."""

from __future__ import annotations

from dataclasses import dataclass

from study.cell.checks import require
from study.cell.declared import NONE, SAME, Declared, Name, Number, Whole, declared

NORMALISATIONS = ("batch", "layer", "group")
"""Before each activation: over the batch (Ioffe and Szegedy 2015), over all features of a segment
(Ba et al. 2016), or over groups of its channels (Wu and He 2018)."""

ACTIVATIONS = ("relu", "tanh", "gelu")

MOST_PATHS = 4_096
"""Of heads through all layers: their number multiplies what a step and the theory cost."""

PADDING, START, END, UNKNOWN = range(4)
"""Numbers of what is no word of a vocabulary: what fills a batch up, what stands before the first
word and behind the last one, and every word that is not in the vocabulary."""

FIRST_WORD = 4

_FACTOR = Number(0, 1_000, "(]")
_SIZE = Whole(1, 65_536)
_COUNT = Whole(1, 1_000_000)


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


@dataclass(frozen=True)
class DecoderSettings(Declared):
    """A decoder of captions, which attends anew for every word (appendix A.4)."""

    embedding: int = declared("size of a word's vector", _SIZE, 512)
    attention: int = declared("size in which regions and state are compared", _SIZE, 512)
    hidden: int = declared("size of the LSTM", _SIZE, 512)
    dropout: float = declared(
        "share of the LSTM's state hidden from the output while training",
        Number(0, 1, "[)"),
        0.5,
    )
    longest: int = declared("most words of a written caption", Whole(1, 1_000), 15)
    beam: int = declared("captions followed while one is written; 1: greedy", Whole(1, 100), 1)


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(Declared):
    """A network of attention paths: L layers of H heads (arXiv 2405.15926, appendix)."""

    d_model: int = declared("N, neurons of each layer", _COUNT)
    layers: int = declared("L, layers", _COUNT)
    heads: int = declared("H, heads of each layer", _COUNT)
    qk: int = declared("G, size of queries and keys", _COUNT)
    patch: int = declared("height and width of the patches that are tokens", _COUNT)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.layers <= MOST_PATHS and self.heads**self.layers <= MOST_PATHS,
            "heads and layers",
            f"{self.heads} and {self.layers}",
            f"such that heads ** layers, the number of paths, is at most {MOST_PATHS:,}",
        )
