"""What is asked and what was found, in plain words, one paragraph a setting."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from analysis.forms import Row, known, listed, percent, points
from analysis.rules.claim import evidence, lost_text
from analysis.rules.statistics import CONFIDENCE, LEVEL, t_interval
from chapters.paths.heads.heads_cell import GREEDY, RANDOM, SIMPLE
from chapters.paths.posterior.posterior_cell import THEORY
from chapters.paths.section import means
from chapters.paths.section import pruned as pruning
from chapters.paths.section.networks import (
    ALL,
    DENOISING,
    GOOD,
    limits,
    line,
    of_network,
    paths_text,
    points_text,
)
from chapters.paths.section.path_tables import would_decide
from chapters.paths.section.pruned import REVERSE
from chapters.paths.section.settings import Setting
from chapters.paths.section.trained import ON_TEST, Trained
from study.terminal import counted

_ORDERS = {
    RANDOM: "random order",
    REVERSE: "its own order reversed",
    GREEDY: "greedy removal by validation accuracy",
}


@functools.singledispatch
def paragraph(setting: Setting) -> str:
    """One paragraph on theory beside sampling; empty without any numbers."""
    networks = means.networks(setting)
    sentences = [
        *_of_theory(line(networks, THEORY).to_dict("records")),
        *_of_limit(limits(networks).set_index("paths")["accuracy"]),
        *_of_sampling(means.agreement(setting)["predictor_error"]),
    ]
    return " ".join(sentences)


@paragraph.register
def of_trained(setting: Trained) -> str:
    """One paragraph on trained networks; empty without any numbers."""
    paired = pruning.paired(setting)
    sentences = [
        *_of_training(setting),
        *_of_width(setting),
        *_of_scores(setting),
        *_of_pruning(paired.set_index("second")),
        *_of_what_is_open(setting, paired),
    ]
    return " ".join(sentences)


def _share(row: Row, measure: str = "accuracy") -> str:
    """``96.4 % (95.1 to 97.7, n=10)``."""
    bounds = _bounds(row[f"{measure}_low"], row[f"{measure}_high"], percent)
    return f"{percent(row[measure])} % ({bounds}n={row['num_seeds']})"


def _bounds(low: float, high: float, form: Callable[[float], str] = points) -> str:
    """``1.0 to 2.4, ``; empty where they are not known."""
    return f"{form(low)} to {form(high)}, " if known(low) and known(high) else ""


def _tenths(share: float) -> str:
    """``11.3``; 0 without a sign."""
    return f"{round(100 * share, 1) + 0.0:.1f}"


# --- theory beside sampling


def _of_theory(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    first, last = rows[0], rows[-1]
    text = f"By theory the network of N={first['network_width']:g} classifies {_share(first)} of "
    text += f"the test sequences rightly{_above_limit(first)}"
    if len(rows) > 1:
        text += f"; that of N={last['network_width']:g} {_share(last)}{_above_limit(last)}"
    yield f"{text}."
    if known(first["interplay"]):
        yield (
            f"Without the terms of pairs of paths, that of N={first['network_width']:g} has "
            f"{percent(first['accuracy_diagonal'])} % ({points_text(-first['interplay'])}, "
            "paired by seed)."
        )


def _above_limit(row: Row) -> str:
    """``, 11.3 points more than the limit (10.4 to 12.2, paired by seed, n=6)``."""
    gain = row["gain"]
    if not known(gain):
        return ""
    low, high = row["gain_low"], row["gain_high"]
    text = "as many as the limit to a tenth of a point"
    if float(percent(gain)) != 0:
        if gain < 0:
            low, high = -high, -low
        text = f"{percent(abs(gain))} points {'more' if gain > 0 else 'less'} than the limit"
    return f", {text} ({_bounds(low, high, _tenths)}paired by seed, n={row['num_seeds']})"


def _of_limit(accuracies: pd.Series) -> Iterator[str]:
    texts = [
        f"{percent(accuracies[paths])} % with {paths_text(paths)}"
        for paths in (ALL, GOOD, DENOISING)
        if paths in accuracies
    ]
    if texts:
        yield f"The limit of infinite width has {listed(texts)}."


def _of_sampling(errors: pd.Series) -> Iterator[str]:
    if known(worst := errors.max()):
        where = " at the worst of the widths" if len(errors) > 1 else ""
        yield (
            "Where networks were sampled, theory's mean predictor differs from the sampled one by "
            f"{percent(worst)} % of it{where}."
        )


# --- trained networks


def _of_training(setting: Trained) -> Iterator[str]:
    trained = pruning.trained(setting)
    for row in trained[trained["num_seeds"] > 0].to_dict("records"):
        rate = f" of learning rate {row['lr']:g}" if len(trained) > 1 else ""
        yield (
            f"The trained network{rate} classifies {_share(row, 'accuracy_test')} of the test "
            f"episodes rightly; chance is {percent(1 / setting.num_classes)} %."
        )


def _of_width(setting: Trained) -> Iterator[str]:
    networks = line(pruning.networks(setting), THEORY)
    for row in of_network(networks, THEORY, setting.reference).to_dict("records"):
        where = f"N={row['network_width']:g}"
        yield f"By theory on its attention, the network of {where} has {_share(row)}."
        if not known(row["gain"]):
            continue
        gains = setting.of(THEORY, row["network_width"])["gain"]
        lost = len(setting.seeds) - len(gains)
        test = evidence(gains, 0, "above", lost)
        bounds = _bounds(row["gain_low"], row["gain_high"])
        said = f"{points(row['gain'])} points ({bounds}n={len(gains)}{lost_text(lost)})"
        if setting.chosen_on_test or not test.p < LEVEL:
            yield f"Whether finite width beats the limit is undecided: {said} at {where}."
        else:
            verb = "beats" if test.so else "is worse than"
            yield f"Finite width {verb} the limit: {said} at {where}."


def _of_scores(setting: Trained) -> Iterator[str]:
    correlations = pruning.scored(setting)["correlation"]
    mean, low, high = t_interval(correlations, CONFIDENCE)
    if known(mean):
        bounds = _bounds(max(low, -1), min(high, 1), "{:+.2f}".format)
        yield (
            "The score of a head and the accuracy lost without it have a rank correlation of "
            f"{mean:+.2f} ({bounds}n={len(correlations)})."
        )


def _of_pruning(paired: pd.DataFrame) -> Iterator[str]:
    """Of the table of `chapters.paths.section.pruned.paired` by the other order."""
    if baselines := _said(paired, (RANDOM, REVERSE)):
        yield (
            "Removing heads by theory's score keeps, on average over the numbers of removed "
            f"heads, {baselines}."
        )
    if simple := _said(paired, SIMPLE):
        worth = _worth(paired["verdict"])
        yield f"Is the score worth more than a simple rule? {worth}: {simple}."
    if best := _said(paired, (GREEDY,)):
        yield f"Theory's order keeps {best}."


def _said(paired: pd.DataFrame, names: Sequence[str]) -> str:
    """``1.2 points more than weight-norm (0.4 to 2.0, n=12) and 0.3 points less than ...``."""
    texts = []
    for name, row in paired.reindex([*names]).iterrows():
        if known(row["difference"]):
            sign, more = (1, "more") if row["difference"] >= 0 else (-1, "less")
            low, high = sorted([sign * row["low"], sign * row["high"]])
            by = percent(sign * row["difference"])
            much = f"{by} points {more} than" if float(by) else "as much as"
            bounds = _bounds(low, high, _tenths)
            order = _ORDERS.get(str(name), name)
            texts.append(f"{much} {order} ({bounds}n={row['num_pairs']:g})")
    return listed(texts)


def _worth(verdicts: pd.Series) -> str:
    """``Yes, than each of them``, ``More than entropy, less than weight-norm``, ``Undecided``."""
    better, worse = (
        [name for name in SIMPLE if verdicts.get(name) == word] for word in ("better", "worse")
    )
    if len(better) == len(SIMPLE):
        return "Yes, than each of them"
    parts = [f"more than {listed(better)}"] if better else []
    parts += [f"less than {listed(worse)}"] if worse else []
    return ", ".join(parts).capitalize() or "Undecided"


def _of_what_is_open(setting: Trained, paired: pd.DataFrame) -> Iterator[str]:
    rest = paired[paired["verdict"] == "undecided"]
    if setting.chosen_on_test:
        if len(rest):
            yield f"Undecided, as {ON_TEST}: theory against {listed([*rest['second']])}."
        return
    for lost, rows in rest.groupby(rest["num_lost"] > 0):
        texts = []
        for row in rows.to_dict("records"):
            needed = would_decide(row)
            texts.append(str(row["second"]) + (f" ({needed} would decide)" * (needed != "-")))
        why = "after Holm's correction, which is not equality"
        if lost:
            networks = counted(rows["num_lost"].max(), "network is", "networks are")
            why = f"as up to {networks} lost to it"
        yield f"Undecided, {why}: theory against {listed(texts)}."
