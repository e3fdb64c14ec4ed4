"""Figures, and the numbers in them.

Every figure is a `matplotlib.figure.Figure` of its own, made under `style.own_settings`, so that
it depends neither on what a user has set nor on what was drawn before it. A figure shows a table
that it is given and computes nothing; `analysis.comparison.report.pictures` puts them together
with their captions.
"""

from __future__ import annotations

from analysis.figures.curves import compute_figure
from analysis.figures.forest import forest_figure
from analysis.figures.formats import figure_pdf, figure_png, figure_svg
from analysis.figures.heatmaps import heatmap_figure
from analysis.figures.response_figures import learning_rate_figure, switch_figure
from analysis.figures.style import metric_label

__all__ = [
    "compute_figure",
    "figure_pdf",
    "figure_png",
    "figure_svg",
    "forest_figure",
    "heatmap_figure",
    "learning_rate_figure",
    "metric_label",
    "switch_figure",
]
