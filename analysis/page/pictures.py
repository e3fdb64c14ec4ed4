"""The figures of a comparison, and of what settings change, with their captions.

What they say stands in ``templates/captions.j2``, by the kind of a picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.digest.choose import MAX_RATES, response
from analysis.digest.compare import Comparison
from analysis.digest.factors.effects import verdicts
from analysis.digest.factors.families import Family, by_value, factor_name, value_text
from analysis.digest.means import common, heatmap_seeds, learning_curve, mean_heatmaps
from analysis.digest.measures import METRICS
from analysis.figures.curves import compute_figure, factors_figure, response_figure
from analysis.figures.forest import forest_figure
from analysis.figures.tiles import grid_figure, heatmap_figure
from analysis.forms import SHARES, of_planned
from analysis.rules.statistics import CONFIDENCE
from analysis.section.picture import Picture, file_stem
from analysis.section.templates import paragraphs
from study.door import imported
from study.results import ResultsError, unknown

REFERENCES = ("hard", "hard-sampled", "hard-running", "soft")
"""Paradigms without a switch point whose level stands beside the response to it."""


def pictures(comparison: Comparison, of_class: str | None = None) -> list[Picture]:
    """Every figure that the comparison has the data for, in the order of the report.

    With a class, also its heat maps. Left out are differences of fewer than two paradigms, missing
    heat maps, and responses to a single learning rate or switch point. Without any option that has
    numbers there is no picture.
    """
    if comparison.summary.empty:
        return []
    kinds = _differences, _heat_maps, _curves, _responses, _gallery
    found = [picture for kind in kinds for picture in kind(comparison)]
    return [*found, *_of_class(comparison, of_class)]


def heat_map_pictures(comparison: Comparison, of_class: str | None = None) -> list[Picture]:
    """Its heat maps alone."""
    return [*_heat_maps(comparison), *_of_class(comparison, of_class)]


def refuse_unknown_class(found: Sequence[Comparison], name: str) -> None:
    """Refuses a class of which no comparison has recorded a heat map.

    Raises:
        ResultsError: likewise.
    """
    held = pd.concat([each.chosen for each in found]).dropna(subset=["class_heatmaps", "labels"])
    names = sorted({*np.concatenate([[], *held.drop_duplicates("instances")["labels"]])})
    if not names:
        raise ResultsError(
            "--class: there are no heat maps by class at this cut. They are recorded at the end "
            "of a cell alone, of few classes, not by earlier versions nor by other loops. Leave "
            "it out."
        )
    if name not in names:
        raise ResultsError(f"--class: {unknown('class', name, names)}")


def _picture(figure: Figure, kind: str, *which: str, **facts: Any) -> Picture:
    """A figure with its title and caption; its file is named by its kind, and which it is."""
    title, caption = paragraphs("captions.j2", kind=kind, **facts)
    return Picture(file_stem(kind, *which), title, caption, figure)


def _differences(comparison: Comparison) -> Iterator[Picture]:
    known = comparison.paired[comparison.paired["num_pairs"] > 0]
    for metric, paired in known.groupby("metric", sort=False):
        of_pairs = {}
        for first, second in zip(paired["first"], paired["second"], strict=True):
            rows = comparison.tested(first, second)
            rows = rows[rows["split"] == "test"]
            scores = rows.pivot(index="seed", columns="paradigm", values=metric)
            of_pairs[first, second] = scores[first] - scores[second]
        seeds = pd.concat(of_pairs, names=["first", "second"]).dropna().rename("difference")
        name = comparison.names[str(metric)]
        unit = comparison.measures[str(metric)].unit
        figure = forest_figure(paired, seeds.reset_index(), name, unit)
        of = {"comparison": comparison, "name": name, "paired": paired, "unit": unit}
        yield _picture(figure, "differences", str(metric), **of)


def _heat_maps(comparison: Comparison) -> Iterator[Picture]:
    modality, threshold = comparison.modality, comparison.threshold
    saif = comparison.measures["saif"].at(threshold)
    of_chosen = comparison.chosen, comparison.choice
    maps = {split: mean_heatmaps(*of_chosen, split) for split in ("test", "validation", "train")}
    if maps["train"] and not modality.partly:
        del maps["validation"]  # it is as the test split
    for split, heatmaps in maps.items():
        if heatmaps:
            seeds = _of_planned(comparison, heatmap_seeds(*of_chosen, split))
            figure = heatmap_figure(heatmaps, threshold, seeds, comparison.task)
            of = {"comparison": comparison, "of_split": split, "saif": saif}
            yield _picture(figure, "heatmaps", split, **of, seeds=seeds)


def _of_class(comparison: Comparison, name: str | None) -> Iterator[Picture]:
    """The heat maps of one class on the test split."""
    if name is None:
        return
    rows = comparison.chosen.dropna(subset=["class_heatmaps", "labels"])
    bins = len(comparison.modality.heatmap_edges) - 1
    maps = (
        np.reshape(held, (-1, bins**2))[np.unique(labels) == name]
        for held, labels in zip(rows["class_heatmaps"], rows["labels"], strict=True)
    )
    of_class = pd.Series([each[0] if len(each) else None for each in maps], rows.index, object)
    of_chosen = rows.assign(heatmap=of_class), comparison.choice
    if heatmaps := mean_heatmaps(*of_chosen):
        seeds = _of_planned(comparison, heatmap_seeds(*of_chosen))
        figure = heatmap_figure(heatmaps, comparison.threshold, seeds, comparison.task)
        saif = comparison.measures["saif"].at(comparison.threshold)
        of = {"comparison": comparison, "name": name, "saif": saif, "seeds": seeds}
        yield _picture(figure, "heatmaps-class", name, **of)


def _curves(comparison: Comparison) -> Iterator[Picture]:
    axis, confidence = comparison.axis, float(comparison.summary["confidence"].iloc[0])
    ends = comparison.chosen[comparison.chosen["split"] == "test"]
    for metric, name in comparison.names.items():
        whole = learning_curve(comparison.evaluations, metric, "test", confidence, axis)
        curve = common(whole)
        if curve.empty:
            continue
        seeds = _of_planned(comparison, curve.groupby("paradigm", sort=False)["num_cells"].max())
        label, scores = _label(comparison, metric), ends.assign(score=ends[metric])
        measure = comparison.measures[metric]
        figure = compute_figure(curve, label, scores, axis, comparison.noun, seeds, measure.unit)
        early = len(curve) < len(whole)
        of = {"comparison": comparison, "name": name, "seeds": seeds, "early": early}
        of |= {"lost": measure.lost_text}
        yield _picture(figure, "compute", metric, **of)


def _responses(comparison: Comparison) -> Iterator[Picture]:
    options, levels = comparison.options, comparison.choice
    levels = levels[levels["paradigm"].isin(REFERENCES)]
    for kind, axis, beside in (
        ("switch-point", "switch_point", levels),
        ("learning-rate", "lr", levels[:0]),
    ):
        reached = response(comparison.at_budget, options, axis, comparison.select)
        of = {"options": options, "response": reached, "levels": beside}
        for metric, name in comparison.names.items() if reached[axis].nunique() > 1 else ():
            drawn = reached, axis, metric, _label(comparison, metric), beside
            figure = response_figure(*drawn, comparison.measures[metric].unit)
            yield _picture(figure, kind, metric, **of, name=name, most=MAX_RATES)


def _gallery(comparison: Comparison) -> Iterator[Picture]:
    """The pictures of inputs that its modality has; none of most."""
    if own := comparison.modality.gallery:
        yield from imported(own.place)(comparison)


def _label(comparison: Comparison, metric: str) -> str:
    """The axis of a metric, with its unit."""
    name = comparison.names[metric]
    if comparison.measures[metric].unit is not SHARES:
        return name
    of_instances = metric in METRICS and comparison.modality.chance
    return f"{name} ({'% of instances' if of_instances else '%'})"


def _of_planned(comparison: Comparison, counts: Mapping[Any, int] | pd.Series) -> dict[str, str]:
    """Paradigm -> ``12``, or ``6 of 12`` where some of the planned seeds are missing."""
    planned = comparison.summary.set_index("paradigm")["most_seeds"]
    return {str(name): of_planned(str(n), planned.get(name, n)) for name, n in counts.items()}


def family_pictures(family: Family) -> Iterator[Picture]:
    """Scores against each factor that varies alone, and a difference over each grid of two."""
    task, base = family.task, family.base.comparison
    names = base.names
    of: dict[str, Any] = {"family": family, "confidence": CONFIDENCE, "names": [*names.values()]}
    if each_level := [*_levels(family)]:
        levels = pd.concat(each_level)
        units = {_label(base, metric): base.measures[metric].unit for metric in base.metrics}
        figure = factors_figure(levels, units)
        yield _picture(figure, "across-factors", task, **of, levels=levels)
    metric, name = next(iter(names.items()))
    for grid in family.grids():
        settings = family.plane(grid)  # the base first
        found = verdicts([each.comparison for each in settings])
        found = found[found["metric"] == metric].assign(base=found["setting"] == 0)
        for axis, factor in zip(("row", "column"), grid, strict=True):
            values = [settings[number].values[factor] for number in found["setting"]]
            ordered = pd.Categorical(values, sorted({*values}, key=by_value))
            found[axis] = ordered.rename_categories(value_text)
        for (first, second), table in [*found.groupby(["first", "second"], sort=False)][:1]:
            row, column = (factor_name(factor, task) for factor in grid)
            what = f"{name}, {first} minus {second}"
            unit = base.measures[metric].unit
            in_unit = f"{what} ({unit.of_change.strip()})" if unit.of_change else what
            figure = grid_figure(table, row, column, in_unit, unit)
            of |= {"what": what, "axes": [row, column], "unit": unit}
            yield _picture(figure, "across-grid", task, *grid, **of)


def _levels(family: Family) -> Iterator[pd.DataFrame]:
    """What `factors_figure` draws: of each factor that varies alone the base, then its levels."""
    base, columns = family.base.comparison, ["paradigm", "num_seeds", "mean", "low", "high"]
    for factor in family.factors:
        levels = family.levels(factor)
        for setting in [family.base, *levels] if levels else ():
            for metric in base.metrics:
                parts = {metric: "mean", f"{metric}_low": "low", f"{metric}_high": "high"}
                found = setting.comparison.summary.rename(columns=parts)
                yield found.reindex(columns=columns).assign(
                    factor=factor_name(factor, family.task),
                    value=setting.values[factor],
                    base=setting is family.base,
                    metric=_label(base, metric),
                )
