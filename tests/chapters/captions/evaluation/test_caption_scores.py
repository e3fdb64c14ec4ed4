"""Bleu beside COCO's own; CIDEr at its ends."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from pycocoevalcap.bleu.bleu import Bleu

from chapters.captions.evaluation.caption_scores import bleu, cider, require_scorers
from study.errors import RequestError


def test_captions_without_words_score_nothing():
    assert bleu(["", ""], [["a dog"], ["a cat"]]) == (0, 0, 0, 0)


@pytest.mark.parametrize(("images", "rounding"), [(1, 1e-3), (30, 1e-6)])
@pytest.mark.parametrize("seed", range(5))
def test_bleu_is_that_of_coco(seed, images, rounding):
    """Repeated words, captions shorter, longer and as near to two references, or empty."""
    rng = np.random.default_rng(seed)

    def sentence(*lengths: int) -> str:
        return " ".join(rng.choice(("a", "dog", "cat"), rng.integers(*lengths)))

    captions = [sentence(13) for _ in range(images)]
    references = [[sentence(5, 12) for _ in range(rng.integers(1, 6))] for _ in captions]
    by_image = {i: [caption] for i, caption in enumerate(captions)}
    theirs, _ = Bleu(4).compute_score(dict(enumerate(references)), by_image, verbose=0)
    assert bleu(captions, references) == pytest.approx(theirs, abs=rounding)


def test_cider_of_references_is_ten_and_of_no_common_word_zero():
    captions = ["a dog runs here", "the red cat sleeps"]
    references = [[caption] for caption in captions]
    for written, expected in ((captions, 10), (captions[::-1], 0), ([captions[0], ""], 5)):
        assert cider(written, references) == pytest.approx(expected)


def test_a_missing_library_is_said_at_once(monkeypatch):
    require_scorers()
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(RequestError, match=r"^captions .* sacrebleu, .*uv sync --extra captions$"):
        require_scorers()
