"""The figures of comparisons that answer to a reader, of the same numbers as the static ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.comparison.compare import Comparison, metrics_of
from analysis.comparison.curves import common, learning_curve
from analysis.comparison.heat_maps import heatmap_seeds, mean_heatmaps, saif_by_threshold
from analysis.comparison.report.pictures import confidence_of
from analysis.section.blocks import Block, Interactive
from analysis.words import level, lost_scores

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM

_CAPTION = (
    "Test split, mean over the seeds of each paradigm's chosen option, with {level} intervals "
    "over seeds. A mark says its numbers when you point at it; a click on a paradigm above the "
    "curves hides it. A diverged seed counts as {lost}."
)
_OF_HEAT_MAPS = (
    " The slider sets from where on attention and score count for SAIF, outlined in the heat "
    "maps, whose cells say their numbers, too. Where it stands at first, the means are those of "
    "the tables, whose intervals are over images, too, where these are known. A diverged seed "
    "has no heat map."
)


def interactive_blocks(found: Sequence[Comparison]) -> list[Block]:
    """The figures of all comparisons, of which the reader sees one; none without any numbers."""
    measured = [comparison for comparison in found if len(comparison.summary)]
    if not measured:
        return []
    from analysis.figures.interactive import stacked

    words = {"level": level(confidence_of(measured[0]))}
    names = (comparison.task for comparison in measured)
    words["lost"] = lost_scores(*names, metrics=metrics_of(measured))
    curves = {each.name: _curves(each) for each in measured}
    maps = {each.name: _heat_maps(each) for each in measured}
    parts = {name: [*curves[name], *maps[name]] for name in curves}
    figures = {name: stacked(mine) for name, mine in parts.items() if mine}
    if not figures:
        return []
    caption = _CAPTION.format(**words) + (_OF_HEAT_MAPS if any(maps.values()) else "")
    return [Interactive("Look closer", caption, figures)]


def _curves(comparison: Comparison) -> list[LayoutDOM]:
    """The panels of the metrics of which all seeds have a mean; none without any."""
    from analysis.figures.interactive import curve_panels

    confidence, axis = confidence_of(comparison), comparison.axis
    curves = {
        metric: common(learning_curve(comparison.evaluations, metric, "test", confidence, axis))
        for metric in comparison.metrics
    }
    known = {metric: curve for metric, curve in curves.items() if curve["mean"].notna().any()}
    if not known:
        return []
    look = (comparison.threshold, axis, comparison.task, confidence)
    return [curve_panels(known, *look, budgeted=not comparison.recorded)]


def _heat_maps(comparison: Comparison) -> list[LayoutDOM]:
    """SAIF at each threshold, above the heat maps; none where no cell has one."""
    from analysis.figures.interactive import threshold_panels

    rows, choice, task = comparison.chosen, comparison.choice, comparison.task
    heatmaps = mean_heatmaps(rows, choice)
    if not heatmaps:
        return []
    confidence = confidence_of(comparison)
    shares = saif_by_threshold(rows, choice, task, "test", confidence)
    seeds = heatmap_seeds(rows, choice)
    return [threshold_panels(heatmaps, seeds, shares, comparison.threshold, task, confidence)]
