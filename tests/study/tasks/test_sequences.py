"""The vocabulary of inputs that are sequences of words; batches: see the chapters' tests."""

from __future__ import annotations

import pytest

from study.errors import RequestError
from study.tasks.sequences import make_vocabulary


def test_the_vocabulary_is_words_that_occur_often_enough():
    texts = [["a", "red", "cat"], ["a", "cat", "and", "a", "dog"], ["the", "dog"]]
    assert make_vocabulary("pets", texts, 2) == ["a", "cat", "dog"]
    with pytest.raises(RequestError, match=r"^pets: .* 4 times .* 3 times\. .*--set min_count"):
        make_vocabulary("pets", texts, 4)
