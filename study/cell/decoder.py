"""The decoder of captions: its sizes, and how it writes."""

from __future__ import annotations

from dataclasses import dataclass

from study.cell.checks import is_int, require

PADDING, START, END, UNKNOWN = range(4)
"""Numbers of what is no word of a vocabulary: what fills a batch up, what stands before the first
word and behind the last one, and every word that is not in the vocabulary."""

FIRST_WORD = 4
LARGEST_SIZE = 65_536
LONGEST_CAPTION = 1_000
WIDEST_BEAM = 100
"""Far above any study, but low enough to catch a mistyped zero before it takes all memory."""


@dataclass(frozen=True)
class DecoderSettings:
    """Sizes and inference of a decoder that attends anew for every word (appendix A.4).

    Args:
        embedding: size of the vector of a word, >= 1.
        attention: size of the projections of regions and state that are compared, >= 1.
        hidden: size of the LSTM's state, >= 1.
        dropout: share of the state that the output does not see while training, in [0, 1).
        longest: words of the longest caption that it writes, >= 1.
        beam: captions that are followed side by side while it writes, >= 1; 1: greedy.

    Raises:
        ValueError: a value is out of range; the message names it and the rule.
    """

    embedding: int = 512
    attention: int = 512
    hidden: int = 512
    dropout: float = 0.5
    longest: int = 15
    beam: int = 1

    def __post_init__(self) -> None:
        for name, most in (
            ("embedding", LARGEST_SIZE),
            ("attention", LARGEST_SIZE),
            ("hidden", LARGEST_SIZE),
            ("longest", LONGEST_CAPTION),
            ("beam", WIDEST_BEAM),
        ):
            value = getattr(self, name)
            rule = f"an integer >= 1 and at most {most:,}"
            require(is_int(value) and 1 <= value <= most, name, value, rule)
        rate = self.dropout
        is_rate = isinstance(rate, int | float) and rate is not True and 0 <= rate < 1
        require(is_rate, "dropout", rate, "a number in [0, 1)")
        object.__setattr__(self, "dropout", float(rate) + 0.0)  # -0 is 0
