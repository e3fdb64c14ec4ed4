"""What is asked of one-shot images, and what was found, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pandas as pd

from analysis.attention_paths.networks import THEORY
from analysis.heads.methods import GREEDY, RANDOM, REVERSE, RULES, of_scorer
from analysis.heads.paired import would_decide
from analysis.heads.settings import Setting
from analysis.section.claim import LEVEL, evidence, lost_text
from analysis.section.columns import Row
from analysis.statistics import CONFIDENCE, t_interval
from analysis.words import known, listed, percent, points

QUESTION = (
    "A transformer is trained by gradient descent to tell which of two labelled images a third "
    "one matches, of characters that it has never seen. Then the theory of attention paths is "
    "solved on the attention that it learned, and gives every head a score: how much of the order "
    "parameter U passes through it. Is a network of finite width better than the limit, and does "
    "the score say which heads can go? Heads are removed from the trained network, which is not "
    "trained again, by the score and by simple rules."
)
"""Above all sections."""

_ORDERS = {
    RANDOM: "random order",
    REVERSE: "its own order reversed",
    GREEDY: "greedy removal by validation accuracy",
}


def found(
    setting: Setting,
    trained: pd.DataFrame,
    networks: pd.DataFrame,
    correlations: pd.DataFrame,
    paired: pd.DataFrame,
) -> str:
    """One paragraph on one setting, of the numbers that there are; empty without any.

    Args:
        setting: the setting.
        trained, networks, correlations: as `analysis.heads.means` gives them.
        paired: as `analysis.heads.paired.paired` gives it.
    """
    sentences = [
        *_of_training(setting, trained),
        *_of_width(setting, networks),
        *_of_scores(correlations["correlation"]),
        *_of_pruning({str(row["second"]): row for row in paired.to_dict("records")}),
        *_of_what_is_open(paired),
    ]
    return " ".join(sentences)


def _of_training(setting: Setting, trained: pd.DataFrame) -> Iterator[str]:
    for row in trained[trained["num_seeds"] > 0].to_dict("records"):
        rate = f" of learning rate {row['lr']:g}" if len(trained) > 1 else ""
        yield (
            f"The trained network{rate} classifies {_share(row, 'accuracy_test')} of the test "
            f"episodes rightly; chance is {percent(1 / setting.num_classes)} %."
        )


def _of_width(setting: Setting, networks: pd.DataFrame) -> Iterator[str]:
    rows = of_scorer(networks, THEORY, setting.reference)
    for row in rows[rows["num_seeds"] > 0].to_dict("records"):
        where = f"N={row['network_width']:g}"
        yield (
            f"By theory on its attention, the network of {where} has {_share(row, 'accuracy')}."
        )
        if known(row["gain"]):
            yield _gain(setting, row, where)


def _gain(setting: Setting, row: Row, where: str) -> str:
    gains = setting.solved.of(THEORY, row["network_width"])["gain"]
    lost = len(setting.seeds) - len(gains)
    test = evidence(gains, 0, "above", lost)
    bounds = _bounds(row["gain_low"], row["gain_high"])
    said = f"{points(row['gain'])} points ({bounds}n={len(gains)}{lost_text(lost)})"
    if setting.chosen_on_test or not test.p < LEVEL:
        return f"Whether finite width beats the limit is undecided: {said} at {where}."
    verb = "beats" if test.so else "is worse than"
    return f"Finite width {verb} the limit: {said} at {where}."


def _of_scores(correlations: pd.Series) -> Iterator[str]:
    mean, low, high = t_interval(correlations, CONFIDENCE)
    if known(mean):
        bounds = f"{low:+.2f} to {high:+.2f}, " if known(low) else ""
        yield (
            "The score of a head and the accuracy lost without it have a rank correlation of "
            f"{mean:+.2f} ({bounds}n={len(correlations)})."
        )


def _of_pruning(rows: Mapping[str, Row]) -> Iterator[str]:
    if baselines := _said(rows, (RANDOM, REVERSE)):
        yield (
            "Removing heads by theory's score keeps, on average over the numbers of removed "
            f"heads, {baselines}."
        )
    if simple := _said(rows, RULES):
        yield f"Is the score worth more than a simple rule? {_worth(rows)}: {simple}."
    if best := _said(rows, (GREEDY,)):
        yield f"Theory's order keeps {best}."


def _said(rows: Mapping[str, Row], names: Sequence[str]) -> str:
    """``1.2 points more than weight-norm (0.4 to 2.0, n=12) and 0.3 points less than ...``."""
    texts = []
    for name in names:
        if name in rows and known(rows[name]["difference"]):
            row = rows[name]
            sign = 1 if row["difference"] >= 0 else -1
            low, high = sorted(sign * row[end] for end in ("low", "high"))
            more = "more" if sign > 0 else "less"
            texts.append(
                f"{percent(sign * row['difference'])} points {more} than "
                f"{_ORDERS.get(name, name)} ({_bounds(low, high, percent)}n={row['num_pairs']})"
            )
    return listed(texts)


def _worth(rows: Mapping[str, Row]) -> str:
    """``Yes, than each of them``, ``More than entropy, less than weight-norm``, ``Undecided``."""
    verdicts = {name: rows[name]["verdict"] for name in RULES if name in rows}
    better, worse = (
        [name for name, verdict in verdicts.items() if verdict == word]
        for word in ("better", "worse")
    )
    if len(better) == len(RULES):
        return "Yes, than each of them"
    parts = [f"more than {listed(better)}"] if better else []
    parts += [f"less than {listed(worse)}"] if worse else []
    return ", ".join(parts).capitalize() if parts else "Undecided"


def _of_what_is_open(paired: pd.DataFrame) -> Iterator[str]:
    rest = paired[paired["verdict"] == "undecided"]
    for lost, rows in rest.groupby(rest["num_lost"] > 0):
        texts = []
        for row in rows.to_dict("records"):
            needed = would_decide(row)
            texts.append(str(row["second"]) + (f" ({needed} would decide)" * (needed != "-")))
        why = "after Holm's correction, which is not equality"
        if lost:
            why = f"as up to {rows['num_lost'].max()} networks are lost to it"
        yield f"Undecided, {why}: theory against {listed(texts)}."


def _bounds(low: float, high: float, form: Callable[[float], str] = points) -> str:
    """``1.0 to 2.4, ``; empty where they are not known."""
    return f"{form(low)} to {form(high)}, " if known(low) and known(high) else ""


def _share(row: Row, measure: str) -> str:
    """``83.8 % (82.1 to 85.5, n=12)``."""
    low, high = row[f"{measure}_low"], row[f"{measure}_high"]
    return f"{percent(row[measure])} % ({_bounds(low, high, percent)}n={row['num_seeds']})"
