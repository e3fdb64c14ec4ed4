"""The answer in three sentences, made from the paired verdicts and nothing else.

A paradigm is called better only where `Comparison.paired` says so; everything else is called
undecided, with the number of seeds that would decide it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.comparison.compare import Comparison
from analysis.groups import AXES, paradigm_order
from analysis.statistics import MIN_SEEDS
from analysis.words import (
    MANY_SEEDS,
    instances,
    listed,
    made_equal,
    metric_name,
    score_name,
    span,
)
from study.tasks import CAPTIONS

_UNUSABLE = re.compile("no option of (.+) can be chosen")
_NAMED = 3  # undecided pairs, at most, whose seeds are named one by one


@dataclass(frozen=True)
class _Pair:
    """One paired verdict, turned so that `winner` is better wherever it is decided.

    Attributes:
        setting: name of the comparison.
        metric: saif or accuracy.
        metric_name: the same for people.
        winner, loser: paradigms; first and second of the table where undecided.
        decided: whether the winner is one.
        size: how much better, a fraction > 0, with its interval `low` to `high`.
        confidence: of the interval.
        n: common seeds.
        needed: seeds that would decide it; infinite where no difference is seen, NaN: unknown.
        reason: why it is undecided, else empty.
    """

    setting: str
    metric: str
    metric_name: str
    winner: str
    loser: str
    decided: bool
    size: float
    low: float
    high: float
    confidence: float
    n: int
    needed: float
    reason: str

    @property
    def usable(self) -> bool:
        """Whether both paradigms have an option that can be chosen."""
        return not _UNUSABLE.fullmatch(self.reason)

    @property
    def names(self) -> str:
        return f"{self.winner} against {self.loser}"


def question(comparisons: Sequence[Comparison]) -> str:
    """What the comparisons ask."""
    writes = {comparison.modality is CAPTIONS for comparison in comparisons}
    better = {True: "writes better captions", False: "classifies more accurately"}
    return (
        "At equal cost of training, which attention paradigm looks at the right place, and which "
        f"one {' or '.join(better[each] for each in sorted(writes))}?"
    )


def answer(comparisons: Sequence[Comparison]) -> list[str]:
    """Three plain sentences: who looks at the right place, who is accurate, how sure that is.

    For one comparison they give the differences in points (hundredths) with their intervals; for
    several they count in how many settings a paradigm is better.

    Args:
        comparisons: as `analysis.comparison.compare.compare` gives them.

    Returns:
        Three sentences, on SAIF, on accuracy (of captions Bleu-4) and on what is undecided.

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
        f"At {how}, measured by {_saif(comparisons)}, {verdicts(_of(pairs, 'saif'))}.",
        f"Measured by {_score(comparisons)}, {verdicts(_of(pairs, 'accuracy'))}.",
        f"{_certainty(pairs, several)}.",
    ]


def _saif(comparisons: Sequence[Comparison]) -> str:
    what = "instances classified rightly and confidently"
    if all(comparison.modality is CAPTIONS for comparison in comparisons):
        what = f"{CAPTIONS.counted} that a caption names confidently"
    return f"SAIF (the share of {what} while attention rests confidently on the right place)"


def _score(comparisons: Sequence[Comparison]) -> str:
    return score_name(*(comparison.task for comparison in comparisons))


def _settings(comparisons: Sequence[Comparison]) -> list[str]:
    """``digits m=10``, and the beginning of the comparison's id where that is not enough."""
    names = [comparison.name for comparison in comparisons]
    return [
        f"{name} [{str(comparison.cells['comparison_id'].iloc[0])[:8]}]"
        if names.count(name) > 1
        else name
        for name, comparison in zip(names, comparisons, strict=True)
    ]


def _how(comparisons: Sequence[Comparison]) -> str:
    """What was made equal, and whether options were chosen by data that a user lacks."""
    axes = {comparison.axis for comparison in comparisons}
    noun = instances(*(comparison.task for comparison in comparisons))
    text = " or ".join(made_equal(axis, noun) for axis in AXES if axis in axes)
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
        metric_name=metric_name(str(row["metric"]), task=str(row["task"])),
        winner=winner,
        loser=loser,
        decided=row["verdict"] in ("better", "worse"),
        size=size,
        low=low,
        high=high,
        confidence=float(row["confidence"]),
        n=int(row["num_pairs"]),
        needed=float(row["seeds_to_decide"]),
        reason=str(row["reason"]),
    )


def _of(pairs: Iterable[_Pair], metric: str) -> list[_Pair]:
    return [pair for pair in pairs if pair.metric == metric]


def _nothing_to_compare(comparisons: Sequence[Comparison]) -> list[str]:
    """The answer where no comparison has a pair of paradigms."""
    names = paradigm_order(
        name for comparison in comparisons for name in comparison.choice["paradigm"]
    )
    if not names:
        who = "No paradigm has an option that can be chosen"
    elif len(names) == 1:
        who = f"Only {names[0]} was run to a result"
    else:
        who = f"No two of {listed(names)} share a setting"
    how = _how(comparisons)
    return [
        f"{who}, so there is nothing to compare by SAIF at {how}.",
        f"For the same reason there is nothing to compare by {_score(comparisons)}.",
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
        clauses.append(f"{winner} is better {listed(sizes)}")
    if open_:
        clauses.append(f"{listed(open_)} {'is' if len(open_) == 1 else 'are'} undecided")
    return "; ".join(clauses)


def _winners(decided: Iterable[_Pair]) -> list[str]:
    """The winners, the one with most verdicts first."""
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
        clauses.append(f"{winner} is {listed(texts)}")
    verb = "is" if len(open_) == 1 else "are"
    if clauses:
        return "; ".join([*clauses, *([f"{listed(open_)} {verb} undecided"] if open_ else [])])
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
    return f"{len(found)} of {len(of)} ({listed([pair.setting for pair in found])})"


# --- how sure


def _certainty(pairs: list[_Pair], several: bool) -> str:
    """How many seeds, what is undecided, and how many seeds would decide it."""
    usable = [pair for pair in pairs if pair.usable]
    if not usable:
        return f"Nothing is decided, because {_unusable(pairs)}"
    seeds = [pair.n for pair in usable]
    n = f"n={span(seeds)}"
    open_ = [pair for pair in pairs if not pair.decided]
    if max(seeds) == 0:
        reasons = [_unusable(pairs)] if len(usable) < len(pairs) else []
        others = " others" if reasons else ""
        why = listed([*reasons, f"no two{others or ' paradigms'} have a seed in common"])
        return (
            f"Nothing is decided, because {why}: run at least {MIN_SEEDS} seeds, the same for "
            "each paradigm"
        )
    if max(seeds) == 1:
        return (
            f"Nothing is decided, because one seed ({n}) has no interval: run at least "
            f"{MIN_SEEDS} seeds a paradigm"
        )
    need, unclear = _need(open_, several)
    if max(seeds) < MIN_SEEDS:
        text = f"Nothing is decided, because fewer than {MIN_SEEDS} seeds ({n}) decide nothing"
        return "; ".join([text, *need, *_counts(unclear)])
    text = f"The verdicts rest on {n} common seeds"
    if not open_:
        return f"{text}, and {_all(len(pairs))} decided"
    if len(open_) == len(pairs):
        text += f"; {_all(len(pairs))} undecided"
    else:
        text += f"; {len(open_)} of {len(pairs)} {'is' if len(open_) == 1 else 'are'} undecided"
    if len(unclear) == 1 and not need:
        return f"{text} {next(iter(unclear))}"
    return f"{text}: {'; '.join([*need, *_counts(unclear)])}"


def _counts(unclear: Mapping[str, int]) -> list[str]:
    """``2 are undecided because ...`` for each reason."""
    return [
        f"{count} {'is' if count == 1 else 'are'} undecided {why}"
        for why, count in unclear.items()
    ]


def _need(open_: list[_Pair], several: bool) -> tuple[list[str], dict[str, int]]:
    """How many seeds would decide the undecided pairs, those that need fewest first.

    Returns:
        A clause, or none, on pairs that more seeds would decide; of the others, why they are
        undecided, and how many.
    """

    def name(pair: _Pair) -> str:
        text = f"{pair.names} in {pair.metric_name}"
        return f"{text}, {pair.setting}" if several else text

    known = sorted(
        ((_whole(pair.needed), pair) for pair in open_ if math.isfinite(pair.needed)),
        key=lambda each: each[0],
    )
    more = [(seeds, pair) for seeds, pair in known if seeds > pair.n]
    texts = []
    if more and len(more) <= _NAMED:
        each = [f"{_about(seeds)} seeds for {name(pair)}" for seeds, pair in more]
        texts.append(f"it would take {listed(each)}")
    elif more:
        (fewest, easy), (most, difficult) = more[0], more[-1]
        texts.append(
            f"it would take from {_about(fewest)} seeds ({name(easy)}) to {_about(most)} "
            f"({name(difficult)})"
        )
    if texts:
        texts[0] += ", at 80 % power of the t test for the differences seen"
    rest = [pair for pair in open_ if not _whole(pair.needed) > pair.n or math.isinf(pair.needed)]
    reasons = [_why(pair) if pair.usable else f"because {_unusable(open_)}" for pair in rest]
    return texts, {why: reasons.count(why) for why in dict.fromkeys(reasons)}


def _why(pair: _Pair) -> str:
    """Why a pair is undecided, where no number of seeds is known to decide it."""
    if math.isinf(pair.needed):
        return "because no difference is seen at all"
    if not math.isnan(pair.needed):
        return "not for want of seeds alone, see the reasons beside the verdicts"
    few = {0: "there is no common seed", 1: "one seed is too few"}
    return f"because {few.get(pair.n, pair.reason)}"


def _unusable(pairs: Iterable[_Pair]) -> str:
    """``no option of soft and lvml can be chosen``, whichever pairs that concerns."""
    found = [_UNUSABLE.fullmatch(pair.reason) for pair in pairs]
    names = {name for match in found if match for name in match[1].split(" and ")}
    return f"no option of {listed(paradigm_order(names))} can be chosen"


def _all(count: int) -> str:
    return {1: "the one there is is", 2: "both are"}.get(count, f"all {count} are")


def _whole(seeds: float) -> float:
    """A whole number of seeds, never fewer than any decision needs."""
    return max(MIN_SEEDS, math.ceil(seeds)) if math.isfinite(seeds) else seeds


def _about(seeds: float) -> str:
    if seeds > MANY_SEEDS:
        return f"more than {MANY_SEEDS:,d}"
    return f"about {seeds:,.0f}"
