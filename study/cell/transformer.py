"""The sizes of a network of attention paths, as a part of a cell."""

from __future__ import annotations

from dataclasses import dataclass

from study.cell.checks import is_int, require

LARGEST_SIZE = 1_000_000
MOST_PATHS = 4_096
"""Of heads through all layers: their number multiplies what a step and the theory cost."""


@dataclass(frozen=True, kw_only=True)
class TransformerSettings:
    """The sizes of a network of L layers with H heads each (arXiv 2405.15926, appendix).

    Args:
        d_model: N, neurons of each layer, >= 1.
        layers: L, >= 1.
        heads: H, of each layer, >= 1.
        qk: G, the size of queries and keys, >= 1.
        patch: height and width of the patches that are tokens, >= 1.

    Raises:
        ValueError: a value is out of range.
    """

    d_model: int
    layers: int
    heads: int
    qk: int
    patch: int

    def __post_init__(self) -> None:
        for name in ("d_model", "layers", "heads", "qk", "patch"):
            value = getattr(self, name)
            rule = f"an integer >= 1 and at most {LARGEST_SIZE:,}"
            require(is_int(value) and 1 <= value <= LARGEST_SIZE, name, value, rule)
        require(
            self.layers <= MOST_PATHS and self.heads**self.layers <= MOST_PATHS,
            "heads and layers",
            f"{self.heads} and {self.layers}",
            f"such that heads ** layers, the number of paths, is at most {MOST_PATHS:,}",
        )
