"""The numbers of figure 3 of the paper (arXiv 2405.15926), in `published.csv`, beside ours.

They are of one network of two layers with four heads each: its accuracy before pruning, and what
it lost without one head, by increasing score of that.
"""

from __future__ import annotations

import pandas as pd

from chapters.paths.section.heads.heads_scores import ranks
from chapters.paths.section.heads.heads_settings import Trained, trained
from chapters.paths.section.published import beside, measured, of_others

TASK, HEADS = "omniglot", 8


def numbers(setting: Trained) -> pd.DataFrame:
    """The published numbers, one a row: `measure` (accuracy, drop), `rank` of the head's score
    (missing for the accuracy) and `published`; none of other tasks and numbers of heads.
    """
    every = of_others("published.csv")
    is_theirs = setting.variant == TASK and sum(setting.heads) == HEADS
    return every if is_theirs else every.iloc[:0]


def beside_published(setting: Trained) -> pd.DataFrame:
    """`numbers` beside ours, see `published.beside`; of several learning rates none is theirs."""
    rates = trained(setting).query("num_seeds > 0").assign(rank=float("nan"))
    accuracy = measured(rates if len(rates) == 1 else rates[:0], "accuracy_test", ["rank"])
    drops = measured(ranks(setting), "drop", ["rank"]).astype({"rank": float})
    ours = [accuracy.assign(measure="accuracy"), drops.assign(measure="drop")]
    return beside(numbers(setting), ours, ["measure", "rank"], "published")
