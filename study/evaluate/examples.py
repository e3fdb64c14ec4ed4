"""Examples of inputs for pictures: the same ones for every model, and where it looks in them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from study.cell.seeds import stream_seed
from study.cell.work import MOST_EXAMPLES
from study.door import imported
from study.tasks.mosaics.mosaics import Mosaics
from study.tasks.mosaics.strip import strip
from study.tasks.task import Split

MOST_BYTES = 100_000
"""Of the examples of a cell, which are fewer than `MOST_EXAMPLES` where those take more."""

_BYTES_A_SEGMENT, _BYTES_BESIDES = 16, 500  # of an example, besides what shows its input

Outputs = Iterable[tuple[Tensor, Tensor, Tensor]]
"""Of parts of a split: rows (B,), attention (B, m), class probabilities (B, C)."""


def examples(split: Split, outputs: Outputs) -> str | None:
    """Where a model looks in some inputs of a split, as the JSON of a list.

    Which inputs these are depends on the size of the split alone, never on what a model makes of
    them: all models of a comparison show the same.

    Args:
        split: of inputs.
        outputs: of all of it.

    Returns:
        A list of `study.tracking.looks.Example`; None if nothing shows such inputs.
    """
    inputs, found = _drawn(split), {}
    labels, foreground = split.labels.cpu().numpy(), split.foreground.cpu().numpy()
    for part in outputs:
        rows, attention, probabilities = (each.cpu().numpy() for each in part)
        for place in np.flatnonzero(np.isin(rows, [*inputs])):
            row = int(rows[place])
            shown = inputs[row]
            real = len(shown.get("words", foreground[row]))  # what follows is padding
            found[row] = {
                **shown,
                "attention": attention[place, :real].astype(float).round(4).tolist(),
                "foreground": np.flatnonzero(foreground[row]).tolist(),
                **_classes(split, labels[row], probabilities[place]),
            }
    return json.dumps([found[row] for row in inputs]) if inputs else None


def first(text: str, count: int) -> str | None:
    """The first of the examples, of inputs or of captions; None if there are none."""
    kept = json.loads(text)[:count]
    return json.dumps(kept) if kept else None


def _drawn(split: Split) -> dict[int, dict[str, Any]]:
    """Row -> what shows it, of as many inputs as there is room for."""
    n, m = split.foreground.shape
    rng = np.random.default_rng(stream_seed("examples", n, m))
    room, inputs = MOST_BYTES, {}
    for row in rng.permutation(n)[:MOST_EXAMPLES].tolist():
        room -= _BYTES_A_SEGMENT * m + _BYTES_BESIDES
        shown = _shown(split, row) if room >= 0 else {}  # of many segments it takes long
        room -= len(json.dumps(shown))
        if not shown or room < 0:
            break
        inputs[row] = shown
    return inputs


def _shown(split: Split, row: int) -> dict[str, Any]:
    """What shows an input, see `study.tracking.looks.Example`; empty: nothing does."""
    if own := split.modality.shown:
        shown: dict[str, Any] = imported(own)(split, row)
        return shown
    if not isinstance(split, Mosaics):
        return {}
    segments = split.images[split.index[row].long()].cpu().numpy()
    _, height, _, channels = segments.shape
    if height > 1 and channels in (1, 3) and split.max_value:
        with contextlib.suppress(ImportError):  # without Pillow a worker trains all the same
            return {"tiles": strip(segments / split.max_value)}
    return {}


def _classes(split: Split, label: int, probabilities: NDArray[np.floating]) -> dict[str, Any]:
    """The true class and the predicted one."""
    names = getattr(split, "classes", ())
    predicted = int(probabilities.argmax())
    return {
        "label": names[label] if names else str(label),
        "predicted": names[predicted] if names else str(predicted),
        "score": round(float(probabilities[predicted]), 4),
    }
