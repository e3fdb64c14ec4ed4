"""Means over the seeds of chosen options: numbers at the cut, learning curves and heat maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.digest import measures as declared
from analysis.digest.choose import known_metrics
from analysis.digest.measures import METRICS, Measure
from analysis.digest.scores import Scores, scores
from analysis.groups import (
    AXES,
    GROUP,
    OPTION,
    Axis,
    finite_evaluations,
    in_order,
    is_recorded,
    rows_of,
)
from analysis.rules.learning import apart, seed_mean
from analysis.rules.stages import tested
from analysis.rules.statistics import interval_columns, t_interval
from study.results import ResultsError

_SHARED = [
    *GROUP, "kind", "n", "architecture", "batch_size", "precision", "budget_amount", "budget_unit",
    "cut", "axis", "comparison_id",
]  # fmt: skip
_ALWAYS = ("saif", "accuracy", "loss", "foreground_attention_mean")
"""These have columns in a summary even if no cell has recorded them."""

SPREADS = {"seeds": "seed_se", "images": "image_se", "backgrounds": "background_se"}
"""What numbers are over -> column of the standard error, of a mean behind its metric."""


def summarise(
    at_budget: pd.DataFrame,
    choice: pd.DataFrame,
    split: str = "test",
    confidence: float = 0.95,
    measures: Sequence[str] = (),
    asked: Sequence[str] = (),
) -> pd.DataFrame:
    """Mean and interval of each group's chosen option, on the seeds that confirm if any do.

    Intervals of shares are on the logit scale, those of SAIF and accuracy over seeds, images and
    background images where these are known (see `analysis.digest.scores.scores`), all others
    over seeds.

    Args:
        at_budget: as `equal_compute` gives it.
        choice: as `choose` gives it.
        split: `test`, `validation` or `train`.
        confidence: of the intervals, in (0, 1).
        measures: in the column `measures`, which are summarised, too, as far as they are known.
        asked: measures that are tested, which are over images, too, as SAIF and accuracy are.

    Returns:
        One row a group whose chosen option was tested: the columns of `choice`, with `num_seeds`
        and `num_diverged` counted on `split`; `most_seeds`, those that were planned, or that the
        comparison's best filled option has: where `num_seeds` is smaller, cells failed or have not
        run; `saif`, `accuracy`, `loss` and `foreground_attention_mean`, each with its
        `<metric>_low` and `<metric>_high`: fractions (`loss` in nats), bounds NaN when n < 2, of
        SAIF and accuracy also where seeds agree, since that says nothing of further ones, and
        where they fall apart (at `<metric>_above`, see `analysis.rules.learning`); all NaN where a
        seed has no value (a diverged cell has no loss). `<metric>_learned` seeds have learned,
        with the mean `<metric>_given`; one image has `<metric>_of_one_image` of what is wrong, or
        right, if that is rarer. `num_images` and `num_backgrounds` (missing: not known) and the
        standard errors over seeds, images and background images, `<metric>_seed_se`,
        `<metric>_image_se` and `<metric>_background_se`, fractions; `n`, `architecture`,
        `batch_size`, `precision`, `budget_amount`, `budget_unit`, `cut`, `axis`, `comparison_id`;
        the largest `compute_flops` spent, and that of the axis; `split` and `confidence`. Also the
        further measures of the modality, likewise, where they are known.

    Raises:
        ResultsError: there are no evaluations on `split`.
    """
    if split not in set(at_budget["split"]) and len(choice):
        raise ResultsError(f"there are no {split} evaluations.")
    rows = tested(at_budget)
    rows = rows[rows["split"] == split]
    seeds = rows.groupby(GROUP + OPTION, dropna=False)["cell_id"].transform("size")
    rows = rows.assign(filled=seeds.groupby([rows["task"], rows["m"]]).transform("max"))
    rows = rows_of(choice, rows).sort_values("seed")
    known = known_metrics(at_budget, measures)
    if not is_recorded(at_budget).any():
        known = [name for name in known if name in (*METRICS, *asked)]
    records = []
    for _, group in rows.groupby(GROUP):
        first, planned = group.iloc[0], group["planned_seeds"].fillna(group["filled"])
        table = declared.measures_of(group, measures)
        record: dict[Any, Any] = first[_SHARED].to_dict() | {
            "num_seeds": len(group),
            "num_diverged": int(group["diverged"].sum()),
            "most_seeds": max(int(planned.max()), len(group)),
            **group[["compute_flops", AXES[first["axis"]]]].astype(float).max().to_dict(),
        }
        for name in table:
            there = name in rows and rows[name].notna().any()
            if name not in known and (there or name in _ALWAYS):
                found = interval(group[name], table[name], first["num_classes"], confidence)
                record |= dict(zip(interval_columns(name), found, strict=True))
        record |= {"num_images": math.nan, "num_backgrounds": math.nan}
        for name in known:
            record |= _crossed(group, table[name], confidence)
        records.append(record | {"split": split, "confidence": confidence})
    summary = pd.DataFrame(records, columns=None if records else _SHARED)
    picked = choice.drop(columns=["num_seeds", "num_diverged"])
    return in_order(picked.merge(summary, on=GROUP), GROUP)


def summarised_metrics(summary: pd.DataFrame) -> list[str]:
    """The metrics of a summary: those whose spreads it has, else `METRICS`."""
    end = "_seed_se"
    found = [name.removesuffix(end) for name in map(str, summary.filter(like=end))]
    return found or [*METRICS]


def _crossed(group: pd.DataFrame, measure: Measure, confidence: float) -> dict[str, float]:
    """A metric of the cells of one option, over seeds and, where known, images."""
    known, scale = scores(group, measure.column), measure.scale(group["num_classes"].iloc[0])
    by_seed = group[measure.column].to_numpy(np.float64, na_value=np.nan)
    found = seed_mean(known.mean(confidence), known.by_seed, scale)
    gap = apart(by_seed, scale)
    above = scale.sign * scale.floor if gap is None else gap
    learned = by_seed[scale.sign * by_seed > scale.sign * above]
    parts = {
        "": by_seed.mean(),  # of recorded scores, whose last digits a mean over images may lose
        "_low": found.low,
        "_high": found.high,
        **{f"_{se}": getattr(found, se) for se in SPREADS.values()},
        "_of_one_image": known.of_one_image,
        "_above": math.nan if gap is None else gap,
        "_learned": len(learned) if math.isfinite(above) else math.nan,
        "_given": learned.mean() if len(learned) else math.nan,
    }
    counts = {"num_images": found.num_images} if known.instances else {}
    counts |= {"num_backgrounds": found.num_backgrounds} if found.num_backgrounds else {}
    return counts | {f"{measure.column}{part}": value for part, value in parts.items()}


def interval(
    by_seed: ArrayLike, measure: Measure, num_classes: float, confidence: float
) -> tuple[float, float, float]:
    """Mean, low and high of a measure over seeds alone, in its unit; NaN: not known.

    Args:
        by_seed: (n,) one value a seed.
        measure: what they are of; an interval of shares in [0, 1] is on the logit scale.
        num_classes: C.
        confidence: in (0, 1).
    """
    values = np.asarray(by_seed, np.float64)
    if not measure.bounded:
        return t_interval(values, confidence)
    together = Scores(values[:, None]).mean(confidence)
    found = seed_mean(together, values, measure.scale(num_classes))
    return found.mean, found.low, found.high


def learning_curve(
    evaluations: pd.DataFrame,
    metric: str,
    split: str = "test",
    confidence: float = 0.95,
    axis: Axis = "flops",
) -> pd.DataFrame:
    """A metric against compute: mean and interval over the seeds of each paradigm.

    A diverged cell counts from its first missing evaluation on as in the comparison table.

    Args:
        evaluations: of one (task, m) and one option a paradigm, as
            `Comparison.evaluations` holds them.
        metric: column of a measure.
        split: name of the split.
        confidence: of the intervals, in (0, 1).
        axis: what is compute here, see `analysis.groups.AXES`.

    Returns:
        One row a (paradigm, budget_fraction): the column of the axis (`compute_flops`,
        `train_seconds` or `mosaics_seen`; mean over seeds), `num_seeds`, `num_cells` (seeds of
        the option; `num_seeds` is smaller where some have no evaluation within the cut), `mean`,
        `low`, `high` (in its unit, see `analysis.rules.learning.seed_mean`; all NaN where a
        seed's metric is NaN).
    """
    if metric not in evaluations:
        raise ValueError(f"evaluations must have the metric, got {metric!r}")
    point, x = ["paradigm", "budget_fraction"], AXES[axis]
    cells = evaluations.drop_duplicates("cell_id")
    there = finite_evaluations(evaluations)
    there = there[there["split"] == split]
    columns = [*point, x, "num_seeds", "num_cells", "mean", "low", "high"]
    if there.empty:
        return pd.DataFrame(columns=columns)
    num_classes = there["num_classes"].iloc[0]
    measure = declared.measures_of(there, [metric])[metric]
    lost = cells.loc[cells["status"] == "diverged", ["cell_id", "paradigm"]]
    lost = lost.merge(there[point].drop_duplicates()).assign(**{metric: measure.lost(num_classes)})
    rows = pd.concat([there, lost]).drop_duplicates(["cell_id", "budget_fraction"])
    points = rows.astype({metric: float, x: float}).groupby(point)
    curve = points.agg(**{x: (x, "mean"), "num_seeds": ("cell_id", "size")}).reset_index()
    curve["num_cells"] = curve["paradigm"].map(cells["paradigm"].value_counts())
    curve[["mean", "low", "high"]] = [
        interval(values, measure, num_classes, confidence) for _, values in points[metric]
    ]
    return in_order(curve[columns], point)


def common(curve: pd.DataFrame) -> pd.DataFrame:
    """The evaluations of `learning_curve` that all seeds have.

    A mean over different seeds than before would look like progress.
    """
    return curve[curve["num_seeds"] == curve["num_cells"]]


def mean_heatmaps(
    rows: pd.DataFrame, choice: pd.DataFrame, split: str = "test"
) -> dict[str, NDArray[np.float64]]:
    """Mean over seeds of the chosen options' heat maps, of one (task, m).

    Args:
        rows: with heat maps, as `Comparison.chosen` holds them.
        choice: as `analysis.choose` gives it.
        split: name of the split.

    Returns:
        Paradigm -> (bins, bins) fractions of the instances whose foreground is known, axis 0 =
        a_z, axis 1 = s_y. Seeds without a heat map, as diverged ones are, are left out
        (`heatmap_seeds` says how many are in); a paradigm without any is absent.
    """
    means = {name: np.mean([*maps], axis=0) for name, maps in _heatmaps(rows, choice, split)}
    return {name: mean.reshape(math.isqrt(mean.size), -1) for name, mean in means.items()}


def heatmap_seeds(rows: pd.DataFrame, choice: pd.DataFrame, split: str = "test") -> dict[str, int]:
    """Seeds in each of the means of `mean_heatmaps`, which takes the same arguments."""
    return {name: len(maps) for name, maps in _heatmaps(rows, choice, split)}


def _heatmaps(rows: pd.DataFrame, choice: pd.DataFrame, split: str) -> Iterable[tuple[Any, Any]]:
    """Paradigm and its heat maps, (bins^2,) each."""
    there = rows_of(choice, rows[(rows["split"] == split) & rows["heatmap"].notna()])
    return in_order(there, ["paradigm", "seed"]).groupby("paradigm", sort=False)["heatmap"]
