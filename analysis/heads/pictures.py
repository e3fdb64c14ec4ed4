"""Figure 3 of the paper (b to f) from a setting."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis.attention_paths.means import mean_order_parameter, overlaps
from analysis.attention_paths.networks import LIMIT, THEORY
from analysis.attention_paths.pictures import series_of
from analysis.figures.attention_paths import (
    Series,
    accuracy_figure,
    order_parameter_figure,
    overlap_figure,
)
from analysis.figures.heads import pruning_figure, scores_figure
from analysis.heads.means import REMOVAL, by_score
from analysis.heads.methods import BOUND, of_scorer, scorer_text
from analysis.heads.published import SOURCE, drops
from analysis.heads.settings import Setting
from analysis.heads.tables import at_reference, order_text, shown_orders
from analysis.section.picture import Picture
from analysis.statistics import CONFIDENCE
from analysis.words import level, span
from study.terminal import counted

LEADING = 50
"""Principal components that figure 3d of the paper shows."""

_INTERVAL = f"{level(CONFIDENCE)} t interval (from n=2)"


def pictures(
    setting: Setting,
    trained: pd.DataFrame,
    networks: pd.DataFrame,
    pruning: pd.DataFrame,
    ranks: pd.DataFrame,
) -> list[Picture]:
    """Accuracy, order parameter, alignment, scores and pruning, as far as there are numbers.

    Args:
        setting: the setting.
        trained, networks, pruning, ranks: as `analysis.heads.means` gives them.
    """
    drawn = (
        _accuracy(trained, networks),
        _order_parameter(setting),
        _alignment(setting),
        _scores(setting, ranks),
        _pruning(setting, pruning),
    )
    return [picture for picture in drawn if picture]


def _accuracy(trained: pd.DataFrame, networks: pd.DataFrame) -> Picture | None:
    there = networks[networks["num_seeds"] > 0]
    theory = there[there["method"] == THEORY]
    if theory.empty:
        return None
    limit = there.loc[there["method"] == LIMIT, "accuracy"]
    known = trained[trained["num_seeds"] > 0]
    rates = [f" (lr {rate:g})" if len(known) > 1 else "" for rate in known["lr"]]
    levels = {
        f"trained network{rate}": 100 * accuracy
        for rate, accuracy in zip(rates, known["accuracy_test"], strict=True)
    }
    seeds = counted(span([*there["num_seeds"], *known["num_seeds"]]), "network")
    return Picture(
        name="heads-accuracy",
        title="Accuracy against width",
        caption=(
            "Accuracy of the mean predictor on the test split against the width N (figure 3b of "
            "the paper), on the attention of trained networks: theory as a line; mean over "
            f"n={seeds}, bars: {_INTERVAL}. Lines across: the limit of infinite width, and what "
            "the trained networks themselves reach."
        ),
        figure=accuracy_figure(
            series_of("theory", theory, "accuracy"),
            None,
            {scorer_text(LIMIT): 100 * accuracy for accuracy in limit},
            levels,
        ),
    )


def _order_parameter(setting: Setting) -> Picture | None:
    """Theory at the reference width."""
    solved = by_score(setting)
    matrix = mean_order_parameter(solved, THEORY, setting.reference)
    if matrix is None:
        return None
    name = scorer_text(THEORY, setting.reference)
    names = [_path(name) for name in solved.rows["path_names"].iloc[0]]
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
        figure=order_parameter_figure(
            {"": [matrix]},
            [name],
            names,
        ),
    )


def _alignment(setting: Setting) -> Picture | None:
    table = overlaps(setting.solved)
    table = table[table["component"] <= LEADING]
    theory, limit = of_scorer(table, THEORY, setting.reference), of_scorer(table, LIMIT)
    if theory.empty or limit.empty:
        return None
    named = {scorer_text(THEORY, setting.reference): theory, "limit": limit}
    seeds = counted(span([*theory["num_seeds"], *limit["num_seeds"]]), "network")
    mine, other = (
        series_of(name, rows, "overlap", x="component", unit=1) for name, rows in named.items()
    )
    return Picture(
        name="heads-alignment",
        title="Alignment of the kernel with the task",
        caption=(
            f"Overlap (absolute cosine) of the first {LEADING} principal components of the kernel "
            "with the labels of the training episodes, by falling eigenvalue, at the smallest "
            f"width and in the limit (figure 3d of the paper). Mean over n={seeds}, "
            f"bars: {_INTERVAL}."
        ),
        figure=overlap_figure(mine, other),
    )


def _scores(setting: Setting, ranks: pd.DataFrame) -> Picture | None:
    if ranks.empty:
        return None
    published = [100 * drop for drop in drops(setting)]
    seeds = counted(span(ranks["num_seeds"]), "network")
    said = f" Diamonds: {SOURCE[0].lower()}{SOURCE[1:]}" if published else ""
    name = scorer_text(THEORY, setting.reference)
    return Picture(
        name="heads-scores",
        title="Scores of heads, and what is lost without each",
        caption=(
            f"Above, the score of a head by {name}; below, the accuracy that the trained network "
            "loses on the test split without that head alone (figure 3e of the paper). Heads of "
            "two networks are exchangeable, so they are shown by the rank of their score in their "
            f"network. Mean over n={seeds}, bars: {_INTERVAL}.{said}"
        ),
        figure=scores_figure(
            series_of(f"score ({name})", ranks, "score", x="rank", unit=1),
            series_of("lost without the head", ranks, "drop", x="rank"),
            published,
        ),
    )


def _pruning(setting: Setting, pruning: pd.DataFrame) -> Picture | None:
    shown = shown_orders(at_reference(pruning, setting.reference))
    if shown.empty:
        return None
    lines = dict(_lines(shown))
    seeds = counted(span(shown["num_seeds"]), "network")
    bound = lines.pop((BOUND, REMOVAL), None)
    theory = [lines[key] for key in lines if key[0] == THEORY]
    best = " Dashed at the top: the best of all sets of each size, chosen on this split itself, "
    best += "which no order can beat."
    return Picture(
        name="heads-pruning",
        title="Accuracy against removed heads",
        caption=(
            "Accuracy of the trained network on the test split without the heads that each score "
            "ranks lowest, not trained again; every layer keeps a head (figure 3f of the paper). "
            f"Mean over n={seeds}, bars: {_INTERVAL}.{best if bound else ''}"
        ),
        figure=pruning_figure(
            theory,
            {method: series for (method, _), series in lines.items() if method != THEORY},
            bound,
            100 / setting.num_classes,
        ),
    )


def _lines(shown: pd.DataFrame) -> Iterator[tuple[tuple[str, str], Series]]:
    """(method, order) -> its line."""
    keys = ["method", "network_width", "order"]
    for (method, width, order), rows in shown.groupby(keys, sort=False):
        name = order_text(method, width, order)
        yield (str(method), str(order)), series_of(name, rows, "accuracy", x="removed")


def _path(name: str) -> str:
    """``1 → 3`` of ``1,3``."""
    return " → ".join(part.strip() for part in name.split(","))
