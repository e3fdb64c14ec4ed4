"""What an installed package alone can bring: a measure of one's own, and a task that has it.

Whoever reads results has to know the column of a measure. So this module has an entry point,
while `my_attention.parts` works by `--with`, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from my_attention.parts import SHAPES, SIDE, STUDY, draw_shapes
from study import parts
from study.cell import Cell
from study.cell.column_groups import NUMBER
from study.cell.declared import Whole, declared
from study.cell.settings import Settings
from study.tasks.mosaics.mosaic_tasks import of_images
from study.tasks.task import MOSAICS, Measure, Outputs


def spread(outputs: Outputs) -> NDArray[np.float32]:
    """The effective number of segments that share the attention: 1 / sum_j a_j^2 of each input.

    It is 1 where one segment has all the attention, and m where all have the same.
    """
    return 1 / (outputs.attention**2).sum(axis=1)


@dataclass(frozen=True)
class ConvolutionSettings(Settings):
    """An axis of the tasks whose modality names the key: `--set kernel=3,5`."""

    key: ClassVar = "convolution"

    kernel: int = declared("height and width of the convolution", Whole(1, SIDE), 3)

    def further(self, cell: Any) -> tuple[Any, ...]:
        """What `my_attention.parts.tiny_convolutions` takes besides."""
        return (self.kernel,)


def why_not(cell: Cell) -> str | None:
    """Why a cell of the task cannot run; None: it can."""
    if cell.split == "disjoint":
        return None
    return "of so few pictures of rings, a network could know those of a shared split by heart"


MEASURED = replace(
    MOSAICS,
    measures=(
        Measure(
            "attended_segments",
            "attended segments",
            is_share=False,
            bounded=False,
            of="my_attention.spread:spread",
        ),
    ),
    measures_text="Attended segments: 1 / sum a_j^2, the effective number of segments that share "
    "the attention, from 1 to m, with t intervals.",
    settings=ConvolutionSettings.key,
)
RINGS = of_images("rings", ("disc", "ring"), draw_shapes, SHAPES, modality=MEASURED)
QUICK = STUDY.presets["quick"]
OWN_AXES = {"architecture": ("kernel-convolutions",), "kernel": (3, 5)}

parts.register_columns(
    "Of rings",
    "measured",
    {"attended_segments": (NUMBER, "effective number of segments that share the attention")},
)
parts.register_settings(ConvolutionSettings)
parts.register_task("rings", replace(RINGS, why_not="my_attention.spread:why_not"))
parts.register_model("kernel-convolutions", ("rings",), "my_attention.parts:tiny_convolutions")
parts.register_study(
    replace(
        STUDY,
        name="rings",
        task="rings",
        about="among how many segments is attention shared where classes are alike?",
        presets={"quick": replace(QUICK, axes={**QUICK.axes, **OWN_AXES})},
    )
)
parts.register_function("my_attention.spread_command:attended_segments")
parts.register_command(
    "spread", "my_attention.spread_command", "tells among how many segments attention is shared"
)
parts.register_synonyms({"kernel": "kernel_size filter_size", "rings": "annuli"})
