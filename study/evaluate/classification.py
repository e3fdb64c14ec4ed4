"""Evaluates a model on a split: loss, accuracy, a_z, s_y, heat map, SAIF, incentive."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.evaluate.by_instance import by_instance
from study.evaluate.examples import examples
from study.evaluate.follows import Follows
from study.evaluate.measured import measured, outputs_of
from study.evaluate.saif_and_heat_map import class_heatmaps, foreground_metrics, in_saif
from study.evaluate.segments import Part, segments_of
from study.models.model import Model
from study.paradigms.held import incentive
from study.paradigms.paradigm import Paradigm
from study.tasks.measures import MEASURES
from study.tasks.task import Split, class_names


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
        last: whether to mark each instance and class, to try whether predictions follow the
            attention (`study.evaluate.follows`), and to give examples, too.

    Returns:
        The metric columns of `study.results.EVALUATIONS_SCHEMA`: loss in nats, all others
        fractions, `heatmap` 25 fractions row by row; with the incentive, also `incentive` and
        `incentive_slope` (`study.paradigms.held.Incentive`); of the last evaluation, also those
        of each instance and class, and, unless alpha is held, `examples`
        (`study.evaluate.examples`). Metrics of the foreground are None if no input has a known
        foreground. None if any output is not finite.

    Raises:
        RequestError: a measure of one's own gives what is none.
    """
    inference = inference or paradigm
    segments = segments_of(model, split, paradigm.mixes or inference.mixes, alpha is None)
    follows = Follows(segments, inference) if last and alpha is None else None
    own = [each for each in (*split.modality.measures, *MEASURES.values()) if each.of]
    parts, outputs, followed, gathered = [], [], [], []
    sums = torch.zeros(3, dtype=torch.float64, device=split.labels.device)
    for rows in segments.passes():
        part = segments.part(rows)
        shared = (part.focus, part.classifier, part.segments)
        loss_with = functools.partial(paradigm.loss, *shared, part.labels, part.mask)
        if with_incentive and alpha is not None:
            found = torch.stack(incentive(loss_with, alpha, part.foreground))
        else:
            found = loss_with(part.attention(paradigm, alpha))[None]
        sums[: len(found)] += found.double() * len(part.labels)
        attention, probabilities = part.predicted(inference, alpha)
        parts.append(_measured(attention, probabilities, part))
        outputs.append((rows, attention, probabilities))
        if follows and (bits := follows(part, attention, probabilities)) is not None:
            followed.append(bits)
        if own:
            gathered.append((attention, probabilities, part.labels, part.foreground, part.there))
    numbers = torch.cat(parts, dim=1).cpu().numpy()
    loss, *dynamics = (sums / len(split)).cpu().numpy().tolist()
    if not (np.isfinite([loss, *dynamics]).all() and np.isfinite(numbers).all()):
        return None
    a_z, s_y, focus_true, prediction_true, is_known = numbers
    known = is_known == 1
    metrics: dict[str, Any] = {
        "loss": loss,
        "accuracy": float(prediction_true.mean()),
        "num_evaluated": len(split),
        "foreground_share": float(known.mean()),
    }
    if with_incentive:
        metrics |= dict(zip(("incentive", "incentive_slope"), dynamics, strict=True))
    of_known = a_z[known], s_y[known], focus_true[known], prediction_true[known]
    metrics |= foreground_metrics(*of_known, split.modality)
    if not (last or own):
        return metrics  # without a further wait for the device
    values, flags = measured(own, outputs_of(gathered)) if own else ({}, {})
    if followed:
        tried = dict(zip(Follows.NAMES, torch.cat(followed, dim=1).cpu().numpy(), strict=True))
        values |= {name: float(each.mean()) for name, each in tried.items()}
        flags["follows"] = tried["follows"]  # bits of the others would fill a tenth of a file
    of_modality = {measure.column for measure in split.modality.measures}
    metrics |= {name: value for name, value in values.items() if name in of_modality}
    if further := {name: value for name, value in values.items() if name not in of_modality}:
        metrics["measures"] = json.dumps(further, sort_keys=True)
    if last:
        order = torch.cat([rows for rows, _, _ in outputs]).argsort().cpu().numpy()
        of_each = {name: each[order] for name, each in flags.items()}
        metrics |= _of_each(split, numbers[:, order], of_each)
        metrics["examples"] = examples(split, outputs) if alpha is None else None
    return metrics


def _measured(attention: Tensor, probabilities: Tensor, part: Part) -> Tensor:
    """(5, B) float64: a_z (0 if z is unknown), s_y, focus true, prediction true, z known."""
    focus_true = part.foreground.gather(1, attention.argmax(dim=1, keepdim=True)).squeeze(1)
    a_z = (attention * part.foreground).sum(dim=1)
    s_y = probabilities.gather(1, part.labels[:, None]).squeeze(1)
    prediction_true = probabilities.argmax(dim=1) == part.labels
    known = part.foreground.any(dim=1)
    return torch.stack([a_z, s_y, focus_true, prediction_true, known]).double()


def _of_each(
    split: Split, numbers: NDArray[np.float64], flags: dict[str, NDArray[np.bool_]]
) -> dict[str, Any]:
    """What is recorded of each instance and class; `numbers` (5, n) as of `_measured`."""
    modality = split.modality
    classes = np.array(class_names(split))[split.labels.cpu().numpy()]
    a_z, s_y, *bits = numbers
    focus_true, prediction_true, known = (each == 1 for each in bits)
    strong = in_saif(a_z, s_y, modality.saif_threshold)
    further = {"focus": known & focus_true, **flags}
    maps = class_heatmaps(a_z, s_y, known, classes, modality.heatmap_edges)
    return by_instance(known, strong, prediction_true, further) | {"class_heatmaps": maps}
