"""The sizes of a decoder of captions, as a part of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from study.cell.declared import Number, Whole, declared
from study.cell.settings import Settings

_SIZE = Whole(1, 65_536)


@dataclass(frozen=True)
class DecoderSettings(Settings):
    """A decoder of captions, which attends anew for every word (appendix A.4)."""

    key: ClassVar = "decoder"

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

    def further(self, cell: Any) -> tuple[Any, ...]:
        """The encoder, whether it trains, too (else its features are inputs), and the sizes."""
        trained = cell.schedule.phases[0].encoder_lr is not None
        return (cell.options["encoder"], trained, self)

    def columns(self, cell: Any) -> dict[str, Any]:
        phases = cell.schedule.phases
        return {
            "optimiser": phases[0].optimiser,
            "encoder_lr": phases[0].encoder_lr,
            "teacher_forcing": min(phase.teacher_forcing for phase in phases),
        }
