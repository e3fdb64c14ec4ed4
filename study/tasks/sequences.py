"""What all inputs share that are sequences of words: batches of few widths, and a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

from torch import Tensor

from study.errors import RequestError
from study.paradigms.padding import few_widths


class Sequences:
    """Part of a `study.tasks.task.Split` whose inputs differ in length.

    A batch is padded to its longest input, or to the next of a few widths.

    Attributes:
        words: (n, T) integers, numbers of words, 0 behind the end of an input.
        lengths: (n,) int64 in [1, T], on the host, where widths are decided.
        width_step: widths are multiples of it, or T.
    """

    words: Tensor
    lengths: Tensor
    width_step: ClassVar[int]

    def __len__(self) -> int:
        return len(self.lengths)

    def words_of(self, rows: Tensor, width: int | None) -> Tensor:
        """(B, width) int64 of these rows; None: as wide as the longest of them."""
        if width is None:
            width = int(self.lengths[rows.cpu()].max())
        return self.words[rows, :width].long()

    def widths(self, rows: Tensor) -> Sequence[int]:
        """Of each batch the longest input, up to a multiple of the step or the longest of all."""
        return few_widths(self.lengths[rows], self.width_step, self.words.shape[1])

    def passes(self, count: int) -> Sequence[Tensor]:
        """All rows in parts of at most `count`, inputs of similar length together."""
        return self.lengths.argsort(stable=True).to(self.words.device).split(count)


def make_vocabulary(task: str, texts: Iterable[Sequence[str]], min_count: int) -> list[str]:
    """The words that occur at least `min_count` times, by the alphabet.

    Args:
        task: its name.
        texts: the words of each training input; at least one word in all.
        min_count: see above.

    Raises:
        RequestError: no word occurs so often.
    """
    counts = Counter(word for text in texts for word in text)
    words = sorted(word for word, count in counts.items() if count >= min_count)
    if not words:
        raise RequestError(
            f"{task}: the vocabulary is empty: no word occurs {min_count} times in the training "
            f"split, the most frequent one {max(counts.values())} times. Lower it with "
            "--set min_count=N."
        )
    return words
