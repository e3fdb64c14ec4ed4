"""What limits an answer: facts as frames, which `analysis.page.sentences` puts into words."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from analysis.digest.choose import SCORE, SEEDS, STOPPED, UNSWITCHED, barred
from analysis.digest.compare import Comparison
from analysis.digest.cut import EARLY
from analysis.digest.means import summarised_metrics
from analysis.digest.measures import measures
from analysis.groups import in_order
from analysis.rules.stages import given
from analysis.rules.statistics import clopper_pearson
from study.results import SPLITS

HEAVY_IMAGE = 0.25
"""Where one image has as much of what is wrong, 108 images may well lack one like it."""

NOTHING = "nothing was evaluated on validation"
_WHY = {
    STOPPED: "stopped early",
    UNSWITCHED: "not switched within the cut",
    SEEDS: "lacks seeds that others have, until they are run",
}

_OF_SEEDS = ("learned", "above", "given", "of_one_image")


def beaten(comparison: Comparison) -> pd.DataFrame:
    """Who beats whom by `Comparison.paired`, in as few rows as say it.

    Returns:
        `winners`, `losers`, and names of `measures`: tuples, each winner beats each loser in each
        measure. Those who beat most come first.
    """
    rows = comparison.paired[comparison.paired["verdict"] != "undecided"]
    is_better, first, second = rows["verdict"] == "better", rows["first"], rows["second"]
    rows = pd.DataFrame(
        {
            "winners": first.where(is_better, second),
            "losers": second.where(is_better, first),
            "measures": rows["metric"].map(comparison.names),
        }
    )
    for column in ("losers", "winners", "measures"):
        others = rows.columns.drop(column)
        rows = rows.groupby([*others], sort=False)[column].agg(tuple).reset_index()
    return rows.sort_values(
        "losers", key=lambda each: each.map(len), ascending=False, kind="stable"
    )


def of_seeds(comparison: Comparison) -> pd.DataFrame:
    """How many seeds learned, and how much a single image counts.

    Returns:
        One row a metric and paradigm of the summary: `metric`; its `measure`, what a diverged cell
        counts as in it, `lost`, and what a seed must exceed to have learned, `floor`; `paradigm`,
        `num_seeds`, `mean`; and the summary's columns `learned`, `above`, `given` and
        `of_one_image` of the metric.
    """
    num_classes = float(comparison.cells["num_classes"].max())
    tables = []
    for metric in summarised_metrics(comparison.summary):
        measure = comparison.measures[metric]
        columns = {metric: "mean"} | {f"{metric}_{name}": name for name in _OF_SEEDS}
        table = comparison.summary.reindex(columns=["paradigm", "num_seeds", *columns])
        tables.append(
            table.rename(columns=columns).assign(
                metric=metric,
                measure=measure.name,
                lost=measure.lost_text,
                floor=measure.scale(num_classes).floor,
            )
        )
    return pd.concat(tables, ignore_index=True)


def heavy_images(seeds: pd.DataFrame) -> pd.DataFrame:
    """The row of each metric whose paradigm owes most to one image, if that is much.

    Args:
        seeds: see `of_seeds`.
    """
    rows = seeds[seeds["of_one_image"].astype(float) >= HEAVY_IMAGE]
    return rows.sort_values("of_one_image", ascending=False).drop_duplicates("metric")


def barred_options(comparison: Comparison) -> pd.DataFrame:
    """Why options of a comparison cannot be chosen.

    Returns:
        One row a paradigm and reason: `paradigm`; `why`, in words; `num_barred` for it, of the
        paradigm's `num_options`. A paradigm without options has `NOTHING`, and zeros.
    """
    options, select = comparison.options, comparison.select
    words = _WHY | {SCORE: f"no known validation {comparison.measures[select].name}"}
    rows = options.assign(why=barred(options, select).map(words), num_barred=1)
    without = pd.DataFrame({"paradigm": comparison.cells["paradigm"].unique()})
    without = without.assign(num_options=0, why=NOTHING, num_barred=0)
    without = without[~without["paradigm"].isin(options["paradigm"])]
    by = ["paradigm", "num_options", "why"]
    rows = pd.concat([rows.dropna(subset="why")[[*without]], without])
    return in_order(rows.groupby(by)["num_barred"].sum().reset_index(), by)


def edges(options: pd.DataFrame, choice: pd.DataFrame) -> pd.DataFrame:
    """The chosen values that are the smallest or the largest tried of their axis.

    The axes are the learning rate, or, of a schedule with phases, the first and last learning rate
    and the switch point.

    Args:
        options: as `analysis.digest.choose.options` gives it, of one comparison.
        choice: as `analysis.choose` gives it.

    Returns:
        One row a value: `axis`, `value`, its `end` (smallest or largest), `num_tried`, and the
        `paradigms` that chose it.
    """
    rows = []
    for pick in choice.to_dict("records"):
        tried = options[options["paradigm"] == pick["paradigm"]]
        for axis, column in _axes(tried).items():
            grid, value = tried[column].dropna(), pick[column]
            end = {grid.max(): "largest", grid.min(): "smallest"}.get(value)
            if end and grid.nunique() > 1:
                rows.append((axis, value, end, grid.nunique(), pick["paradigm"]))
    by = ["axis", "value", "end", "num_tried"]
    table = pd.DataFrame(rows, columns=[*by, "paradigms"])
    return table.groupby(by, sort=False)["paradigms"].agg(list).reset_index()


def _axes(tried: pd.DataFrame) -> dict[str, str]:
    """Name -> column of each axis that may have been searched in one group."""
    rates = {"learning rate": "lr"}
    if tried["switch_point"].notna().any() and (tried["lr"] != tried["last_lr"]).any():
        rates = {"first learning rate": "lr", "last learning rate": "last_lr"}
    return rates | {"switch point": "switch_point"}


def cut_early(comparison: Comparison) -> float:
    """How far all recorded runs go on, if they are cut long before that; NaN else."""
    asked, cut = (
        math.inf if amount is None else amount
        for amount in (comparison.question.budget, comparison.budget)
    )
    reach = min(comparison.reach, asked)
    return reach if comparison.recorded and cut < EARLY * reach < math.inf else math.nan


def tuned_options(comparison: Comparison) -> pd.DataFrame:
    """The rows of `Comparison.options` that were tuned on seeds of their own."""
    options = comparison.options
    return options[~options["paradigm"].isin(given(comparison.at_budget))]


def untold(paired: pd.DataFrame) -> pd.DataFrame:
    """Why pairs are undecided, where their p after Holm does not tell it.

    Args:
        paired: see `Comparison.paired`.

    Returns:
        One row a reason and metric: `task`, `reason`, `metric` and `pairs`, a list.
    """
    is_told = paired["ended_seeds"].notna() | paired["reason"].str.contains("after Holm")
    rows = paired[(paired["verdict"] == "undecided") & ~is_told]
    rows = rows.assign(pairs=rows["first"] + "/" + rows["second"])
    by = ["task", "reason", "metric"]
    return rows.groupby(by, sort=False)["pairs"].agg(list).reset_index()


def name_of(task: str, metric: str) -> str:
    """What people call a metric."""
    return measures(task, [metric])[metric].name


def unseen(n: int) -> float:
    """Share of further seeds that may not learn where n of n have, at most, with 95 %."""
    return clopper_pearson(0, n)[1]


def shares(comparison: Comparison) -> dict[str, float]:
    """Split -> share of its evaluated instances whose foreground is known.

    Splits for which no cell recorded it, as runs trained elsewhere may, are absent.
    """
    found = comparison.at_budget.groupby("split")["foreground_share"].max()
    known: dict[Any, float] = found.reindex([*SPLITS]).dropna().to_dict()
    return known


def soft_epochs(comparison: Comparison) -> float:
    """Passes over the training data that the soft cells got; NaN without a soft cell."""
    rows = comparison.at_budget[comparison.at_budget["paradigm"] == "soft"]
    return float((rows["mosaics_seen"].astype(float) / rows["n"]).max())
