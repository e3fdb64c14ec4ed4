"""Means over seeds of networks, theory, pruned accuracies and heads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.attention_paths import means as of_paths
from analysis.attention_paths import settings as attention_paths
from analysis.attention_paths.networks import THEORY, Vector
from analysis.heads.measures import by_rank, rank_correlation
from analysis.heads.methods import REVERSE, SCORER
from analysis.heads.settings import Setting
from analysis.statistics import CONFIDENCE, interval_columns, named_interval
from study.results import SPLITS

MEASURES = ("accuracy", "accuracy_diagonal", "interplay", "gain", "loss")
"""Measures of theory and limit that have a mean and an interval, on the test split; see
`analysis.attention_paths.measures`."""

REMOVAL = "removal"
"""`order` of a scorer that removes heads with low scores first; the other one is `REVERSE`."""

_TRAINED = [
    "lr", "schedule", "num_seeds", "num_diverged", "num_censored",
    *interval_columns(*(f"accuracy_{split}" for split in SPLITS), "loss_test"),
]  # fmt: skip
_NETWORKS = [
    *SCORER, "num_seeds", "num_diverged", *interval_columns(*MEASURES),
    "temperature_median", "temperature_least", "temperature_most",
]  # fmt: skip
_ORDER = [*SCORER, "order"]


def trained(setting: Setting) -> pd.DataFrame:
    """The networks that gradient descent trained, by learning rate.

    Returns:
        One row a schedule: `lr`, `schedule`, `num_seeds` that are done, `num_diverged`,
        `num_censored`, and `accuracy_<split>` (fractions) and `loss_test` (mean squared error)
        at the end, each with `_low` and `_high`.
    """
    records = []
    for schedule, rows in setting.trained.groupby("schedule", sort=False):
        done = rows[rows["status"] == "done"]
        record: dict[str, Any] = {
            "lr": rows["lr"].iloc[0],
            "schedule": schedule,
            "num_seeds": len(done),
            "num_diverged": int((rows["status"] == "diverged").sum()),
            "num_censored": int((rows["status"] == "censored").sum()),
        }
        for name in (*(f"accuracy_{split}" for split in SPLITS), "loss_test"):
            record |= named_interval(name, done[name], CONFIDENCE)
        records.append(record)
    return pd.DataFrame(records, columns=_TRAINED)


def networks(setting: Setting) -> pd.DataFrame:
    """Theory and limit: what their mean predictors reach on the test split.

    Returns:
        One row a method and width: `method`, `network_width`, `num_seeds`, `num_diverged`, each
        of `MEASURES` with `_low` and `_high`, and the temperature over these seeds:
        `temperature_median`, `_least` and `_most`.
    """
    solved = setting.solved
    if solved.cells.empty:
        return pd.DataFrame(columns=_NETWORKS)
    table = of_paths.networks(solved)
    kept = solved.cells[solved.cells["cell_id"].isin(solved.rows["cell_id"])]
    spread = kept.groupby(SCORER)["temperature"].agg(["median", "min", "max"])
    spread.columns = pd.Index([f"temperature_{end}" for end in ("median", "least", "most")])
    return table.merge(spread.reset_index(), on=SCORER, how="left")[_NETWORKS]


def pruning(setting: Setting) -> pd.DataFrame:
    """Accuracy on the test split without more and more heads.

    Returns:
        One row a scorer, order and number of heads: `method`, `network_width`, `order` (removal:
        low scores first; reverse), `removed`, `num_seeds`, and `accuracy` with `_low` and
        `_high`, NaN where it is not known of a seed. Scorers without such numbers are left out.
    """
    records = []
    for key, rows, (lists, _) in _orders(setting):
        most = max(map(len, rows[lists]))
        values = np.stack([each if len(each) else np.full(most, np.nan) for each in rows[lists]])
        for removed, accuracies in enumerate(values.T):
            accuracy = named_interval("accuracy", accuracies, CONFIDENCE)
            records.append((*key, removed, len(rows), *accuracy.values()))
    columns = [*_ORDER, "removed", "num_seeds", *interval_columns("accuracy")]
    return pd.DataFrame(records, columns=columns)


def areas(setting: Setting) -> pd.DataFrame:
    """The area under each of these curves: mean accuracy without 0, 1, ..., K heads.

    Returns:
        One row a scorer and order: `method`, `network_width`, `order`, `num_seeds`, and `area`
        with `_low` and `_high`.
    """
    records = [
        (*key, len(rows), *named_interval("area", rows[column], CONFIDENCE).values())
        for key, rows, (_, column) in _orders(setting)
    ]
    return pd.DataFrame(records, columns=[*_ORDER, "num_seeds", *interval_columns("area")])


def _orders(setting: Setting) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame, tuple[str, str]]]:
    """Every scorer and order that has numbers: its key, its rows, and their columns."""
    columns = {REMOVAL: ("pruned", "area"), REVERSE: ("pruned_reverse", "area_reverse")}
    for (method, width), rows in setting.orders.groupby(SCORER, sort=False):
        for order, (lists, column) in columns.items():
            if any(map(len, rows[lists])):
                yield (method, width, order), rows, (lists, column)


def scored(setting: Setting) -> pd.DataFrame:
    """Theory's scores at the reference width beside what the accuracy loses without each head.

    Returns:
        One row a seed, its index, that has both: `scores` (heads,), `drops` (heads,): test
        accuracy of the network minus that without the head, and their rank `correlation`.
    """
    networks = setting.networks
    found = {}
    for seed, row in setting.of(THEORY, setting.reference).iterrows():
        if row["network"] not in networks.index or not len(row["scores"]):
            continue
        network = networks.loc[row["network"]]
        if len(network["without_head"]):
            drops = network["accuracy_test"] - network["without_head"]
            correlation = rank_correlation(row["scores"], drops)
            found[seed] = {"scores": row["scores"], "drops": drops, "correlation": correlation}
    table = pd.DataFrame.from_dict(found, "index", columns=["scores", "drops", "correlation"])
    return table.rename_axis("seed")


def correlations(setting: Setting) -> pd.DataFrame:
    """One row a seed: `seed` and `correlation`, see `scored`."""
    return scored(setting).reset_index()[["seed", "correlation"]]


def positions(setting: Setting) -> pd.DataFrame:
    """Scores and drops of each head by its place; heads of two networks share nothing else.

    Returns:
        One row a head: `layer` and `head` from 1, `num_seeds`, and `score` and `drop` with `_low`
        and `_high`; see `scored`.
    """
    places = [(i, j) for i, h in enumerate(setting.heads, 1) for j in range(1, h + 1)]
    return _of_heads(setting, pd.DataFrame(places, columns=["layer", "head"]), ranked=False)


def ranks(setting: Setting) -> pd.DataFrame:
    """The same by rank of the score in each network: `rank` 1 is the lowest."""
    places = pd.DataFrame({"rank": range(1, sum(setting.heads) + 1)})
    return _of_heads(setting, places, ranked=True)


def by_score(setting: Setting) -> attention_paths.Setting:
    """Theory and limit with the heads of each layer by falling score of theory.

    The heads of a layer are exchangeable between networks: a mean of U over networks by their
    numbers would be one over arbitrary heads.
    """
    scores = {
        (row["method"], row["network_width"], row["seed"]): row["scores"]
        for row in setting.orders.to_dict("records")
        if len(row["scores"])
    }
    rows = setting.solved.rows
    ordered = []
    for method, width, seed, matrix in rows[[*SCORER, "seed", "order_parameter"]].itertuples(
        index=False
    ):
        order = _paths_by_score(scores.get((method, width, seed)), setting.heads)
        ordered.append(matrix[np.ix_(order, order)])
    values = pd.Series(ordered, rows.index, dtype=object)
    return replace(setting.solved, rows=rows.assign(order_parameter=values))


def _paths_by_score(scores: Vector | None, heads: Sequence[int]) -> NDArray[np.intp]:
    """(D,) paths in C order of heads by falling score; as they are without scores."""
    paths = np.arange(math.prod(heads)).reshape(tuple(heads))
    if scores is None:
        return paths.ravel()
    layers = np.split(scores, np.cumsum(heads)[:-1])
    return paths[np.ix_(*(np.argsort(-layer, kind="stable") for layer in layers))].ravel()


def _of_heads(setting: Setting, places: pd.DataFrame, ranked: bool) -> pd.DataFrame:
    rows = scored(setting)
    stacked: dict[str, Vector] = {}
    for name, column in (("score", "scores"), ("drop", "drops")):
        pairs = zip(rows["scores"], rows[column], strict=True)
        stacked[name] = np.array([by_rank(s, v) if ranked else v for s, v in pairs])
    names = ["num_seeds", *interval_columns("score", "drop")]
    if rows.empty:
        return places.iloc[:0].reindex(columns=[*places, *names])
    records = []
    for place in range(len(places)):
        record: dict[str, float] = {"num_seeds": len(rows)}
        for name, values in stacked.items():
            record |= named_interval(name, values[:, place], CONFIDENCE)
        records.append(record)
    return pd.concat([places, pd.DataFrame(records, columns=names)], axis="columns")
