"""Does the prediction follow the attention? It is tried, by changing what was attended to.

Attention may be plausible, where it lies as people expect, without being faithful, where it is
what the prediction rests on, and the reverse. After comprehensiveness and sufficiency of ERASER
(DeYoung et al., ACL 2020, section 4), in decisions instead of probabilities. *Attended* are the
fewest segments that hold half of the attention.

Of mosaics and series, whose instances share segments:

- `follows`: with the foreground of another class put where it attended, that class is predicted;
- `falls`: with background put there, the prediction is another;
- `stays`: with background put everywhere else, it is the same.

Of texts, words are masked: `falls` without the attended ones, `stays` with these alone, and
`follows` where both hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from study.cell.seeds import stream_seed
from study.evaluate.segments import Part, Segments
from study.paradigms.paradigm import Paradigm
from study.tasks.task import Distinct, Split

Changes = dict[str, Tensor]
"""``without`` and ``alone``, and ``swapped`` where segments are shared: (B, m) segments or masks,
see `study.evaluate.segments.Segments.part`."""


class Follows:
    """Tries whether predictions follow the attention.

    Args:
        segments: of the split.
        inference: the paradigm that predicts.
    """

    NAMES = ("follows", "falls", "stays")

    def __init__(self, segments: Segments, inference: Paradigm) -> None:
        self._segments, self._inference = segments, inference
        split = segments.split
        self._others = None if split.distinct is None else _others(split, split.distinct)

    def __call__(self, part: Part, attention: Tensor, probabilities: Tensor) -> Tensor | None:
        """What is true of each input of a part.

        Args:
            part: of the segments.
            attention: (B, m).
            probabilities: (B, C) of the classes.

        Returns:
            (3, B) bool, by `NAMES`; None where nothing can be changed: there is one class, no
            background, or no mask.
        """
        attended, before = attended_to(attention), probabilities.argmax(dim=1)
        if self._others is not None:
            changes = self._others.changes(part.rows, attended)
        elif part.mask is not None:
            changes = _masked(part.mask, attended)
        else:
            return None
        after = {
            name: self._segments.part(part.rows, changed).predicted(self._inference)[1].argmax(1)
            for name, changed in changes.items()
        }
        falls, stays = after["without"] != before, after["alone"] == before
        followed = falls & stays
        if self._others is not None:
            followed = after["swapped"] == self._others.labels[part.rows]
        return torch.stack([followed, falls, stays])


def attended_to(attention: Tensor) -> Tensor:
    """(B, m) bool: the fewest segments that hold half of the attention (B, m)."""
    falling, order = attention.sort(dim=1, descending=True, stable=True)
    before = falling.double().cumsum(dim=1) - falling  # in single precision 50 equal ones are 51
    return torch.zeros_like(attention, dtype=torch.bool).scatter(1, order, before < 0.5)


def _masked(mask: Tensor, attended: Tensor) -> Changes:
    """Masks (B, m); of an input that is attended to as a whole nothing is left to be masked."""
    rest = mask & ~attended
    return {"without": torch.where(rest.any(dim=1, keepdim=True), rest, mask), "alone": attended}


class _Others(NamedTuple):
    """What is put in the place of segments, drawn once for all models of a comparison.

    Attributes:
        places: (n, m) the segments of each input, as in `study.tasks.task.Distinct`.
        foreground: (n,) a foreground of another class, for each input.
        labels: (n,) that class.
        background: (n, m) background for each of its places.
    """

    places: Tensor
    foreground: Tensor
    labels: Tensor
    background: Tensor

    def changes(self, rows: Tensor, attended: Tensor) -> Changes:
        """The segments (B, m) of these inputs with others in the places attended to, or not."""
        own, background = self.places[rows], self.background[rows]
        return {
            "without": torch.where(attended, background, own),
            "alone": torch.where(attended, own, background),
            "swapped": torch.where(attended, self.foreground[rows, None], own),
        }


def _others(split: Split, distinct: Distinct) -> _Others | None:
    """Segments of the split for each of its inputs; None: it has one class, or no background."""
    places, labels, foreground = (
        each.cpu().numpy() for each in (distinct.places, split.labels, split.foreground)
    )
    background, classes = places[~foreground], np.unique(labels)
    if len(classes) < 2 or not len(background) or not foreground.any(axis=1).all():
        return None
    rng = np.random.default_rng(stream_seed("follows", *places.shape))
    donors = np.empty_like(labels)
    for label in classes:
        mine = labels == label
        donors[mine] = rng.choice(np.flatnonzero(~mine), size=mine.sum())
    put_in = (
        places[donors, foreground[donors].argmax(axis=1)],
        labels[donors],
        rng.choice(background, size=places.shape),
    )
    device = split.labels.device
    return _Others(distinct.places, *(torch.from_numpy(each).to(device) for each in put_in))
