"""Figures 2 (c to e) and 3 (b to f) of the paper from a setting, and what interplay brings."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from analysis.forms import level, listed, span
from analysis.rules.statistics import CONFIDENCE, interval_columns
from analysis.section.picture import Picture
from chapters.paths.figures.head_scores import pruning_figure, scores_figure
from chapters.paths.figures.path_figures import (
    Series,
    accuracy_figure,
    interplay_figure,
    order_parameter_figure,
    overlap_figure,
)
from chapters.paths.heads.heads_cell import BOUND
from chapters.paths.posterior.posterior_cell import LIMIT, SLICE, THEORY
from chapters.paths.section import means
from chapters.paths.section import pruned as pruning
from chapters.paths.section.beside import SOURCE, published_drops
from chapters.paths.section.networks import (
    limits,
    line,
    network_text,
    of_network,
    path_text,
    scorer_text,
    width_text,
)
from chapters.paths.section.path_tables import evenly, order_text, shown_orders
from chapters.paths.section.settings import LEADING, Setting
from chapters.paths.section.trained import Trained
from study.terminal import counted

LEADING_OF_TRAINED = 50
"""Principal components that figure 3d of the paper shows."""

_INTERVAL = f"{level(CONFIDENCE)} t interval (from n=2)"
_MOST_COLUMNS = 8
"""Matrices side by side, so that a page shows them at a readable size."""


@functools.singledispatch
def pictures(setting: Setting) -> list[Picture]:
    """Accuracy, order parameter, alignment and interplay, as far as there are numbers."""
    networks = means.networks(setting).query("num_seeds > 0")
    if networks.empty:
        return []
    theory = line(networks, THEORY)
    drawn = (
        _accuracy(networks, theory),
        _order_parameter(setting),
        _alignment(setting, min(theory["network_width"], default=math.nan), LEADING),
        _interplay(theory[theory["accuracy_diagonal"].notna()]),
    )
    return [*filter(None, drawn)]


@pictures.register
def of_trained(setting: Trained) -> list[Picture]:
    """Accuracy, order parameter, alignment, scores and pruning, as far as there are numbers."""
    drawn = (
        _accuracy_of_trained(setting),
        _order_parameter_of_trained(setting),
        _alignment(setting, setting.reference, LEADING_OF_TRAINED),
        _scores(setting, pruning.ranks(setting)),
        _pruning(setting, shown_orders(setting)),
    )
    return [*filter(None, drawn)]


def _series(
    name: str, table: pd.DataFrame, measure: str, x: str = "network_width", unit: float = 100
) -> Series:
    """A measure of networks against their width, in per cent, or against another column."""
    values = table[[x, *interval_columns(measure)]].set_axis(
        ["x", "mean", "low", "high"], axis="columns"
    )
    return Series(name, values.assign(**unit * values[["mean", "low", "high"]]))


def _over(counts: Iterable[int], what: str = "seed") -> str:
    """``Mean over n=3 to 6 seeds, bars: 95 % t interval (from n=2)``, from "over"."""
    return f"over n={counted(span(counts), what)}, bars: {_INTERVAL}"


# --- both


def _alignment(setting: Setting, width: float, leading: int) -> Picture | None:
    table = means.overlaps(setting)
    table = table[table["component"] <= leading]
    theory, limit = of_network(table, THEORY, width), of_network(table, LIMIT)
    if theory.empty or limit.empty:
        return None
    prefix, network, unit, inputs, figure = (
        "attention-paths",
        "limit, all paths",
        "seed",
        "inputs",
        "2d",
    )
    if isinstance(setting, Trained):
        prefix, network, unit, inputs, figure = ("heads", "limit", "network", "episodes", "3d")
    counts = [*theory["num_seeds"], *limit["num_seeds"]]
    return Picture(
        name=f"{prefix}-alignment",
        title="Alignment of the kernel with the task",
        caption=(
            f"Overlap (absolute cosine) of the first {leading} principal components of the kernel "
            f"with the labels of the training {inputs}, by falling eigenvalue, at the smallest "
            f"width and in the limit (figure {figure} of the paper). Mean {_over(counts, unit)}."
        ),
        figure=overlap_figure(
            _series(scorer_text(THEORY, width), theory, "overlap", "component", 1),
            _series(network, limit, "overlap", "component", 1),
        ),
    )


# --- theory beside sampling


def _accuracy(networks: pd.DataFrame, theory: pd.DataFrame) -> Picture:
    sampled = line(networks, SLICE)
    ends = limits(networks).to_dict("records")
    return Picture(
        name="attention-paths-accuracy",
        title="Accuracy against width",
        caption=(
            "Accuracy of the mean predictor on the test split against the width N (figure 2c and "
            "e of the paper): theory as a line, sampled networks as points; mean over "
            f"n={counted(span(networks['num_seeds']), 'seed')}, "
            f"each with data and random heads of its own, bars: {_INTERVAL}. Lines across: "
            "the limit of infinite width."
        ),
        figure=accuracy_figure(
            _series("theory", theory, "accuracy") if len(theory) else None,
            _series("sampled", sampled, "accuracy") if len(sampled) else None,
            {network_text(row): 100 * row["accuracy"] for row in ends},
        ),
    )


def _order_parameter(setting: Setting) -> Picture | None:
    """As many widths as have room beside the limit, the ends among them, the others evenly."""
    shown = evenly(setting.widths, _MOST_COLUMNS - 1)
    left_out = len(setting.widths) - len(shown)
    rows = {
        method: [means.mean_order_parameter(setting, method, width) for width in shown]
        for method in (THEORY, SLICE)
    }
    rows = {name: found for name, found in rows.items() if any(u is not None for u in found)}
    if not rows:
        return None
    names = [path_text(name) for name in max(setting.rows["path_names"], key=len)]
    identity = means.mean_order_parameter(setting, LIMIT, np.inf)
    if identity is not None:
        shown.append(np.inf)
        rows = {name: [*u, identity if name == THEORY else None] for name, u in rows.items()}
    said = f" {left_out} widths are left out." if left_out else ""
    return Picture(
        name="attention-paths-order-parameter",
        title="Order parameter",
        caption=(
            "The order parameter U, the overlap of the weights of each pair of paths, by width: "
            "theory beside what was sampled, mean over seeds (figure 2c and e of the paper). In "
            f"the limit it is the identity. Paths, from the top: {listed(names)}. "
            f"The colour is linear up to 1 and logarithmic beyond.{said}"
        ),
        figure=order_parameter_figure(rows, [width_text(width) for width in shown], names),
    )


def _interplay(theory: pd.DataFrame) -> Picture | None:
    if theory.empty:
        return None
    return Picture(
        name="attention-paths-interplay",
        title="What the interplay of paths brings",
        caption=(
            "Accuracy of theory on the test split with the whole order parameter, and with its "
            "off-diagonal set to 0, so that each path is weighed but no pair of them works "
            f"together. Mean {_over(theory['num_seeds'])}; the intervals of the "
            "difference, paired by seed, are in the table."
        ),
        figure=interplay_figure(
            _series("whole U", theory, "accuracy"),
            _series("diagonal of U alone", theory, "accuracy_diagonal"),
        ),
    )


# --- trained networks


def _accuracy_of_trained(setting: Trained) -> Picture | None:
    networks = pruning.networks(setting).query("num_seeds > 0")
    trained = pruning.trained(setting).query("num_seeds > 0")
    theory = line(networks, THEORY)
    if theory.empty:
        return None
    rates = [f" (lr {rate:g})" if len(trained) > 1 else "" for rate in trained["lr"]]
    names = [f"trained network{rate}" for rate in rates]
    limit = line(networks, LIMIT)["accuracy"]
    counts = [*networks["num_seeds"], *trained["num_seeds"]]
    return Picture(
        name="heads-accuracy",
        title="Accuracy against width",
        caption=(
            "Accuracy of the mean predictor on the test split against the width N (figure 3b of "
            "the paper), on the attention of trained networks: theory as a line; mean "
            f"{_over(counts, 'network')}. Lines across: the limit of infinite width, and what "
            "the trained networks themselves reach."
        ),
        figure=accuracy_figure(
            _series("theory", theory, "accuracy"),
            None,
            dict(zip(["limit"], 100 * limit, strict=False)),
            dict(zip(names, 100 * trained["accuracy_test"], strict=True)),
        ),
    )


def _order_parameter_of_trained(setting: Trained) -> Picture | None:
    """Theory at the reference width."""
    solved = pruning.by_score(setting)
    matrix = means.mean_order_parameter(solved, THEORY, setting.reference)
    if matrix is None:
        return None
    name = scorer_text(THEORY, setting.reference)
    names = [path_text(name) for name in solved.rows["path_names"].iloc[0]]
    networks = counted(len(solved.of(THEORY, setting.reference)), "network")
    return Picture(
        name="heads-order-parameter",
        title="Order parameter",
        caption=(
            "The order parameter U, the overlap of the weights of each pair of paths: "
            f"{name}, mean over {networks} (figure 3c of the paper). In the limit it is the "
            "identity. A path is named by its head in each layer; the heads of a layer are "
            "exchangeable between networks, so in each network 1 is that of the highest score by "
            f"theory. Paths: {names[0]} at the top to {names[-1]}. The colour is linear up to 1 "
            "and logarithmic beyond."
        ),
        figure=order_parameter_figure({"": [matrix]}, [name], names),
    )


def _scores(setting: Trained, ranks: pd.DataFrame) -> Picture | None:
    if ranks.empty:
        return None
    published = [100 * drop for drop in published_drops(setting)]
    said = f" Diamonds: {SOURCE[0].lower()}{SOURCE[1:]}" if published else ""
    name = scorer_text(THEORY, setting.reference)
    return Picture(
        name="heads-scores",
        title="Scores of heads, and what is lost without each",
        caption=(
            f"Above, the score of a head by {name}; below, the accuracy that the trained network "
            "loses on the test split without that head alone (figure 3e of the paper). Heads of "
            "two networks are exchangeable, so they are shown by the rank of their score in their "
            f"network. Mean {_over(ranks['num_seeds'], 'network')}.{said}"
        ),
        figure=scores_figure(
            _series(f"score ({name})", ranks, "score", "rank", 1),
            _series("lost without the head", ranks, "drop", "rank"),
            published,
        ),
    )


def _pruning(setting: Trained, shown: pd.DataFrame) -> Picture | None:
    if shown.empty:
        return None
    lines = {}
    for key, rows in shown.groupby(pruning.ORDER, sort=False):
        method, *_, order = map(str, key)
        name = order if order == pruning.REVERSE else method
        lines[name] = _series(order_text(*key), rows, "accuracy", "removed")
    bound = lines.pop(BOUND, None)
    best = " Dashed at the top: the best of all sets of each size, chosen on this split itself, "
    best += "which no order can beat."
    return Picture(
        name="heads-pruning",
        title="Accuracy against removed heads",
        caption=(
            "Accuracy of the trained network on the test split without the heads that each score "
            "ranks lowest, not trained again; every layer keeps a head (figure 3f of the paper). "
            f"Mean {_over(shown['num_seeds'], 'network')}.{best if bound else ''}"
        ),
        figure=pruning_figure(lines, bound, 100 / setting.num_classes),
    )
