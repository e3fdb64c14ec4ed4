"""Captions that a model writes: greedily, or by beam search, which follows several at a time."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from chapters.captions.data.vocabulary import END, PADDING, START, UNKNOWN
from chapters.captions.model import Captioner
from study.paradigms.padding import filled
from study.paradigms.paradigm import Paradigm

NEVER_WRITTEN = (PADDING, START, UNKNOWN)
"""Numbers that no caption has, however likely they are: the likeliest other one stands instead."""


class Written(NamedTuple):
    """Captions of n images, and what the model attended to and expected at each of T words.

    All is 0 after the last word of a caption, and 0 is PADDING.

    Attributes:
        words: (n, T) int64; END is not among them.
        likeliest: (n, T) int64, the likeliest word at each step, which a beam may not have taken.
        attention: (n, T, m), rows sum to 1.
        scores: (n, T, O) float64, the probability of all words of an object together, as a share
            of the whole vocabulary.
    """

    words: Tensor
    likeliest: Tensor
    attention: Tensor
    scores: Tensor


def write(
    model: Captioner,
    paradigm: Paradigm,
    regions: Tensor,
    sought: Tensor,
    longest: int,
    beam: int = 1,
) -> Written | None:
    """Writes a caption for each image.

    It is the caption with the largest sum of log probabilities that the beam finds, without a
    penalty or a mean for its length. A beam of 1 is greedy: the likeliest word, until it is END.

    Args:
        model: that writes, without dropout.
        paradigm: whose formula predicts words.
        regions: (n, m, D).
        sought: (n, O, W) int64, the words of O objects of each image; PADDING stands for none.
        longest: most words of a caption, >= 1.
        beam: captions that are followed for each image, >= 1.

    Returns:
        The captions, T in [1, `longest`]; None if an output of the model is not finite.
    """
    n, m, _ = regions.shape
    images = torch.arange(n, device=regions.device)
    # A row is a caption; those of an image follow each other, the best one first.
    memory, words = model.begin(regions), torch.full_like(images, START)
    ended = torch.zeros_like(images, dtype=torch.bool)
    log_probability = torch.zeros(n, dtype=torch.float64, device=regions.device)
    so_far = Written(
        words=sought.new_empty(n, 0),
        likeliest=sought.new_empty(n, 0),
        attention=regions.new_empty(n, 0, m),
        scores=log_probability.new_empty(n, 0, sought.shape[1]),
    )
    for _ in range(longest):
        attention, probabilities, memory = model.next_word(paradigm, memory, words)
        if not (attention.sum() + probabilities.sum()).isfinite():  # then one of them is not
            return None
        width = len(words) // n
        scores = _scores(probabilities, sought.repeat_interleave(width, dim=0))
        log_next, candidates = _candidates(probabilities, beam, ended)
        # All that the captions of an image can become compete.
        totals = (log_probability[:, None] + log_next).view(n, -1)
        best, taken = totals.topk(min(beam, totals.shape[1]), dim=1)
        parents = (width * images[:, None] + taken // log_next.shape[1]).flatten()
        log_probability = best.flatten()
        words = candidates.view(n, -1).gather(1, taken).flatten()
        step = Written(words, candidates[parents, 0], attention[parents], scores[parents])
        so_far = Written(
            *(torch.cat([a[parents], b[:, None]], 1) for a, b in zip(so_far, step, strict=True))
        )
        if beam > 1:
            memory = memory.rows(parents)
        ended = (words == END) | (words == PADDING)
        if ended.view(n, -1)[:, 0].all():  # others lose probability with every word
            break
    return _without_end(Written(*(each[:: len(each) // n] for each in so_far)))


def _scores(probabilities: Tensor, sought: Tensor) -> Tensor:
    """The probability (B, O) float64 of all words (B, O, W) of an object together."""
    each = probabilities.gather(1, sought.flatten(1)).double().view_as(sought)
    return each.masked_fill(sought == PADDING, 0).sum(dim=2)


def _candidates(probabilities: Tensor, beam: int, ended: Tensor) -> tuple[Tensor, Tensor]:
    """Log probabilities and numbers (B, K) of the words that a caption may go on with.

    They are at most `beam`, the likeliest first. A caption that has ended (B,) goes on with
    PADDING for certain.
    """
    never = torch.tensor(NEVER_WRITTEN, device=probabilities.device)
    count = min(beam, probabilities.shape[1] - len(never))
    chances, words = probabilities.index_fill(1, never, -1).topk(count, dim=1)
    log_next = chances.double().log().masked_fill(ended[:, None], -torch.inf)
    log_next[:, 0].masked_fill_(ended, 0)
    return log_next, words.masked_fill(ended[:, None], PADDING)


def _without_end(written: Written) -> Written:
    """0 from END on."""
    going_on = (written.words != END) & (written.words != PADDING)
    return Written(*(filled(each, going_on, 0) for each in written))
