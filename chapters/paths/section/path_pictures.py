"""What figures of both kinds of sections share; their captions stand in `captions.j2`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.forms import level
from analysis.rules.statistics import CONFIDENCE, interval_columns
from analysis.section.picture import Picture
from analysis.section.templates import paragraphs
from chapters.paths.figures.path_figures import overlap_figure
from chapters.paths.posterior.posterior_cell import LIMIT, THEORY
from chapters.paths.section.means import overlaps
from chapters.paths.section.networks import of_network
from chapters.paths.section.settings import Setting

CAPTIONS = "chapters.paths.section:sentences/captions.j2"


def picture(figure: Figure, name: str, /, **facts: Any) -> Picture:
    """A figure with its title and caption, which are those of its name."""
    title, caption = paragraphs(CAPTIONS, kind=name, level=level(CONFIDENCE), **facts)
    return Picture(name, title, caption, figure)


def marks(
    table: pd.DataFrame, measure: str, x: str = "network_width", unit: float = 100
) -> pd.DataFrame:
    """A measure against a column, as figures take it: `x`, and in a unit `mean`, `low`, `high`."""
    values = unit * table[interval_columns(measure)].astype(float)
    return values.set_axis(["mean", "low", "high"], axis="columns").assign(x=table[x])


def evenly(values: Sequence[float], most: int) -> list[float]:
    """At most so many of the values, both ends among them, the others evenly."""
    places = np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)
    return [values[place] for place in np.unique(places)]


def alignment(setting: Setting, name: str, leading: int) -> list[Picture]:
    """So many principal components of the kernel at the smallest width and in the limit."""
    table = overlaps(setting).query(f"component <= {leading}")
    theory, limit = of_network(table, THEORY, setting.reference), of_network(table, LIMIT)
    if theory.empty or limit.empty:
        return []
    both = (marks(rows, "overlap", "component", 1) for rows in (theory, limit))
    figure = overlap_figure(setting.reference_text, *both)
    counts = [*theory["num_seeds"], *limit["num_seeds"]]
    return [picture(figure, name, leading=leading, counts=counts)]
