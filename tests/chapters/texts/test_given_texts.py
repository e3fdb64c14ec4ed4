"""Texts that a person gives are read as those that trained."""

from __future__ import annotations

import numpy as np
import pytest

from chapters.texts.given_texts import given_texts
from chapters.texts.texts import PADDING, TextTask
from study.errors import RequestError
from tests.chapters.texts.post_files import load, text_cell, write_posts

CARRIED = {"vocabulary": ["a", "don't", "film", "fine"], "m": 4}


@pytest.fixture
def task(tmp_path) -> TextTask:
    return load(write_posts(tmp_path))


@pytest.mark.parametrize("m", [3, 12])
def test_the_words_of_a_post_are_those_of_its_split(task, m):
    """Some are unknown, and long posts are cut."""
    split = task.splits(text_cell(task, m=m))["test"]
    asked = given_texts(task.carried | {"m": m}, [[*each] for each in split.tokens], None)
    for row, each in enumerate(asked):
        real = split.words[row] != PADDING
        np.testing.assert_array_equal(each.segments, split.words[row][real])
        words = [*split.tokens[row][: int(real.sum())]]
        assert [part.removesuffix(" (unknown)") for part in each.parts] == words
        assert each.shown() == {"words": words}


def test_a_text_is_split_as_own_texts_are():
    (asked,) = given_texts(CARRIED, "Don't: a FINE, fine film", None)
    assert asked.parts == ["don't", ": (unknown)", "a", "fine"]
    assert asked.segments.tolist() == [3, 1, 2, 5]
    assert [each.name for each in given_texts(CARRIED, ["a", "fine film"], None)] == [0, 1]
    cased = {"vocabulary": ["BAD", "bad", "film"], "m": 4}  # as texts in tokens may be
    (asked,) = given_texts(cased, "BAD film", None)
    assert asked.segments.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("", r"^text 0 cannot be read \(it holds no word\)"),
        (["a", " \n"], r"^text 1 cannot be read \(it holds no word\)"),
        (["a", []], r"^text 1 cannot be read \(it holds no word\)"),
        ([["a", 1]], r"^text 0 cannot be read \(its tokens are not a list of words\)"),
        ([3], r"^text 0 cannot be read"),
        ([], "^no text is given. Give a text"),
        (None, "^no text is given. Give a text"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(asked, message):
    with pytest.raises(RequestError, match=message) as refusal:
        given_texts(CARRIED, asked, None)
    assert "\n" not in str(refusal.value)
