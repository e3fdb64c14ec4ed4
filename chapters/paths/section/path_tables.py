"""Tables of attention paths and of trained networks for people, declared column by column."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.forms import (
    interval,
    interval_of_pair,
    known,
    level,
    number,
    percent,
    points,
    three_decimals,
)
from analysis.page.sentences import pair_notes
from analysis.page.tables import p_value
from analysis.page.tables import would_decide as seeds_that_would_decide
from analysis.rules.statistics import CONFIDENCE
from analysis.section.blocks import Table
from analysis.section.columns import Column, Row, by_columns, measured, plain
from chapters.paths.heads.heads_cell import SOLVED
from chapters.paths.posterior.posterior_cell import LIMIT, THEORY
from chapters.paths.section import beside, means
from chapters.paths.section import pruned as pruning
from chapters.paths.section.networks import ALL, network_text, r_hat_text, scorer_text
from chapters.paths.section.pruned import ORDER, REMOVAL, REVERSE
from chapters.paths.section.settings import Setting
from chapters.paths.section.trained import Trained

_BOUNDS = f"{level(CONFIDENCE)} interval"
_SPACIOUS = {
    _BOUNDS, "sampling error %", "largest difference of U", "effective draws",
    "accuracy %, diagonal of U", "Holm p", "stopped", "loss",
}  # fmt: skip
"""Columns for which a terminal has no room."""

_MOST_COUNTS = 9
"""Numbers of removed heads side by side, so that a page has room for their intervals."""

_N = plain("n", "num_seeds")
_MEASURES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "accuracy": ("accuracy %", percent),
    "accuracy_diagonal": ("accuracy %, diagonal of U", percent),
    "largest_overlap": ("largest overlap", three_decimals),
}


class Listing(NamedTuple):
    """A table of the report: its heading, what its columns are, the stem of its file, notes on its
    numbers, whether some of them are of others, so that `words` name the source, and what a
    terminal shows instead.
    """

    heading: str
    words: str
    stem: str
    table: Table
    notes: Sequence[str] = ()
    of_others: bool = False
    brief: Table | None = None

    def in_terminal(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows without the columns that a terminal has no room for."""
        table = self.brief or self.table
        header, rows = table.header, table.rows
        kept = [i for i, name in enumerate(header) if name not in _SPACIOUS]
        return [header[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _listing(
    heading: str,
    words: str,
    stem: str,
    rows: pd.DataFrame,
    columns: Sequence[Column],
    left: int = 1,
) -> Listing:
    """A table of `rows` whose first columns, `left` of them, are text."""
    return Listing(heading, words, stem, Table(*by_columns(columns, rows), left=range(left)))


def _but_of_the_limit(*columns: Column) -> list[Column]:
    """The columns; ``-`` in the limit with all paths, from which they are measured."""

    def shown(column: Column) -> Column:
        header, show = column
        limit = (LIMIT, ALL)
        return header, lambda row: "-" if (row["method"], row["paths"]) == limit else show(row)

    return [*map(shown, columns)]


# --- theory beside sampling


@functools.singledispatch
def listings(setting: Setting) -> list[Listing]:
    """Networks, interplay of paths, and theory against sampling."""
    networks = means.networks(setting)
    return [
        _listing(
            "Networks",
            "Mean over seeds on the test split. Minus limit: accuracy minus that of the limit "
            "with all paths, in points and paired by seed.",
            "attention-paths-networks",
            networks,
            [
                ("network", network_text),
                *measured("accuracy %", "accuracy", _BOUNDS),
                *_but_of_the_limit(*measured("minus limit", "gain", _BOUNDS, points)),
                plain("largest overlap", "largest_overlap", three_decimals),
                _N,
            ],
        ),
        _listing(
            "Interplay of paths",
            "Accuracy with the whole order parameter U, and with its off-diagonal set to 0; "
            "the difference is in points and paired by seed.",
            "attention-paths-networks",
            networks[networks["method"] != LIMIT],  # whose U has no off-diagonal
            [
                ("network", network_text),
                plain("with interplay %", "accuracy", percent),
                plain("without %", "accuracy_diagonal", percent),
                *measured("difference", "interplay", _BOUNDS, points),
                _N,
            ],
        ),
        _listing(
            "Theory against sampling",
            "Error of the mean: distance of theory's mean predictor from the sampled one; the "
            "sampling error, which is part of it, is what a finite number of draws leaves. "
            "Accuracy: theory minus sampled.",
            "attention-paths-agreement",
            means.agreement(setting),
            [
                ("sampled", network_text),
                *measured("error of the mean %", "predictor_error", _BOUNDS, _two_digits),
                plain("sampling error %", "sampling_error", _two_digits),
                *measured("accuracy (points)", "accuracy_difference", _BOUNDS, points),
                plain("largest difference of U", "order_parameter_difference", number),
                plain("R-hat", "r_hat", r_hat_text),
                plain("effective draws", "effective_sample_size", number),
                plain("not converged", "num_unconverged"),
                _N,
            ],
        ),
    ]


def _two_digits(share: float) -> str:
    return percent(share, 2)


@functools.singledispatch
def beside_others(setting: Setting) -> Listing:
    """The prototype's numbers beside ours."""

    def ours(row: Row) -> str:
        return interval(row, "ours", _MEASURES[row["measure"]][1]) if row["num_seeds"] else "-"

    return _listing(
        "Beside the specification's prototype",
        beside.source_of_prototype(setting),
        "attention-paths-prototype",
        beside.beside_prototype(setting),
        [
            ("measure", lambda row: _MEASURES[row["measure"]][0]),
            ("network", network_text),
            ("ours", lambda row: _MEASURES[row["measure"]][1](row["ours"])),
            (_BOUNDS, ours),
            ("prototype", lambda row: _MEASURES[row["measure"]][1](row["prototype"])),
            _N,
        ],
        left=2,
    )._replace(of_others=True)


# --- trained networks


@listings.register
def of_trained(setting: Trained) -> list[Listing]:
    """Networks, theory, pruning and heads."""
    paired = pruning.paired(setting)
    heads = [
        *measured("score", "score", _BOUNDS, three_decimals),
        *measured("lost accuracy (points)", "drop", _BOUNDS),
        _N,
    ]
    against = _listing(
        "Pruning by theory against other orders",
        "Mean accuracy without 0, 1, ..., K heads, removed by theory's scores at the smallest "
        "width, minus the same by another order, paired by network. Would decide it: networks for "
        "a difference at the far end of the interval, to networks for one at the other end. No "
        "order can beat the bound.",
        "heads-paired",
        paired,
        [
            plain("against", "second"),
            ("verdict", _verdict),
            plain("difference (points)", "difference", points),
            (_BOUNDS, interval_of_pair),
            plain("Holm p", "p_holm", p_value),
            plain("n", "num_pairs"),
            plain("lost", "num_lost"),
            ("would decide it", (lambda row: "-") if setting.chosen_on_test else would_decide),
        ],
        left=2,
    )
    return [
        _listing(
            "Trained networks",
            "What gradient descent reached at the end of training, mean over networks.",
            "heads-trained",
            pruning.trained(setting),
            [
                plain("learning rate", "lr", "{:g}".format),
                *measured("test accuracy %", "accuracy_test", _BOUNDS),
                plain("validation %", "accuracy_validation", percent),
                plain("train %", "accuracy_train", percent),
                plain("loss", "loss_test", three_decimals),
                _N,
                plain("diverged", "num_diverged"),
                plain("stopped", "num_censored"),
            ],
        ),
        _listing(
            "Theory on the learned attention",
            "Mean over networks on the test split. Minus limit: accuracy minus that of the limit, "
            "in points and paired by network. Temperature: median and range of those chosen.",
            "heads-networks",
            pruning.networks(setting),
            [
                ("network", lambda row: scorer_text(row["method"], row["network_width"])),
                *measured("accuracy %", "accuracy", _BOUNDS),
                *_but_of_the_limit(
                    *measured("minus limit", "gain", _BOUNDS, points),
                    plain("accuracy %, diagonal of U", "accuracy_diagonal", percent),
                ),
                ("temperature", _temperature),
                _N,
                plain("diverged", "num_diverged"),
            ],
        ),
        against._replace(notes=pair_notes(paired)),
        _without_heads(setting),
        _listing(
            "Heads by rank of their score",
            "Score by theory at the smallest width, and accuracy lost on the test split without "
            "that head alone; rank 1 has the lowest score of its network.",
            "heads-ranks",
            pruning.ranks(setting),
            [plain("rank of score", "rank"), *heads],
        ),
        _listing(
            "Heads by place",
            "The same by place: heads of two networks at one place have nothing else in common, "
            "so that means of all places are alike unless layers differ.",
            "heads-positions",
            pruning.positions(setting),
            [("head", lambda row: f"layer {row['layer']}, head {row['head']}"), *heads],
        ),
    ]


def _verdict(row: Row) -> str:
    return str(row["verdict"] if row["verdict"] == "undecided" else f"theory {row['verdict']}")


def would_decide(row: Row) -> str:
    """How many networks would decide an undecided row; ``-`` where networks were lost."""
    far, seen = seeds_that_would_decide(row)
    if row["num_lost"] or (far, seen) == ("-", "-"):
        return "-"
    return f"{far} networks" + f"; as seen {seen}" * (seen != "-")


def _temperature(row: Row) -> str:
    """``0.1``, ``0.1 (0.05 to 0.3)``: the median and the range over seeds."""
    middle, *ends = (row[f"temperature_{end}"] for end in ("median", "least", "most"))
    if not known(middle):
        return "-"
    return f"{middle:g}" + (f" ({ends[0]:g} to {ends[1]:g})" if ends[0] != ends[1] else "")


def _without_heads(setting: Trained) -> Listing:
    """Accuracy without 0, 1, ..., K heads, a row an order; in brief without intervals."""
    shown = shown_orders(setting)
    counts = evenly(sorted(set(shown["removed"])), _MOST_COUNTS)

    def table(form: Callable[[Row], str]) -> Table:
        rows = []
        for key, curve in shown.groupby(ORDER, sort=False):
            texts = {row["removed"]: form(row) for row in curve.to_dict("records")}
            cells = (texts[count] for count in counts)
            rows.append([order_text(*key), *cells, str(curve["num_seeds"].iloc[0])])
        return Table(["removed heads", *map(str, counts), "n"], rows)

    return Listing(
        "Accuracy without heads (%)",
        "Of the trained network on the test split, by the number of removed heads: mean over "
        "networks, in brackets its 95 % interval.",
        "heads-pruning",
        table(_mean_and_interval),
        brief=table(_mean),
    )


def shown_orders(setting: Trained) -> pd.DataFrame:
    """Of `pruned.pruning`, theory at the reference width in both orders, and the rules in that
    which removes low scores first; others have tables of data.
    """
    table = pruning.pruning(setting)
    theory = (table["method"] == THEORY) & (table["network_width"] == setting.reference)
    rules = ~table["method"].isin(SOLVED) & (table["order"] == REMOVAL)
    return table[theory | rules].reset_index(drop=True)


def evenly(values: Sequence[float], most: int) -> list[float]:
    """At most so many of the values, both ends among them, the others evenly."""
    places = np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)
    return [values[place] for place in np.unique(places)]


def order_text(method: Any, width: Any, paths: Any, order: Any) -> str:
    """``theory N=10``, ``theory N=10 reversed``, ``weight-norm``."""
    name = scorer_text(method, width)
    return f"{name} reversed" if order == REVERSE else name


def _mean(row: Row) -> str:
    return percent(row["accuracy"])


def _mean_and_interval(row: Row) -> str:
    """``83.8 (82.1 to 85.5)``."""
    mean = _mean(row)
    return f"{mean} ({interval(row, 'accuracy')})" if known(row["accuracy_low"]) else mean


@beside_others.register
def beside_published(setting: Trained) -> Listing:
    """The published numbers beside ours."""

    def measure(row: Row) -> str:
        if row["measure"] == "accuracy":
            return "accuracy before pruning %"
        return f"lost without the head of rank {row['rank']:g} (points)"

    return _listing(
        "Beside the published numbers",
        beside.SOURCE,
        "heads-published",
        beside.beside_published(setting),
        [
            ("measure", measure),
            plain("ours", form=percent),
            (_BOUNDS, lambda row: interval(row, "ours") if row["num_seeds"] else "-"),
            plain("published", form=percent),
            _N,
        ],
    )._replace(of_others=True)
