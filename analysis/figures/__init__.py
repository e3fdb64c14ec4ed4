"""Figures, and the numbers in them.

Every figure is a `matplotlib.figure.Figure` of its own, made under `style.own_settings`, so that
it depends neither on what a user has set nor on what was drawn before it. A figure shows a table
that it is given and computes nothing; `analysis.page.pictures` puts them together with their
captions.
"""

from __future__ import annotations

from analysis.figures.curves import compute_figure, factors_figure, response_figure
from analysis.figures.forest import forest_figure
from analysis.figures.formats import figure_pdf, figure_png, figure_svg
from analysis.figures.tiles import grid_figure, heatmap_figure

__all__ = [
    "compute_figure",
    "factors_figure",
    "figure_pdf",
    "figure_png",
    "figure_svg",
    "forest_figure",
    "grid_figure",
    "heatmap_figure",
    "response_figure",
]
