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
    "Test split, mean over the seeds of each paradigm's chosen option, with {level} t intervals "
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
    figures = {c.name: stacked(parts) for c in measured if (parts := _figures(c))}
    if not figures:
        return []
    mapped = any(mean_heatmaps(each.chosen, each.choice) for each in measured)
    caption = _CAPTION.format(**words) + _OF_HEAT_MAPS * mapped
    return [Interactive("Look closer", caption, figures)]


def _figures(comparison: Comparison) -> list[LayoutDOM]:
    from analysis.figures.interactive import curve_panels, threshold_panels

    confidence = confidence_of(comparison)
    axis, task, threshold = comparison.axis, comparison.task, comparison.threshold
    rows, choice = comparison.chosen, comparison.choice
    curves = {
        metric: common(learning_curve(comparison.evaluations, metric, "test", confidence, axis))
        for metric in comparison.metrics
    }
    parts: list[LayoutDOM] = []
    known = {metric: curve for metric, curve in curves.items() if curve["mean"].notna().any()}
    if known:
        budgeted = not comparison.recorded
        parts.append(curve_panels(known, threshold, axis, task, confidence, budgeted))
    if heatmaps := mean_heatmaps(rows, choice):
        shares = saif_by_threshold(rows, choice, task, "test", confidence)
        seeds = heatmap_seeds(rows, choice)
        parts.append(threshold_panels(heatmaps, seeds, shares, threshold, task, confidence))
    return parts
