"""What the paper printed of captions (Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.digest.published import Published, Row, Source

TABLE_1: dict[str, dict[str, tuple[float, float]]] = {
    "MSCOCO": {
        "hard-running": (0.111, 0.104),
        "soft": (0.232, 0.209),
        "hybrid-running": (0.242, 0.204),
    },
}
"""Row -> paradigm -> (SAIF, Bleu-4), fractions.

Hard attention is sampled with a running baseline in the authors' script, also as the second phase
of the hybrid."""

_REGIONS = 196
_LEAST_COUNT = 5


def _differences(settings: Mapping[str, Any], cells: pd.DataFrame) -> list[str]:
    encoder, least = settings.get("encoder", "vgg19"), settings.get("min_count", _LEAST_COUNT)
    beam = settings.get("decoder", {}).get("beam", 1)
    differences = {
        f"{settings['m']} regions an image, not {_REGIONS}": settings["m"] != _REGIONS,
        f"the encoder {encoder!r}, not VGG19": encoder != "vgg19",
        "a frozen encoder, not one trained at 1e-5": cells["encoder_lr"].isna().all(),
        f"a vocabulary of words seen {least} times or more, not {_LEAST_COUNT}": least
        != _LEAST_COUNT,
        f"beam search over {beam} captions, not the best word": beam > 1,
        f"{settings['test_size']:,d} test captions of half of the validation images (the "
        "other half chose the options), not all of val2014": True,
    }
    return [text for text, differs in differences.items() if differs]


CAPTIONS = Published(
    {
        "mscoco": Source(
            name="the 82,783 training images of MSCOCO 2014",
            n=414_113,
            epochs=25,
            epochs_text="25 epochs",
            architectures=("show-attend-tell",),
            batch=None,
        ),
    },
    lambda task, m, architecture: Row(task, TABLE_1.get(task.upper(), {})),
    tuple(TABLE_1["MSCOCO"]),
    _differences,
)
