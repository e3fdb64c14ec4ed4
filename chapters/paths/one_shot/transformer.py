"""The sizes of a network of attention paths, as a part of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from study.cell.checks import require
from study.cell.declared import Whole, declared
from study.cell.settings import Settings

MOST_PATHS = 4_096
"""Of heads through all layers: their number multiplies what a step and the theory cost."""

_COUNT = Whole(1, 1_000_000)


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(Settings):
    """A network of attention paths: L layers of H heads (arXiv 2405.15926, appendix)."""

    key: ClassVar = "transformer"

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
