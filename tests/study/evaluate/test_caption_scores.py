"""Bleu on corpora that a hand can count, and beside COCO's own; CIDEr at its ends."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from pycocoevalcap.bleu.bleu import Bleu

from study.errors import RequestError
from study.evaluate.caption_scores import bleu, cider, require_scorers

WORDS = ("a", "dog", "cat")


def made_up(seed: int, images: int) -> tuple[list[str], list[list[str]]]:
    """Captions of 0 to 12 words, and 1 to 5 references each."""
    rng = np.random.default_rng(seed)
    captions = [" ".join(rng.choice(WORDS, rng.integers(13))) for _ in range(images)]
    references = [
        [" ".join(rng.choice(WORDS, rng.integers(5, 12))) for _ in range(rng.integers(1, 6))]
        for _ in range(images)
    ]
    return captions, references


def test_a_caption_of_its_reference_is_one() -> None:
    assert bleu(["a dog on the mat"], [["a dog on the mat", "a cat"]]) == (1, 1, 1, 1)


def test_counted_by_hand() -> None:
    # 4 of 5 words, 2 of 4 pairs (a dog, dog on), 1 of 3 triples (a dog on), 0 of 2 fours
    found = bleu(["a dog on red mat"], [["a dog on the mat"]])
    assert found == pytest.approx((4 / 5, (4 / 5 * 2 / 4) ** (1 / 2), (4 / 30) ** (1 / 3), 0))


def test_an_ngram_counts_as_often_as_in_the_reference_that_has_it_most_often() -> None:
    found = bleu(["the the the the the"], [["the mat on the red cat", "the cat"]])
    assert found[0] == pytest.approx(2 / 5 * math.exp(1 - 6 / 5))
    assert found[1:] == (0, 0, 0)


@pytest.mark.parametrize(
    ("lengths", "nearest"),
    [((7,), 7), ((3, 9), 3), ((2, 8), 2), ((7, 30), 7), ((4, 6), 4), ((6, 4), 4)],
)
def test_the_nearest_reference_counts_for_brevity_and_of_two_the_shorter(
    lengths: tuple[int, ...], nearest: int
) -> None:
    references = [" ".join(["dog"] * length) for length in lengths]
    right = min(5, max(lengths)) / 5
    penalty = min(1.0, math.exp(1 - nearest / 5))
    assert bleu(["dog dog dog dog dog"], [references])[0] == pytest.approx(right * penalty)


def test_counts_and_lengths_are_of_the_corpus() -> None:
    """Not means over images; a caption without words counts for its length alone."""
    found = bleu(["a dog", ""], [["a dog"], ["the red cat runs", "a cat"]])
    assert found[:2] == pytest.approx((math.exp(1 - 4 / 2),) * 2)
    assert found[2:] == (0, 0)
    assert bleu(["", ""], [["a dog"], ["a cat"]]) == (0, 0, 0, 0)


@pytest.mark.parametrize("seed", range(5))
def test_bleu_is_that_of_coco(seed: int) -> None:
    captions, references = made_up(seed, images=30)
    by_image = dict(enumerate(references))
    theirs, _ = Bleu(4).compute_score(
        by_image, {i: [c] for i, c in enumerate(captions)}, verbose=0
    )
    assert min(theirs) > 1e-3  # COCO's has an offset where a count is 0
    assert bleu(captions, references) == pytest.approx(theirs, abs=1e-6)


def test_cider_of_references_is_ten_and_of_no_common_word_zero() -> None:
    captions = ["a dog runs here", "the red cat sleeps"]
    assert cider(captions, [[caption] for caption in captions]) == pytest.approx(10)
    assert cider(captions[::-1], [[caption] for caption in captions]) == 0
    half = cider([captions[0], ""], [[caption] for caption in captions])
    assert half == pytest.approx(5)


def test_a_missing_library_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    require_scorers()
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(RequestError, match=r"^captions .* sacrebleu, .*uv sync --extra captions$"):
        require_scorers()
