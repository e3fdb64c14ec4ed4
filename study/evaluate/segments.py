"""The instances of a split as a paradigm takes them, in parts that fit into a pass.

f and g run once for each distinct segment, or for each real segment where none is shared. A part
may be looked at anew with other segments in some places, or with others masked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from study.hardware import pass_size
from study.models.model import Model
from study.paradigms.held import held_attention
from study.paradigms.padding import padded, real
from study.paradigms.paradigm import Classifier, Focus, Paradigm, focus_scores
from study.tasks.task import Distinct, Split


@dataclass(frozen=True)
class Part:
    """Some inputs of a split, as a paradigm takes them.

    A segment whose classifier sees it alone is its index in the tables of what f and g make of it.

    Attributes:
        rows: (B,) int64, which inputs.
        focus: looks scores up; not called if attention is given.
        classifier: looks logits up, or is the model's.
        segments: (B, m) int64 indices in the tables, or (B, m, ...) segments.
        scores: (B, m) of the focus, -inf where `mask` is False; None: segments are indices, and
            the focus looks them up.
        mask: (B, m) bool, True = real segment; None: all are real.
        labels: (B,) int64.
        foreground: (B, m) bool.
    """

    rows: Tensor
    focus: Focus
    classifier: Classifier
    segments: Tensor
    scores: Tensor | None
    mask: Tensor | None
    labels: Tensor
    foreground: Tensor

    @property
    def there(self) -> Tensor:
        """(B, m) bool: the real segments."""
        return torch.ones_like(self.foreground) if self.mask is None else self.mask

    def attention(self, paradigm: Paradigm, alpha: float | None = None) -> Tensor | None:
        """The attention (B, m) to give to a paradigm; None: it attends by itself."""
        if alpha is not None:
            return held_attention(alpha, self.foreground)
        return None if self.scores is None else paradigm.attend(self.scores)

    def predicted(self, inference: Paradigm, alpha: float | None = None) -> tuple[Tensor, Tensor]:
        """Attention (B, m) and class probabilities (B, C)."""
        heads = self.focus, self.classifier
        return inference.predict(
            *heads, self.segments, self.mask, self.attention(inference, alpha)
        )


class Segments(ABC):
    """The inputs of a split, for a model.

    Args:
        model: on the device of the split.
        split: of inputs.
        mixes: whether the classifier sees sums of segments, which no table can hold.
        focus_needed: whether the focus is called.
    """

    def __init__(self, model: Model, split: Split, mixes: bool, focus_needed: bool) -> None:
        self.model, self.split, self.mixes = model, split, mixes
        self.focus_needed = focus_needed

    @abstractmethod
    def passes(self) -> Sequence[Tensor]:
        """All rows in parts that fit into a pass."""

    @abstractmethod
    def part(self, rows: Tensor, changed: Tensor | None = None) -> Part:
        """The inputs of these rows.

        Args:
            rows: (B,) int64.
            changed: (B, m) their segments, as in `Distinct.places`, or if none is shared their
                mask, in place of their own.
        """


def segments_of(model: Model, split: Split, mixes: bool, focus_needed: bool) -> Segments:
    """As `Segments`, by whether inputs share segments."""
    of = _Own if split.distinct is None else _Shared
    return of(model, split, mixes, focus_needed)


class _Own(Segments):
    """f, and g unless it mixes, run once for each real segment."""

    def passes(self) -> Sequence[Tensor]:
        split = self.split
        return split.passes(pass_size(split.bytes_each, split.labels.device))

    def part(self, rows: Tensor, changed: Tensor | None = None) -> Part:
        inputs, labels, foreground, mask = self.split.batch(rows)
        mask = mask if changed is None else changed
        segments = self.model.encode(inputs, mask)
        there = torch.ones_like(foreground) if mask is None else mask
        every = real(segments, there)
        places = padded(torch.arange(len(every), device=every.device), there)
        focus: Focus = self.model.focus(every).__getitem__
        classifier: Classifier = self.model.classifier
        scores = None
        if self.mixes:
            scores = focus_scores(focus, places, mask)
        else:
            segments, classifier = places, classifier(every).__getitem__
        return Part(rows, focus, classifier, segments, scores, mask, labels, foreground)


class _Shared(Segments):
    """f, and g unless it mixes, run once for each distinct segment of the split."""

    def __init__(self, model: Model, split: Split, mixes: bool, focus_needed: bool) -> None:
        super().__init__(model, split, mixes, focus_needed)
        assert split.distinct is not None
        self.distinct: Distinct = split.distinct
        self._scores, self._logits = self._tables()

    def passes(self) -> Sequence[Tensor]:
        split, logits = self.split, self._logits
        m = self.distinct.places.shape[1]
        bytes_each = split.bytes_each if logits is None else 4 * m * logits.shape[1]
        return split.passes(pass_size(bytes_each, split.labels.device))

    def part(self, rows: Tensor, changed: Tensor | None = None) -> Part:
        places = self.distinct.places[rows] if changed is None else changed
        segments, scores = places, None  # a segment is its index in the tables
        classifier: Classifier = self.model.classifier
        if self._logits is not None:
            classifier = self._logits.__getitem__
        else:
            names = self.distinct.names[places]
            segments = self.distinct.segments(names.flatten()).unflatten(0, names.shape)
            scores = self._scores[places] if self.focus_needed else None
        of_each = self.split.labels[rows], self.split.foreground[rows]
        focus = self._scores.__getitem__
        return Part(rows, focus, classifier, segments, scores, None, *of_each)

    def _tables(self) -> tuple[Tensor, Tensor | None]:
        """f (U,) of every distinct segment, empty if not needed; g (U, C), None if it mixes."""
        model, names = self.model, self.distinct.names
        segment_bytes = self.split.bytes_each // self.distinct.places.shape[1]
        scores, logits = [torch.empty(0, device=names.device)], []
        for some in names.split(pass_size(segment_bytes, names.device)):
            segments = model.encode(self.distinct.segments(some)[:, None])[:, 0]
            if self.focus_needed:
                scores.append(model.focus(segments))
            if not self.mixes:
                logits.append(model.classifier(segments))
        return torch.cat(scores), torch.cat(logits) if logits else None
