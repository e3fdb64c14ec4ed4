"""Greedy decoding and beam search against models that are tables, where all can be listed."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from study import paradigms
from study.evaluate.decoding import NEVER_WRITTEN, Written, write
from study.tasks.captions.vocabulary import END, PADDING, START, UNKNOWN
from tests.made_up.table_captions import BALL, DOG, PUPPY, RUNS, A, TableCaptions, TableModel

SOFT = paradigms.get("soft")
SOUGHT = torch.tensor([[[DOG, PUPPY], [BALL, PADDING]]])


def written(model: TableModel, longest: int = 15, beam: int = 1) -> Written:
    images, _, m = model.attention.shape
    regions = TableCaptions(m, [["a"]] * images).images_at(torch.arange(images))
    found = write(model, SOFT, regions, SOUGHT.expand(images, -1, -1), longest, beam)
    assert found is not None
    return found


def captions(found: Written) -> list[list[int]]:
    return [[word for word in each if word != PADDING] for each in found.words.tolist()]


def log_probability(model: TableModel, image: int, words: list[int], longest: int) -> float:
    """Of a caption, with its END unless it is as long as captions get."""
    steps = [START, START, *words] + [END] * (len(words) < longest)
    table = model.probabilities[image].double().log()
    return sum(table[steps[t], steps[t + 1], steps[t + 2]].item() for t in range(len(steps) - 2))


def test_greedy_follows_the_likeliest_word_until_the_end() -> None:
    model = TableModel.even(images=2, m=4)
    model.after(0, START, {A: 0.6, DOG: 0.4})
    model.after(0, A, {DOG: 0.5, PUPPY: 0.3, END: 0.2})
    model.after(0, DOG, {END: 0.9, RUNS: 0.1})
    model.after(1, START, {END: 0.9, A: 0.1})  # a caption without words
    found = written(model)
    assert captions(found) == [[A, DOG], []]
    assert found.words.shape == (2, 3)
    assert found.likeliest.tolist() == found.words.tolist()
    assert found.attention[0, :2].sum() == pytest.approx(2)
    for after_the_end in (found.attention[0, 2], found.attention[1], found.scores[1]):
        assert not after_the_end.any()


def test_padding_start_and_unknown_are_never_written() -> None:
    model = TableModel.even(images=1, m=2)
    model.after(0, START, {PADDING: 0.3, START: 0.3, UNKNOWN: 0.3, RUNS: 0.06, A: 0.04})
    model.after(0, RUNS, {UNKNOWN: 1.0})  # none that may be written has any probability
    found = written(model, longest=2)
    assert found.words[0, 0] == found.likeliest[0, 0] == RUNS
    assert found.words[0, 1] not in NEVER_WRITTEN


def test_a_caption_ends_at_the_longest() -> None:
    model = TableModel.even(images=1, m=2)
    for word in (START, DOG):
        model.after(0, word, {DOG: 1.0})
    for longest in (1, 3, 15):
        assert captions(written(model, longest)) == [[DOG] * longest]


@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_kept_is_of_the_caption_that_is_returned(beam: int) -> None:
    model = TableModel.random(images=20, m=5)
    found = written(model, longest=6, beam=beam)
    for image, words in enumerate(captions(found)):
        for t, (before, last) in enumerate(itertools.pairwise([START, START, *words][:-1])):
            expects = model.probabilities[image, before, last]
            assert torch.equal(found.attention[image, t], model.attention[image, last])
            scores = torch.stack([expects[DOG] + expects[PUPPY], expects[BALL]])
            assert torch.allclose(found.scores[image, t].float(), scores)
            allowed = [END, A, DOG, PUPPY, RUNS, BALL]
            assert found.likeliest[image, t] == allowed[int(expects[allowed].argmax())]


def test_a_beam_finds_a_caption_that_greedy_misses() -> None:
    model = TableModel.even(images=1, m=2)
    model.after(0, START, {A: 0.6, DOG: 0.4})
    model.after(0, A, {RUNS: 0.4, BALL: 0.3, PUPPY: 0.3})
    model.after(0, DOG, {RUNS: 1.0})
    model.after(0, RUNS, {END: 1.0})
    assert captions(written(model)) == [[A, RUNS]]
    assert captions(written(model, beam=2)) == [[DOG, RUNS]]


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_a_beam_search_written_out(beam: int) -> None:
    """One image after the other, with lists; greedy is a beam of one."""
    model, longest = TableModel.random(images=30, m=2, seed=1), 5
    for image, words in enumerate(captions(written(model, longest, beam))):
        table = model.probabilities[image].double().log().tolist()
        held: list[tuple[float, list[int]]] = [(0.0, [START, START])]
        for _ in range(longest):
            grown = [each for each in held if each[1][-1] == END]
            grown += [
                (total + table[path[-2]][path[-1]][word], [*path, word])
                for total, path in held
                if path[-1] != END
                for word in (END, A, DOG, PUPPY, RUNS, BALL)
            ]
            held = sorted(grown, reverse=True)[:beam]
        assert words == [word for word in held[0][1][2:] if word != END]


def test_a_beam_that_holds_all_captions_finds_the_likeliest() -> None:
    model, longest = TableModel.random(images=10, m=2, seed=2), 3
    every = [
        list(words)
        for length in range(longest + 1)
        for words in itertools.product((A, DOG, PUPPY, RUNS, BALL), repeat=length)
    ]
    for image, words in enumerate(captions(written(model, longest, beam=len(every)))):
        best = max(every, key=lambda each: log_probability(model, image, each, longest))
        assert words == best


def test_a_broken_model_writes_nothing() -> None:
    for table in ("probabilities", "attention"):
        model = TableModel.even(images=2, m=2)
        broken: Tensor = getattr(model, table)
        broken[1, START] = math.nan
        regions = TableCaptions(2, [["a"]] * 2).images_at(torch.arange(2))
        assert write(model, SOFT, regions, SOUGHT.expand(2, -1, -1), 3) is None
