"""The figures of a comparison, and of what settings change, with their captions.

What they say stands in ``templates/captions.j2``, by the kind of a picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.digest.choose import MAX_RATES, response
from analysis.digest.compare import Comparison
from analysis.digest.effects import verdicts
from analysis.digest.factors import Family, by_value, factor_name, value_text
from analysis.digest.means import common, heatmap_seeds, learning_curve, mean_heatmaps
from analysis.digest.measures import METRICS, measures
from analysis.figures.curves import compute_figure, factors_figure, response_figure
from analysis.figures.forest import forest_figure
from analysis.figures.tiles import grid_figure, heatmap_figure
from analysis.forms import of_planned
from analysis.page.templates import paragraphs
from analysis.rules.statistics import CONFIDENCE
from analysis.section.picture import Picture, file_stem
from study.door import imported

REFERENCES = ("hard", "hard-sampled", "hard-running", "soft")
"""Paradigms without a switch point whose level stands beside the response to it."""


def pictures(comparison: Comparison) -> list[Picture]:
    """Every figure that the comparison has the data for, in the order of the report.

    Left out are differences of fewer than two paradigms, missing heat maps, and responses to a
    single learning rate or switch point. Without any option that has numbers there is no picture.
    """
    if comparison.summary.empty:
        return []
    kinds = _differences, _heat_maps, _curves, _responses, _gallery
    return [picture for kind in kinds for picture in kind(comparison)]


def heat_map_pictures(comparison: Comparison) -> list[Picture]:
    """Its heat maps alone."""
    return [*_heat_maps(comparison)]


def _picture(figure: Figure, kind: str, *which: str, **facts: Any) -> Picture:
    """A figure with its title and caption; its file is named by its kind, and which it is."""
    title, caption = paragraphs("captions.j2", kind=kind, **facts)
    return Picture(file_stem(kind, *which), title, caption, figure)


def _differences(comparison: Comparison) -> Iterator[Picture]:
    known = comparison.paired[comparison.paired["num_pairs"] > 0]
    for metric in known["metric"].unique():
        paired = known[known["metric"] == metric]
        of_pairs = {}
        for first, second in zip(paired["first"], paired["second"], strict=True):
            rows = comparison.tested(first, second).query("split == 'test'")
            scores = rows.pivot(index="seed", columns="paradigm", values=metric)
            of_pairs[first, second] = scores[first] - scores[second]
        seeds = pd.concat(of_pairs, names=["first", "second"]).dropna().rename("difference")
        name = comparison.names[metric]
        figure = forest_figure(paired, seeds.reset_index(), name)
        of = {"comparison": comparison, "name": name, "paired": paired}
        yield _picture(figure, "differences", metric, **of)


def _heat_maps(comparison: Comparison) -> Iterator[Picture]:
    maps = {
        split: mean_heatmaps(comparison.chosen, comparison.choice, split)
        for split in ("test", "validation", "train")
    }
    if maps["train"] and not comparison.modality.partly:
        del maps["validation"]  # it is as the test split
    saif = measures(comparison.task)["saif"].at(comparison.threshold)
    for split, heatmaps in maps.items():
        if heatmaps:
            counts = heatmap_seeds(comparison.chosen, comparison.choice, split)
            seeds = _of_planned(comparison, counts)
            figure = heatmap_figure(heatmaps, comparison.threshold, seeds, comparison.task)
            of = {"comparison": comparison, "of_split": split, "saif": saif}
            yield _picture(figure, "heatmaps", split, **of, seeds=seeds)


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
        figure = compute_figure(curve, label, scores, axis, comparison.noun, seeds)
        early = len(curve) < len(whole)
        own = (each for each in comparison.metrics if each not in METRICS)
        lost = measures(comparison.task, own)[metric].lost_text
        of = {"comparison": comparison, "name": name, "seeds": seeds, "lost": lost, "early": early}
        yield _picture(figure, "compute", metric, **of)


def _responses(comparison: Comparison) -> Iterator[Picture]:
    options, choice = comparison.options, comparison.choice
    levels = choice[choice["paradigm"].isin(REFERENCES)]
    for kind, axis, beside in (
        ("switch-point", "switch_point", levels),
        ("learning-rate", "lr", levels[:0]),
    ):
        reached = response(comparison.at_budget, options, axis, comparison.select)
        if reached[axis].nunique() < 2:
            continue
        for metric, name in comparison.names.items():
            label = _label(comparison, metric)
            figure = response_figure(reached, axis, metric, label, beside)
            of = {"name": name, "response": reached, "levels": beside, "options": options}
            yield _picture(figure, kind, metric, **of, most=MAX_RATES)


def _gallery(comparison: Comparison) -> Iterator[Picture]:
    """The pictures of inputs that its modality has; none of most."""
    if own := comparison.modality.gallery:
        yield from imported(own.place)(comparison)


def _label(comparison: Comparison, metric: str) -> str:
    """The axis of a metric, with its unit."""
    of_instances = metric in METRICS and comparison.modality.chance
    return f"{comparison.names[metric]} ({'% of instances' if of_instances else '%'})"


def _of_planned(comparison: Comparison, counts: Mapping[Any, int] | pd.Series) -> dict[str, str]:
    """Paradigm -> ``12``, or ``6 of 12`` where some of the planned seeds are missing."""
    planned = comparison.summary.set_index("paradigm")["most_seeds"]
    return {str(name): of_planned(str(n), planned.get(name, n)) for name, n in counts.items()}


def family_pictures(family: Family) -> Iterator[Picture]:
    """Scores against each factor that varies alone, and a difference over each grid of two."""
    task, names = family.task, family.base.comparison.names
    of: dict[str, Any] = {"family": family, "confidence": CONFIDENCE, "names": [*names.values()]}
    if factors := [factor for factor in family.factors if family.levels(factor)]:
        levels = pd.concat(each for factor in factors for each in _levels(family, factor))
        yield _picture(factors_figure(levels), "across-factors", task, **of, levels=levels)
    metric, name = next(iter(names.items()))
    for grid in family.grids():
        row, column = (factor_name(factor, task) for factor in grid)
        settings = family.plane(grid)
        found = verdicts([each.comparison for each in settings])
        found = found[found["metric"] == metric]
        for (first, second), table in [*found.groupby(["first", "second"], sort=False)][:1]:
            own = [settings[number] for number in table["setting"]]
            table = table.assign(base=[each is family.base for each in own])
            for axis, factor in zip(("row", "column"), grid, strict=True):
                values = sorted({each.values[factor] for each in settings}, key=by_value)
                texts = [value_text(each.values[factor]) for each in own]
                table[axis] = pd.Categorical(texts, [*map(value_text, values)])
            what = f"{name}, {first} minus {second}"
            figure = grid_figure(table, row, column, f"{what} (points)")
            yield _picture(figure, "across-grid", task, *grid, **of, what=what, axes=[row, column])


def _levels(family: Family, factor: str) -> Iterator[pd.DataFrame]:
    """What `factors_figure` draws of a factor: the base and its levels."""
    base = family.base.comparison
    settings = [family.base, *family.levels(factor)]
    named = any(isinstance(each.values[factor], str) for each in settings)
    if not named:
        settings.sort(key=lambda each: by_value(each.values[factor]))
    for setting in settings:
        value, found = setting.values[factor], setting.comparison
        for metric in (each for each in base.metrics if each in found.metrics):
            columns = ["paradigm", "num_seeds", metric, f"{metric}_low", f"{metric}_high"]
            rows = found.summary[columns]
            rows = rows.set_axis(["paradigm", "num_seeds", "mean", "low", "high"], axis="columns")
            yield rows.assign(
                factor=factor_name(factor, family.task),
                value=value_text(value) if named else value,
                base=setting is family.base,
                metric=_label(base, metric),
            )
