"""The answer in sentences, made from the paired verdicts and nothing else.

A paradigm is called better only where `Comparison.paired` says so; everything else is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from analysis.comparison.compare import Comparison, metrics_of, short_id
from analysis.comparison.paired import POWER
from analysis.groups import paradigm_order
from analysis.statistics import MIN_SEEDS
from analysis.words import MANY, instances, known, listed, made_equal, metric_name, of_draws, span
from study.tasks import CAPTIONS


def question(comparisons: Sequence[Comparison]) -> str:
    """What the comparisons ask."""
    if any(comparison.recorded for comparison in comparisons):
        names = [metric_name(metric) for metric in metrics_of(comparisons)]
        return f"At equal cost of training, which paradigm is better in {' and in '.join(names)}?"
    writes = {comparison.modality is CAPTIONS for comparison in comparisons}
    better = {True: "writes better captions", False: "classifies more accurately"}
    return (
        "At equal cost of training, which attention paradigm looks at the right place, and which "
        f"one {' or '.join(better[each] for each in sorted(writes))}?"
    )


def answer(comparisons: Sequence[Comparison], of_each: bool = True) -> list[str]:
    """Who is better than whom, a sentence a comparison; then how far to trust it.

    Args:
        comparisons: as `analysis.comparison.compare.compare` gives them.
        of_each: with a sentence a comparison.

    Raises:
        ValueError: there is no comparison.
    """
    if not comparisons:
        raise ValueError("there must be at least one comparison, got none")
    paired = pd.concat([comparison.paired for comparison in comparisons])
    if paired.empty:
        return [_nothing_to_compare(comparisons)]
    told = comparisons if of_each else ()
    found = [_sentence(comparison, len(comparisons) > 1) for comparison in told]
    return [text for text in (*found, _undecided(paired)) if text]


def lone_paradigm(comparison: Comparison) -> str:
    """Says that there is no pair of paradigms; empty where there is one."""
    names = list(comparison.summary["paradigm"])
    if len(names) > 1:
        return ""
    having = f"Only {names[0]} has results" if names else "No paradigm has results"
    return f"{having} that can be compared, so there are no paired differences."


def _nothing_to_compare(comparisons: Sequence[Comparison]) -> str:
    names = paradigm_order(name for each in comparisons for name in each.choice["paradigm"])
    who = "No paradigm has an option that can be chosen"
    if names:
        who = f"{listed(names)} share no setting" if names[1:] else f"Only {names[0]} has results"
    return (
        f"{who}, so there is nothing to compare: run at least two paradigms in one setting, with "
        f"{MIN_SEEDS} seeds or more each."
    )


def _sentence(comparison: Comparison, several: bool) -> str:
    """``At equal training compute, in SAIF hybrid is better than hard and soft; in ...``."""
    where = f"{comparison.name} ({short_id(comparison)}), at" if several else "At"
    how = made_equal(comparison.axis, instances(comparison.task))
    if (comparison.choice["select"] == "saif").any():
        how += " and with options chosen by the hidden foreground"
    if lone := lone_paradigm(comparison):
        return f"{where} {how}: {lone[0].lower()}{lone[1:]}"
    paired = comparison.paired
    better = {
        metric_name(metric, task=comparison.task): _better(paired[paired["metric"] == metric])
        for metric in comparison.metrics
    }
    none = "no paradigm is shown to be better than another"
    if not any(better.values()):
        neither = "neither " * (len(better) > 1)
        return f"{where} {how}, {none}, {neither}in {' nor in '.join(better)}."
    clauses = [f"in {name} {texts or none}" for name, texts in better.items()]
    return f"{where} {how}, {'; '.join(clauses)}."


def _better(rows: pd.DataFrame) -> str:
    """``hybrid is better than hard and soft, lvml than hard``; empty where nothing is decided."""
    losers: dict[str, dict[str, str]] = {}
    for row in rows.to_dict("records"):
        order = (str(row["first"]), str(row["second"]))
        if row["verdict"] != "undecided":
            winner, loser = order if row["verdict"] == "better" else order[::-1]
            often = " (learns more often)" * known(row["above"])
            losers.setdefault(winner, {})[loser] = f"{loser}{often}"
    winners = sorted(paradigm_order(losers), key=lambda name: -len(losers[name]))
    texts = [
        f"{name} than {listed([losers[name][other] for other in paradigm_order(losers[name])])}"
        for name in winners
    ]
    return ", ".join(texts).replace(" than", " is better than", 1)


def _undecided(paired: pd.DataFrame) -> str:
    """What deciding the undecided pairs would take."""
    rows = paired[paired["verdict"] == "undecided"]
    by_seeds = rows[rows["seen_seeds"].notna() & ~_limited_by_images(rows)]
    images = rows[_limited_by_images(rows)]
    texts = []
    if len(by_seeds):
        within = by_seeds.loc[by_seeds["seen_seeds"] <= MANY, "seen_seeds"]
        beyond = len(by_seeds) - len(within)
        take = f"{_up_to(within)} seeds" if len(within) else f"more than {MANY:,d} seeds"
        if beyond and len(within):
            take += f", of {beyond} more than {MANY:,d}"
        text = f"differences as large as those seen would take {take}"
        far = by_seeds.loc[by_seeds["needed_seeds"] <= MANY, "needed_seeds"]
        if len(far):
            text += f", those at the far ends of their intervals {_up_to(far)}"
        texts.append(f"{text}, for a power of {100 * POWER:g} %")
    if len(images):
        verb = "is" if len(images) == 1 else "are"
        needed = span(map(math.ceil, images["needed_images"]))
        more = f"{needed} of them"
        if images["num_backgrounds"].notna().any():
            more = f"{needed} in the foreground, and backgrounds in proportion,"
        texts.append(
            f"{len(images)} {verb} limited by the test images, and would take about {more} for "
            "the far end, not more seeds"
        )
    if not texts:
        return ""
    count = "1 verdict is" if len(rows) == 1 else f"{len(rows)} of {len(paired)} verdicts are"
    text = f"{count} undecided, which is not equality: {'; '.join(texts)}."
    names = paired["task"].unique()
    return of_draws(text, names[0]) if len(names) == 1 else text


def _limited_by_images(rows: pd.DataFrame) -> pd.Series:
    """Whether no number of seeds finds even the far end, but some number of images does."""
    return rows["needed_seeds"].map(math.isinf) & (rows["needed_images"] <= MANY)


def _up_to(numbers: pd.Series) -> str:
    most = math.ceil(numbers.max())
    return f"{most:,d}" if len(numbers) == 1 else f"up to {most:,d}"
