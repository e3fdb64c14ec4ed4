"""Words of captions: how text becomes words, and which words are numbered or stand for what."""

from __future__ import annotations

import pytest

from chapters.captions.data.vocabulary import read_category_words, tokenise
from study.errors import RequestError
from tests.chapters.captions.coco_files import CATEGORIES, CATEGORY_WORDS

NAMES = tuple(CATEGORIES.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two dogs, one ball -- and it's RED!", "two dogs one ball and it 's red"),
        ("They don't; he can’t", "they do n't he ca n't"),
        ("a t-shirt and a 2-year-old", "a t-shirt and a 2-year-old"),
        ('"8:25" skating/skiing (on_ice)', "8 25 skating skiing on ice"),
        ("a café's sign", "a café 's sign"),
        (" . ... -!", ""),
    ],
)
def test_words_are_those_of_the_official_evaluation(text, words):
    assert " ".join(tokenise(text)) == words
    assert tokenise(words) == words.split()  # references are joined by blanks and split again


def test_single_words_stand_for_a_category(tmp_path):
    (tmp_path / "category_words.txt").write_text(CATEGORY_WORDS)
    expected = {"cat": ("cat", "kitten"), "dog": ("dog", "puppy"), "traffic light": ()}
    assert read_category_words(tmp_path, None, NAMES) == expected
    (tmp_path / "other").write_text("\ufeffcat\ndog, Dog, dog\nlight, traffic light\n\n")
    assert read_category_words(tmp_path, str(tmp_path / "other"), NAMES) == {
        "cat": ("cat",), "dog": ("dog",), "traffic light": ("light",),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), ("cat\ndog", "2 lines"), ("dog\ncat\ntraffic light", "'cat'")],
)
def test_category_words_that_are_missing_or_wrong_are_refused(content, reason, tmp_path):
    file = tmp_path / "category_words.txt"
    if content:
        file.write_text(content)
    with pytest.raises(RequestError, match=rf"{file} .*{reason}.*each of the 3.*--category-words"):
        read_category_words(tmp_path, None, NAMES)
