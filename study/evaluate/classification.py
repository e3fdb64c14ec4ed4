"""Evaluates a model on a split: loss, accuracy, a_z, s_y, heat map, SAIF, incentive."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.door import imported
from study.errors import RequestError
from study.evaluate.by_instance import by_instance
from study.evaluate.examples import examples
from study.evaluate.saif_and_heat_map import foreground_metrics, in_saif
from study.hardware import pass_size
from study.models.model import Model
from study.paradigms.held import held_attention, incentive
from study.paradigms.padding import padded, real
from study.paradigms.paradigm import Classifier, Focus, Paradigm, focus_scores
from study.tasks.task import Distinct, Modality, Split


@dataclass(frozen=True)
class _Part:
    """Some inputs of a split, as a paradigm takes them.

    f has run once for each distinct segment, and so has g if it sees single segments. A segment is
    then its index in the tables of their outputs.

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

    def attention(self, paradigm: Paradigm, alpha: float | None) -> Tensor | None:
        """The attention (B, m) to give to a paradigm; None: it attends by itself."""
        if alpha is not None:
            return held_attention(alpha, self.foreground)
        return None if self.scores is None else paradigm.attend(self.scores)


@torch.no_grad()
def evaluate(
    model: Model,
    paradigm: Paradigm,
    split: Split,
    alpha: float | None = None,
    with_incentive: bool = False,
    inference: Paradigm | None = None,
    last: bool = False,
) -> dict[str, Any] | None:
    """The metrics of a model on a split.

    Args:
        model: on the device of the split.
        paradigm: gives the loss; one whose loss is exact.
        split: of inputs.
        alpha: attention held on the foreground; None: the focus attends.
        with_incentive: if alpha is held, also measure what a better focus would gain.
        inference: the paradigm that predicts; None: `paradigm`.
        last: whether to mark each instance and to give examples, too.

    Returns:
        The metric columns of `study.results.EVALUATIONS_SCHEMA`: loss in nats, all others
        fractions, `heatmap` 25 fractions row by row; with the incentive, also `incentive` and
        `incentive_slope` (`study.paradigms.held.Incentive`); of the last evaluation, also those
        of `study.evaluate.by_instance` and, unless alpha is held, `examples`
        (`study.evaluate.examples`). Metrics of the foreground are None if no input has a known
        foreground. None if any output is not finite.
    """
    inference = inference or paradigm
    mixes = paradigm.mixes or inference.mixes
    further = split.modality.measured
    rows, parts, attended, outputs = [], [], [], []
    sums = torch.zeros(3, dtype=torch.float64, device=split.labels.device)
    for part in _parts(model, split, mixes, focus_needed=alpha is None):
        shared = (part.focus, part.classifier, part.segments)
        loss_with = functools.partial(paradigm.loss, *shared, part.labels, part.mask)
        if with_incentive and alpha is not None:
            found = torch.stack(incentive(loss_with, alpha, part.foreground))
        else:
            found = loss_with(part.attention(paradigm, alpha))[None]
        sums[: len(found)] += found.double() * len(part.labels)
        attention, probabilities = inference.predict(
            *shared, part.mask, part.attention(inference, alpha)
        )
        if last:
            outputs.append((part.rows, attention, probabilities))
        rows.append(part.rows)
        parts.append(_measured(attention, probabilities, part))
        if further:
            is_real = torch.ones_like(part.foreground) if part.mask is None else part.mask
            attended.append((attention, part.foreground, is_real))
    measured = torch.cat(parts, dim=1).cpu().numpy()
    loss, *dynamics = (sums / len(split)).cpu().numpy().tolist()
    if not (np.isfinite([loss, *dynamics]).all() and np.isfinite(measured).all()):
        return None
    a_z, s_y, focus_true, prediction_true, is_known = measured
    known = is_known == 1
    metrics: dict[str, Any] = {
        "loss": loss,
        "accuracy": float(prediction_true.mean()),
        "num_evaluated": len(split),
        "foreground_share": float(known.mean()),
    }
    if last:
        strong = in_saif(a_z, s_y, split.modality.saif_threshold)
        marked = np.stack([known, strong, prediction_true == 1])
        metrics |= by_instance(*marked[:, torch.cat(rows).argsort().cpu().numpy()])
        metrics["examples"] = examples(split, outputs) if alpha is None else None
    if with_incentive:
        metrics |= dict(zip(("incentive", "incentive_slope"), dynamics, strict=True))
    of_known = a_z[known], s_y[known], focus_true[known], prediction_true[known]
    metrics |= foreground_metrics(*of_known, split.modality)
    if further and known.any():
        metrics |= _further(split.modality, _joined(attended))
    return metrics


def _measured(attention: Tensor, probabilities: Tensor, part: _Part) -> Tensor:
    """(5, B) float64: a_z (0 if z is unknown), s_y, focus true, prediction true, z known."""
    focus_true = part.foreground.gather(1, attention.argmax(dim=1, keepdim=True)).squeeze(1)
    a_z = (attention * part.foreground).sum(dim=1)
    s_y = probabilities.gather(1, part.labels[:, None]).squeeze(1)
    prediction_true = probabilities.argmax(dim=1) == part.labels
    known = part.foreground.any(dim=1)
    return torch.stack([a_z, s_y, focus_true, prediction_true, known]).double()


def _further(modality: Modality, arrays: list[NDArray[Any]]) -> dict[str, float]:
    """The further measures of a modality.

    Raises:
        RequestError: they are no numbers, or others than those that it declares.
    """
    found = imported(modality.measured)(*arrays)
    declared = {measure.column for measure in modality.measures}
    numbers = isinstance(found, dict) and all(isinstance(n, float) for n in found.values())
    if not (numbers and found.keys() <= declared):
        raise RequestError(
            f"{modality.measured} must give a float for each of {', '.join(sorted(declared))}, "
            f"got {found!r}."
        )
    return found


def _joined(parts: list[tuple[Tensor, Tensor, Tensor]]) -> list[NDArray[Any]]:
    """Attention, foreground and mask of parts that differ in m, each (B, m), as one array each."""
    widest = max(mask.shape[1] for _, _, mask in parts)
    arrays = [
        np.concatenate(
            [np.pad(each.cpu().numpy(), ((0, 0), (0, widest - each.shape[1]))) for each in column]
        )
        for column in zip(*parts, strict=True)
    ]
    return [arrays[0].astype(np.float64), *arrays[1:]]


def _parts(model: Model, split: Split, mixes: bool, focus_needed: bool) -> Iterator[_Part]:
    """The split in parts that fit into a pass.

    Args:
        model: to evaluate.
        split: of inputs.
        mixes: whether the classifier sees sums of segments, which no table can hold.
        focus_needed: whether to call the focus.
    """
    if split.distinct is None:
        yield from _of_own_segments(model, split, mixes)
    else:
        yield from _of_shared_segments(model, split, split.distinct, mixes, focus_needed)


def _of_own_segments(model: Model, split: Split, mixes: bool) -> Iterator[_Part]:
    """Parts for which f, and g unless it mixes, run once for each real segment."""
    for rows in split.passes(pass_size(split.bytes_each, split.labels.device)):
        inputs, labels, foreground, mask = split.batch(rows)
        segments = model.encode(inputs, mask)
        there = torch.ones_like(foreground) if mask is None else mask
        every = real(segments, there)
        places = padded(torch.arange(len(every), device=every.device), there)
        focus: Focus = model.focus(every).__getitem__
        if mixes:
            scores = focus_scores(focus, places, mask)
            yield _Part(rows, focus, model.classifier, segments, scores, mask, labels, foreground)
        else:
            table = model.classifier(every)
            yield _Part(rows, focus, table.__getitem__, places, None, mask, labels, foreground)


def _of_shared_segments(
    model: Model,
    split: Split,
    distinct: Distinct,
    mixes: bool,
    focus_needed: bool,
) -> Iterator[_Part]:
    """Parts for which f, and g unless it mixes, run once for each distinct segment of a split."""
    places = distinct.places
    m = places.shape[1]
    scores, logits = _tables(model, distinct, split.bytes_each // m, mixes, focus_needed)
    bytes_each = split.bytes_each if logits is None else 4 * m * logits.shape[1]
    for rows in split.passes(pass_size(bytes_each, split.labels.device)):
        looked_up = None
        if logits is None:
            segments = split.batch(rows).segments
            classifier: Classifier = model.classifier
            if focus_needed:
                looked_up = scores[places[rows]]
        else:  # a segment is its index in the tables
            segments, classifier = places[rows], logits.__getitem__
        yield _Part(
            rows,
            scores.__getitem__,
            classifier,
            segments,
            looked_up,
            None,
            split.labels[rows],
            split.foreground[rows],
        )


def _tables(
    model: Model, distinct: Distinct, segment_bytes: int, mixes: bool, focus_needed: bool
) -> tuple[Tensor, Tensor | None]:
    """f (U,) of every distinct segment, empty if it is not needed; g (U, C), None if it mixes."""
    device = distinct.names.device
    scores, logits = [torch.empty(0, device=device)], []
    for names in distinct.names.split(pass_size(segment_bytes, device)):
        segments = model.encode(distinct.segments(names)[:, None])[:, 0]
        if focus_needed:
            scores.append(model.focus(segments))
        if not mixes:
            logits.append(model.classifier(segments))
    return torch.cat(scores), torch.cat(logits) if logits else None
