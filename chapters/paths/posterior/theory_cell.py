"""What cells share that solve or sample the theory: of fixed heads, or of a trained network's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from study.cell.any_cell import AnyCell
from study.cell.checks import require


@dataclass(frozen=True, kw_only=True)
class TheoryCell(AnyCell):
    """A cell of one method, in float64; it is evaluated once.

    Attributes:
        method: what is compared.
        width: N, of every layer of the theory's network; None: infinite, or of no theory.
    """

    precision: ClassVar = "float64"

    evaluation_points: tuple[float, ...] = (1.0,)

    if TYPE_CHECKING:  # fields of each kind

        @property
        def method(self) -> str: ...

        @property
        def width(self) -> int | None: ...

    def require_only(self, **taken: bool) -> None:
        """Checks that those fields are given which its method takes, and no others.

        Raises:
            ValueError: one is missing, or is given in vain.
        """
        for name, needed in taken.items():
            value, rule = getattr(self, name), "given" if needed else "none"
            require((value is not None) == needed, name, value, f"{rule} for {self.method}")

    @property
    def setting(self) -> str:
        return self.comparison_id

    @property
    def label(self) -> str:
        return self.method

    @property
    def at_width(self) -> str:
        """For people, after its method."""
        return "" if self.width is None else f" at N={self.width:,}"

    @property
    def columns(self) -> dict[str, Any]:
        width = math.inf if self.width is None else float(self.width)
        return {**super().columns, "method": self.method, "network_width": width}
