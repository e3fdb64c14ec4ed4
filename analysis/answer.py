"""The answer in three sentences, made from the paired verdicts and nothing else.

A paradigm is called better only where `Comparison.paired` says so; everything else is called
undecided, with the number of seeds that would decide it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.compare import Comparison
from analysis.groups import paradigm_order
from analysis.paired import MIN_SEEDS

QUESTION = (
    "At equal cost of training, which attention paradigm looks at the right place, and which one "
    "classifies more accurately?"
)

_MANY_SEEDS = 10_000
_NAMED = 3  # undecided pairs, at most, whose seeds are named one by one

_AXES = {
    "flops": "equal training compute",
    "seconds": "equal training time",
    "mosaics": "equal numbers of training mosaics",
}
_MEASURES = {
    "saif": "SAIF (the share of instances classified rightly and confidently while attention "
    "rests confidently on the right place)",
    "accuracy": "accuracy",
}
_SHORT = {"saif": "SAIF", "accuracy": "accuracy"}


@dataclass(frozen=True)
class _Pair:
    """One paired verdict, turned so that `winner` is better wherever it is decided.

    Attributes:
        setting: task and m, of the comparison.
        metric: saif or accuracy.
        winner, loser: paradigms; first and second of the table where undecided.
        decided: whether the winner is one.
        size: how much better, a fraction > 0, with its interval `low` to `high`.
        confidence: of the interval.
        n: common seeds.
        needed: seeds that would decide it; infinite where no difference is seen, NaN: not known.
    """

    setting: str
    metric: str
    winner: str
    loser: str
    decided: bool
    size: float
    low: float
    high: float
    confidence: float
    n: int
    needed: float

    @property
    def names(self) -> str:
        return f"{self.winner} against {self.loser}"


def answer(comparisons: Sequence[Comparison]) -> list[str]:
    """Three plain sentences: who looks at the right place, who is accurate, how sure that is.

    For one comparison they give the differences in points (hundredths) with their intervals; for
    several they count in how many settings a paradigm is better.

    Args:
        comparisons: as `analysis.compare.compare` gives them.

    Returns:
        Three sentences, on SAIF, on accuracy and on what is undecided.

    Raises:
        ValueError: there is no comparison.
    """
    if not comparisons:
        raise ValueError("there must be at least one comparison, got none")
    settings = _settings(comparisons)
    pairs = [
        _pair(row, setting)
        for comparison, setting in zip(comparisons, settings, strict=True)
        for row in comparison.paired.to_dict("records")
    ]
    if not pairs:
        return _nothing_to_compare(comparisons)
    several = len(comparisons) > 1
    how = _how(comparisons)
    if several:
        how += f" in {len(comparisons)} settings"
    verdicts = _counted if several else _named
    return [
        f"At {how}, measured by {_MEASURES['saif']}, {verdicts(_of(pairs, 'saif'))}.",
        f"Measured by {_MEASURES['accuracy']}, {verdicts(_of(pairs, 'accuracy'))}.",
        f"{_certainty(pairs, several)}.",
    ]


def _settings(comparisons: Sequence[Comparison]) -> list[str]:
    """``digits m=10``, and the beginning of the comparison's id where that is not enough."""
    names = [f"{comparison.task} m={comparison.m}" for comparison in comparisons]
    return [
        f"{name} [{str(comparison.cells['comparison_id'].iloc[0])[:8]}]"
        if names.count(name) > 1
        else name
        for name, comparison in zip(names, comparisons, strict=True)
    ]


def _how(comparisons: Sequence[Comparison]) -> str:
    """What was made equal, and that the options were chosen by what a user has not."""
    axes = {comparison.axis for comparison in comparisons}
    text = " or ".join(_AXES[axis] for axis in _AXES if axis in axes)
    if any((comparison.choice["select"] == "saif").any() for comparison in comparisons):
        text += " and with options chosen by the hidden foreground"
    return text


def _pair(row: dict[Any, Any], setting: str) -> _Pair:
    winner, loser = str(row["first"]), str(row["second"])
    size, low, high = (float(row[name]) for name in ("difference", "low", "high"))
    if row["verdict"] == "worse":
        winner, loser = loser, winner
        size, low, high = -size, -high, -low
    return _Pair(
        setting=setting,
        metric=str(row["metric"]),
        winner=winner,
        loser=loser,
        decided=row["verdict"] in ("better", "worse"),
        size=size,
        low=low,
        high=high,
        confidence=float(row["confidence"]),
        n=int(row["num_pairs"]),
        needed=float(row["seeds_to_decide"]),
    )


def _of(pairs: Iterable[_Pair], metric: str) -> list[_Pair]:
    return [pair for pair in pairs if pair.metric == metric]


def _nothing_to_compare(comparisons: Sequence[Comparison]) -> list[str]:
    """Without a pair of paradigms in any comparison."""
    names = paradigm_order(
        name for comparison in comparisons for name in comparison.choice["paradigm"]
    )
    if not names:
        who = "No paradigm has an option that can be chosen"
    elif len(names) == 1:
        who = f"Only {names[0]} was run to a result"
    else:
        who = f"No two of {_listed(names)} share a setting"
    how = _how(comparisons)
    return [
        f"{who}, so there is nothing to compare by SAIF at {how}.",
        "For the same reason there is nothing to compare by accuracy.",
        f"So no verdict is possible: run at least two paradigms in one setting, with "
        f"{MIN_SEEDS} seeds or more each.",
    ]


# --- one comparison: differences


def _named(pairs: list[_Pair]) -> str:
    """``lvml is better than soft by 8.2 points (...) and than hard by ...; ... undecided``."""
    if not pairs:
        return "nothing was measured"
    decided = [pair for pair in pairs if pair.decided]
    open_ = [pair.names for pair in pairs if not pair.decided]
    if not decided:
        if len(open_) == 1:
            return f"{open_[0]} is undecided"
        return (
            f"no paradigm is shown to be better than another: all {len(open_)} pairs are undecided"
        )
    clauses: list[str] = []
    for winner in _winners(decided):
        won = [pair for pair in decided if pair.winner == winner]
        sizes = [
            f"than {pair.loser} by {_points(pair, first=not clauses and pair is won[0])}"
            for pair in won
        ]
        clauses.append(f"{winner} is better {_listed(sizes)}")
    if open_:
        clauses.append(f"{_listed(open_)} {'is' if len(open_) == 1 else 'are'} undecided")
    return "; ".join(clauses)


def _winners(decided: Iterable[_Pair]) -> list[str]:
    """The one with most verdicts first."""
    names = [pair.winner for pair in decided]
    return sorted(paradigm_order(names), key=lambda name: -names.count(name))


def _points(pair: _Pair, first: bool) -> str:
    level = f"{100 * pair.confidence:g} % interval " if first else ""
    return f"{100 * pair.size:.1f} points ({level}{100 * pair.low:.1f} to {100 * pair.high:.1f})"


# --- several comparisons: counts


def _counted(pairs: list[_Pair]) -> str:
    """``lvml is better than soft in 3 of 4 settings (...) and undecided in 1 (...); ...``."""
    if not pairs:
        return "nothing was measured"
    clauses, open_ = [], []
    for names in _in_order(pairs):
        these = [pair for pair in pairs if {pair.winner, pair.loser} == names]
        decided = [pair for pair in these if pair.decided]
        if not decided:
            open_.append(f"{these[0].names} (in {_how_many(these, these)})")
            continue
        winner = _winners(decided)[0]
        loser = next(iter(names - {winner}))
        outcomes = {
            f"better than {loser}": [pair for pair in decided if pair.winner == winner],
            "worse": [pair for pair in decided if pair.winner == loser],
            "undecided": [pair for pair in these if not pair.decided],
        }
        texts = [
            f"{name} in {_how_many(found, these)}" for name, found in outcomes.items() if found
        ]
        clauses.append(f"{winner} is {_listed(texts)}")
    verb = "is" if len(open_) == 1 else "are"
    if clauses:
        return "; ".join([*clauses, *([f"{_listed(open_)} {verb} undecided"] if open_ else [])])
    if len(open_) == 1:
        return f"{open_[0]} is undecided"
    return (
        "no paradigm is shown to be better than another in any setting: all "
        f"{len(open_)} pairs of paradigms are undecided"
    )


def _in_order(pairs: Iterable[_Pair]) -> list[set[str]]:
    """Each pair of paradigms once, in the order in which the table has them."""
    found: list[set[str]] = []
    for pair in pairs:
        names = {pair.winner, pair.loser}
        if names not in found:
            found.append(names)
    return found


def _how_many(found: Sequence[_Pair], of: Sequence[_Pair]) -> str:
    """``3 of 4 (digits m=5, ...)``, ``all 4``, or the one setting there is."""
    if len(of) == 1:
        return f"the one setting that has both, {of[0].setting}"
    if len(found) == len(of):
        return "both settings" if len(of) == 2 else f"all {len(of)}"
    return f"{len(found)} of {len(of)} ({_listed([pair.setting for pair in found])})"


# --- how sure


def _certainty(pairs: list[_Pair], several: bool) -> str:
    """How many seeds, what is undecided, and how many seeds would decide it."""
    seeds = [pair.n for pair in pairs]
    n = f"n={min(seeds)}" + (f" to {max(seeds)}" if max(seeds) > min(seeds) else "")
    open_ = [pair for pair in pairs if not pair.decided]
    if max(seeds) == 0:
        return (
            "Nothing is decided, because no two paradigms have a seed in common: run at least "
            f"{MIN_SEEDS} seeds, the same for each paradigm"
        )
    if max(seeds) == 1:
        return (
            "Nothing is decided, because one seed (n=1) has no interval: run at least "
            f"{MIN_SEEDS} seeds a paradigm"
        )
    need = _need(open_, several)
    if max(seeds) < MIN_SEEDS:
        text = f"Nothing is decided, because fewer than {MIN_SEEDS} seeds ({n}) decide nothing"
        return f"{text}; {need}" if need else text
    text = f"The verdicts rest on {n} common seeds"
    if not open_:
        return f"{text}, and {_all(len(pairs))} decided"
    if len(open_) == len(pairs):
        text += f"; {_all(len(pairs))} undecided"
    else:
        text += f"; {len(open_)} of {len(pairs)} {'is' if len(open_) == 1 else 'are'} undecided"
    return f"{text}: {need}" if need else text


def _need(open_: list[_Pair], several: bool) -> str:
    """How many seeds would decide the undecided pairs, those that need fewest first."""

    def name(pair: _Pair) -> str:
        text = f"{pair.names} in {_SHORT.get(pair.metric, pair.metric)}"
        return f"{text}, {pair.setting}" if several else text

    known = sorted(
        ((_whole(pair.needed), pair) for pair in open_ if math.isfinite(pair.needed)),
        key=lambda each: each[0],
    )
    more = [(seeds, pair) for seeds, pair in known if seeds > pair.n]
    enough = [pair for seeds, pair in known if seeds <= pair.n]
    texts = []
    if more and len(more) <= _NAMED:
        each = [f"{_about(seeds)} seeds for {name(pair)}" for seeds, pair in more]
        texts.append(f"it would take {_listed(each)}")
    elif more:
        (fewest, easy), (most, difficult) = more[0], more[-1]
        texts.append(
            f"it would take from {_about(fewest)} seeds ({name(easy)}) to {_about(most)} "
            f"({name(difficult)})"
        )
    if texts:
        texts[0] += ", at 80 % power of the t test for the differences seen"
    for count, what in (
        (len(enough), "not for want of seeds alone, see the reasons beside the verdicts"),
        (sum(math.isinf(pair.needed) for pair in open_), "because no difference is seen at all"),
        (sum(math.isnan(pair.needed) for pair in open_), "because a number is not known"),
    ):
        if count:
            texts.append(f"{count} {'is' if count == 1 else 'are'} undecided {what}")
    return "; ".join(texts)


def _all(count: int) -> str:
    return {1: "the one there is is", 2: "both are"}.get(count, f"all {count} are")


def _whole(seeds: float) -> float:
    """A whole number of seeds, never fewer than decide anything."""
    return max(MIN_SEEDS, math.ceil(seeds)) if math.isfinite(seeds) else seeds


def _about(seeds: float) -> str:
    if seeds > _MANY_SEEDS:
        return f"more than {_MANY_SEEDS:,d}"
    return f"about {seeds:,.0f}"


# --- words


def _listed(texts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
