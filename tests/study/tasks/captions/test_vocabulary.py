"""Words of captions: how text becomes words, and which words are numbered or stand for what."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.errors import RequestError
from study.tasks.captions.vocabulary import (
    END,
    FIRST_WORD,
    PADDING,
    START,
    UNKNOWN,
    make_vocabulary,
    numbers,
    read_category_words,
    tokenise,
)
from tests.made_up.coco import CATEGORIES, CATEGORY_WORDS

NAMES = tuple(CATEGORIES.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A man riding a wave.", "a man riding a wave"),
        ("Two dogs, one ball -- and it's RED!", "two dogs one ball and it 's red"),
        ("They don't; he can’t", "they do n't he ca n't"),
        ("a t-shirt and a 2-year-old", "a t-shirt and a 2-year-old"),
        ('"8:25" skating/skiing (on_ice)', "8 25 skating skiing on ice"),
        ("a café's sign", "a café 's sign"),
        (" . ... -!", ""),
    ],
)
def test_words_are_those_of_the_official_evaluation(text: str, words: str) -> None:
    assert " ".join(tokenise(text)) == words
    assert tokenise(words) == words.split()  # references are joined by blanks and split again


def test_the_vocabulary_is_words_that_occur_often_enough() -> None:
    captions = ["a red cat", "a cat and a dog", "the dog"]
    vocabulary = make_vocabulary("fruit", captions, 2)
    assert vocabulary == ("", "", "", "", "a", "cat", "dog")
    assert numbers(vocabulary) == {"a": 4, "cat": 5, "dog": 6}
    assert sorted({PADDING, START, END, UNKNOWN, FIRST_WORD}) == [0, 1, 2, 3, 4]
    with pytest.raises(RequestError) as caught:
        make_vocabulary("fruit", captions, 4)
    assert str(caught.value) == (
        "fruit: the vocabulary is empty: no word occurs 4 times in the training captions, the "
        "most frequent one 3 times. Lower it with --set min_count=N."
    )


def test_single_words_stand_for_a_category(tmp_path: Path) -> None:
    (tmp_path / "category_words.txt").write_text(CATEGORY_WORDS)
    expected = {"cat": ("cat", "kitten"), "dog": ("dog", "puppy"), "traffic light": ()}
    assert read_category_words(tmp_path, None, NAMES) == expected
    (tmp_path / "other").write_text("\ufeffcat\ndog, Dog, dog\nlight, traffic light\n\n")
    assert read_category_words(tmp_path, str(tmp_path / "other"), NAMES) == {
        "cat": ("cat",), "dog": ("dog",), "traffic light": ("light",),
    }  # fmt: skip


def test_category_words_that_are_missing_or_wrong_are_refused(tmp_path: Path) -> None:
    def refused(content: bytes | None = None) -> str:
        if content is not None:
            (tmp_path / "category_words.txt").write_bytes(content)
        with pytest.raises(RequestError) as caught:
            read_category_words(tmp_path, None, NAMES)
        message = str(caught.value)
        assert "\n" not in message
        return message.replace(str(tmp_path), "DIR")

    message = refused()
    assert message.startswith("DIR/category_words.txt cannot be read (No such file or directory).")
    assert message.endswith("Mend it, or pass another one with --category-words FILE.")
    assert "(it has 2 lines). It must have one line for each of the 3" in refused(b"cat\ndog")
    assert "(the line of 'cat' does not name it)" in refused(b"dog\ncat\ntraffic light")
    assert "category_words.txt cannot be read (" in refused(b"\xff")


def test_a_home_directory_can_be_written_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words").write_text("cat\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_category_words(Path(), "~/words", ["cat"]) == {"cat": ("cat",)}
