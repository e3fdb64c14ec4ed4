"""Greedy decoding and beam search against models that are tables, where all can be listed."""

from __future__ import annotations

import itertools

import pytest
import torch

from chapters.captions.data.vocabulary import END, PADDING, START
from chapters.captions.evaluation.beam_search import Written, write
from study import paradigms
from tests.chapters.captions.table_captions import (
    BALL,
    DOG,
    PUPPY,
    RUNS,
    A,
    TableModel,
    numbered_images,
)

SOUGHT = torch.tensor([[[DOG, PUPPY], [BALL, PADDING]]])
ALLOWED = [END, A, DOG, PUPPY, RUNS, BALL]
"""All words but those that are never written, which the tables expect as often."""


def attempt(model: TableModel, longest: int, beam: int = 1) -> Written | None:
    images, _, m = model.attention.shape
    sought = SOUGHT.expand(images, -1, -1)
    regions = numbered_images(images, m)
    return write(model, paradigms.get("soft"), regions, sought, longest, beam)


def captions(found: Written | None) -> list[list[int]]:
    assert found is not None
    return [[word for word in each if word != PADDING] for each in found.words.tolist()]


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_a_beam_search_written_out(beam):
    """One image after the other, with lists; greedy is a beam of one."""
    model, longest = TableModel.random(images=30, m=2, seed=1), 5
    found = captions(attempt(model, longest, beam))
    assert {0, longest} <= set(map(len, found))
    for image, words in enumerate(found):
        table = model.probabilities[image].double().log().tolist()
        held: list[tuple[float, list[int]]] = [(0.0, [START, START])]
        for _ in range(longest):
            grown = [each for each in held if each[1][-1] == END]
            grown += [
                (total + table[path[-2]][path[-1]][word], [*path, word])
                for total, path in held
                if path[-1] != END
                for word in ALLOWED
            ]
            held = sorted(grown, reverse=True)[:beam]
        assert words == [word for word in held[0][1][2:] if word != END]


@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_kept_is_of_the_caption_that_is_returned(beam):
    model = TableModel.random(images=20, m=5)
    found = attempt(model, longest=6, beam=beam)
    for image, words in enumerate(captions(found)):
        for t, (before, last) in enumerate(itertools.pairwise([START, START, *words][:-1])):
            expects = model.probabilities[image, before, last]
            assert torch.equal(found.attention[image, t], model.attention[image, last])
            scores = torch.stack([expects[DOG] + expects[PUPPY], expects[BALL]])
            assert torch.allclose(found.scores[image, t].float(), scores)
            assert found.likeliest[image, t] == ALLOWED[int(expects[ALLOWED].argmax())]
        for each in found:
            assert not each[image, len(words) :].any()
