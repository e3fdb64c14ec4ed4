"""Evaluates a model of captions on a split: loss, Bleu, CIDEr, and SAIF of objects."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch import Tensor

from chapters.captions.data.captions import Captions
from chapters.captions.data.vocabulary import PADDING
from chapters.captions.evaluation.beam_search import write
from chapters.captions.evaluation.caption_examples import chosen, example
from chapters.captions.evaluation.caption_scores import bleu, cider
from chapters.captions.evaluation.objects import Expected, expected, sought
from chapters.captions.model import Captioner
from study.cell.grouped import grouped
from study.evaluate.by_instance import by_instance
from study.evaluate.saif_and_heat_map import foreground_metrics, in_saif
from study.hardware import pass_size
from study.paradigms.paradigm import Paradigm


@torch.no_grad()
def evaluate(
    model: Captioner,
    paradigm: Paradigm,
    split: Captions,
    inference: Paradigm | None = None,
    last: bool = False,
) -> dict[str, Any] | None:
    """The metrics of a model of captions on a split.

    A caption is written for each image. Bleu and CIDEr are of images, the loss is of captions,
    and SAIF, the heat map and all of the foreground are of objects: categories with one box in an
    image. Their a_z and s_y are both of one word, see `chapters.captions.evaluation.objects`.

    Args:
        model: on the device of the split.
        paradigm: gives the loss; one whose loss is exact.
        split: of captions.
        inference: the paradigm that writes; None: `paradigm`.
        last: whether to mark each object and to give examples, too.

    Returns:
        Columns of `study.results.EVALUATIONS_SCHEMA`: `loss` in nats a caption; `bleu_1` to
        `bleu_4` and `accuracy`, which is Bleu-4, fractions; `cider` in [0, 10]; `caption_length`,
        the mean number of words; those of the foreground, None if there is no object, of
        `num_evaluated` objects; of the last evaluation, also those of
        `study.evaluate.by_instance`, and `examples` as JSON, see
        `chapters.captions.evaluation.caption_examples`. None if an output is not finite.
    """
    loss = _loss(model, paradigm, split)
    if not math.isfinite(loss):
        return None
    shown = chosen(split) if last else []
    found = _written(
        model,
        inference or paradigm,
        split,
        kept={split.objects[number].image for number in shown},
    )
    if found is None:
        return None
    captions, objects, attention = found
    references = [image.captions for image in split.captioned]
    bleus = bleu(captions, references)
    metrics: dict[str, Any] = {
        "loss": loss,
        "accuracy": bleus[-1],
        "num_evaluated": len(split.objects),
        "foreground_share": float(len(split.objects) > 0),
        **{f"bleu_{n}": value for n, value in enumerate(bleus, 1)},
        "cider": cider(captions, references),
        "caption_length": float(np.mean([len(caption.split()) for caption in captions])),
        **foreground_metrics(*objects[:4], split.modality),
    }
    if last:
        strong = in_saif(objects.a_z, objects.s_y, split.modality.saif_threshold)
        metrics |= by_instance(np.ones(len(strong), bool), strong)
        examples = [example(split, number, captions, attention, objects) for number in shown]
        metrics["examples"] = json.dumps(examples)
    return metrics


def _written(
    model: Captioner,
    paradigm: Paradigm,
    split: Captions,
    kept: Collection[int],
) -> tuple[list[str], Expected, dict[int, Tensor]] | None:
    """Writes a caption for every image of a split; None if an output is not finite.

    Args:
        model, paradigm, split: as of `evaluate`.
        kept: images whose attention is kept.

    Returns:
        The caption of each image, its words joined by blanks; the objects of the split, in their
        order; image -> the attention (T, m) at each step, for the images to keep.
    """
    settings = model.settings
    objects_of = grouped(split.objects, lambda one: one.image)
    captions: list[str] = []
    attention: dict[int, Tensor] = {}
    parts = []
    every = torch.arange(split.num_images, device=split.words.device)
    for images in every.split(pass_size(settings.beam * split.bytes_each, every.device)):
        numbers = images.tolist()
        own = [objects_of.get(image, []) for image in numbers]
        regions, words = model.encode(split.images_at(images)), sought(own).to(every.device)
        written = write(model, paradigm, regions, words, settings.longest, settings.beam)
        if written is None:
            return None
        captions += [
            " ".join(split.vocabulary[word] for word in words if word != PADDING)
            for words in written.words.tolist()
        ]
        parts.append(expected(written, own))
        attention |= {
            image: written.attention[row] for row, image in enumerate(numbers) if image in kept
        }
    whole = Expected(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return captions, whole, attention


def _loss(model: Captioner, paradigm: Paradigm, split: Captions) -> float:
    """Mean nats of a caption."""
    passes = split.passes(pass_size(split.bytes_each, split.words.device))
    sums = (model.loss(paradigm, split.batch(rows)).double() * len(rows) for rows in passes)
    return float(sum(sums)) / len(split)
