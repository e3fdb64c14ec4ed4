"""Figures that answer to a reader: curves that say their numbers, SAIF at every threshold.

Bokeh, which draws them in the reader's browser, takes a second to import: import this module late.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from bokeh.layouts import column, row
from bokeh.models import (
    CategoricalSlider,
    Column,
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    GlyphRenderer,
    HoverTool,
    LayoutDOM,
    Legend,
    LegendItem,
    Range1d,
    Row,
)
from bokeh.plotting import figure
from numpy.typing import NDArray

from analysis.figures.curves import x_unit
from analysis.figures.heatmaps import text_colour
from analysis.figures.style import (
    VERMILION,
    LineStyle,
    by_paradigm,
    line_styles,
    metric_label,
    seeds_label,
)
from analysis.groups import AXES, Axis, paradigm_order
from analysis.words import amount, between, capital, instances, level, metric_name, percent
from study import tasks

_DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dashdot"}
_MARKERS = {
    "s": "square", "o": "circle", "^": "triangle", "D": "diamond", "v": "inverted_triangle",
    "X": "square_x", "P": "square_cross", "<": "triangle_pin", ">": "triangle_dot",
    "d": "diamond_dot",
}  # fmt: skip
"""Matplotlib's names -> Bokeh's; any other marker is a circle."""

_POWER = re.compile(r"\$10\^\{(\d+)\}\$")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

_NARROWEST = 300  # pixels of a panel, on a phone
_LETTER, _HANDLE = 7, 32  # pixels of a legend's entry
_BESIDE = 2.0  # points that an axis of shares shows beyond its data

_AT_THRESHOLD = """
shown.data = sources[this.value].data
outline.data = {first: [firsts[this.value]]}
title.text = titles[this.value]
"""


def curve_panels(
    curves: Mapping[str, pd.DataFrame],
    threshold: float | None = None,
    axis: Axis = "flops",
    task: str = "",
    confidence: float = 0.95,
    budgeted: bool = True,
) -> Row:
    """Metrics against compute; a click on a paradigm in a legend hides it in all panels.

    Args:
        curves: metric -> as `analysis.comparison.curves.learning_curve` gives it, at the
            evaluations that all seeds have; a metric has at least one mean.
        threshold: of SAIF, for labels; None: the task's own.
        axis: what is compute here.
        task: of the curves; empty: of mosaics.
        confidence: of the intervals, in (0, 1).
        budgeted: whether the cells had a budget, of which marks say the share.
    """
    styles = line_styles(pd.concat(curves.values())["paradigm"])
    drawn: dict[str, list[GlyphRenderer]] = {name: [] for name in styles}
    noun = instances(task)
    columns = max(1, min(len(styles), _NARROWEST // (_HANDLE + _LETTER * max(map(len, styles)))))
    panels = []
    for metric, curve in curves.items():
        unit, x_label = x_unit(axis, curve[AXES[axis]].max(), noun)
        panel = _panel(
            height=310 + 26 * math.ceil(len(styles) / columns),  # with its legend
            min_width=_NARROWEST,
            x_axis_label=_POWER.sub(lambda power: f"10{power[1].translate(_RAISED)}", x_label),
            y_axis_label=metric_label(metric, threshold, task),
            y_range=_range(curve),
        )
        for name, line in by_paradigm(curve).items():
            x = line[AXES[axis]]
            source = _source(
                line,
                x=x.to_numpy(float) / unit,
                spent=[amount(each, axis, noun) for each in x],
                share=[percent(each, 0) for each in line["budget_fraction"]],
            )
            drawn[name] += _line(panel, source, styles[name])
        score = capital(metric_name(metric, threshold, task))
        spent = {"spent": "@spent"} | ({"of the budget": "@share %"} if budgeted else {})
        _hover(panel, _said(score, confidence) | spent)
        panels.append(panel)
    for panel in panels:
        legend = Legend(
            # The lines of all panels, so that a click hides them in all.
            items=[LegendItem(label=name, renderers=lines) for name, lines in drawn.items()],
            orientation="horizontal",
            ncols=columns,
            click_policy="hide",
            location="left",
            margin=0,
            border_line_alpha=0,
            label_text_font_size="12px",
            label_standoff=3,
            spacing=8,
        )
        panel.add_layout(legend, "above")
    return row(*panels, sizing_mode="stretch_width", styles={"flex-wrap": "wrap"})


def threshold_panels(
    heatmaps: Mapping[str, NDArray[np.float64]],
    seeds: Mapping[str, int],
    shares: pd.DataFrame,
    threshold: float,
    task: str = "",
    confidence: float = 0.95,
) -> Column:
    """SAIF of each paradigm, and the heat maps that hold it, at a threshold that a slider sets.

    Args:
        heatmaps: paradigm -> (bins, bins) fractions of the instances, axis 0 = a_z, axis 1 = s_y.
        seeds: paradigm -> n of its heat map.
        shares: as `analysis.comparison.heat_maps.saif_by_threshold` gives it.
        threshold: where the slider begins, one of those in `shares`.
        task: gives the edges of the bins; empty: of mosaics.
        confidence: of the intervals in `shares`, in (0, 1).
    """
    modality = tasks.modality(task)
    edges = modality.heatmap_edges
    at = {f"{edge:g}": edge for edge in edges[1:-1]}
    styles = line_styles(shares["paradigm"])
    sources = {}
    for text, edge in at.items():
        rows = shares[shares["threshold"] == edge]
        looks = [styles[name] for name in rows["paradigm"]]
        colours, markers = [look.colour for look in looks], [_marker(look) for look in looks]
        sources[text] = _source(rows, colour=colours, marker=markers)
    titles = {text: metric_name("saif", edge, task) for text, edge in at.items()}
    firsts = {text: edges.index(edge) for text, edge in at.items()}
    start = f"{threshold:g}"
    shown = ColumnDataSource(dict(sources[start].data), name="saif")
    outline = ColumnDataSource({"first": [firsts[start]]})

    panel = _panel(
        height=85 + 25 * len(styles),
        min_width=_NARROWEST,
        title=titles[start],
        x_axis_label=f"% of the {modality.counted}",
        x_range=Range1d(-_BESIDE, 118),  # with room for the numbers
        y_range=[*reversed(styles)],
    )
    panel.xaxis.ticker = FixedTicker(ticks=[*range(0, 101, 20)])
    look: dict[str, Any] = {"color": "colour", "source": shown}
    panel.segment("low", "paradigm", "high", "paradigm", line_width=2, **look)
    panel.scatter("mean", "paradigm", size=10, marker="marker", name="hover", **look)
    panel.text(102, "paradigm", "value", source=shown, **_text(12, "left"))
    _hover(panel, _said("SAIF", confidence))

    slider = CategoricalSlider(
        title="Threshold of SAIF, for attention and score",
        categories=[*at],
        value=start,
        sizing_mode="stretch_width",
        max_width=420,
    )
    known = {"shown": shown, "outline": outline, "title": panel.title}
    known |= {"sources": sources, "firsts": firsts, "titles": titles}
    slider.js_on_change("value", CustomJS(args=known, code=_AT_THRESHOLD))
    maps = [
        _heat_map(heatmaps[name], seeds_label(name, [seeds[name]]), outline, modality)
        for name in paradigm_order(heatmaps)
    ]
    # On a phone two beside each other.
    columns = "repeat(auto-fit, minmax(min(45%, 200px), 1fr))"
    grid = {"display": "grid", "grid-template-columns": columns}
    beside = row(*maps, sizing_mode="stretch_width", styles=grid)
    return column(slider, panel, beside, sizing_mode="stretch_width", spacing=8)


def stacked(parts: Sequence[LayoutDOM]) -> LayoutDOM:
    """Parts one above the other, as wide as the page."""
    return column(*parts, sizing_mode="stretch_width", spacing=12)


def _line(panel: figure, source: ColumnDataSource, style: LineStyle) -> list[GlyphRenderer]:
    """Draws band, line and marks of one paradigm."""
    dashes = style.dashes
    look: dict[str, Any] = {"color": style.colour, "source": source}
    return [
        panel.varea("x", "low", "high", fill_alpha=0.13, **look),
        panel.line(
            "x",
            "mean",
            line_width=2,
            line_dash=_DASHES[dashes] if isinstance(dashes, str) else [*map(round, dashes[1])],
            **look,
        ),
        panel.scatter("x", "mean", size=8, marker=_marker(style), name="hover", **look),
    ]


def _heat_map(
    heatmap: NDArray[np.float64],
    title: str,
    outline: ColumnDataSource,
    modality: tasks.Modality,
) -> figure:
    """A heat map as `analysis.figures.heatmaps` draws it; `outline` holds the first bin in it."""
    edges = modality.heatmap_edges
    bins = len(edges) - 1
    around = Range1d(-0.05, bins + 0.05)
    panel = _panel(
        aspect_ratio=1,
        max_width=270,
        title=title,
        x_axis_label="a_z",
        y_axis_label="s_y",
        x_range=around,
        y_range=around,
    )
    spans = np.array([f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges)], object)
    a_z, s_y = np.indices((bins, bins)).reshape(2, -1)
    share = heatmap.ravel()
    source = ColumnDataSource(
        {
            "x": a_z,
            "y": s_y,
            "middle_x": a_z + 0.5,
            "middle_y": s_y + 0.5,
            "share": share,
            "value": [percent(each) for each in share],
            "ink": [text_colour(each) for each in share],
            "attention": spans[a_z],
            "score": spans[s_y],
        }
    )
    panel.block(
        "x", "y", 1, 1,
        fill_color="black", fill_alpha="share", line_color=None, source=source, name="hover",
    )  # fmt: skip
    ink: dict[str, Any] = {"text_color": "ink", "source": source}
    panel.text("middle_x", "middle_y", "value", **_text(10, "center"), **ink)
    panel.quad(
        "first", bins, bins, "first",
        fill_alpha=0, line_color=VERMILION, line_width=2.5, source=outline,
    )  # fmt: skip
    panel.title.text_font_size = "10px"
    panel.axis.ticker = FixedTicker(ticks=[*range(bins + 1)])
    panel.axis.major_label_overrides = {i: f"{edge:g}" for i, edge in enumerate(edges)}
    panel.grid.visible = False
    said = {
        "attention on the foreground": "@attention",
        "score of the true class": "@score",
        f"of the {modality.counted}": "@value %",
    }
    _hover(panel, said)
    return panel


def _panel(**settings: Any) -> figure:
    """A panel as wide as there is room, without tools."""
    panel = figure(tools="", toolbar_location=None, sizing_mode="stretch_width", **settings)
    panel.outline_line_color = None
    panel.axis.minor_tick_line_color = None
    panel.axis.axis_label_text_font_style = "normal"
    panel.grid.grid_line_alpha = 0.5
    return panel


def _hover(panel: figure, said: Mapping[str, str]) -> None:
    """Has the parts of a panel that are named ``hover`` say something: name -> text."""
    speaking = [each for each in panel.renderers if each.name == "hover"]
    panel.add_tools(HoverTool(renderers=speaking, tooltips=[*said.items()]))


def _said(score: str, confidence: float) -> dict[str, str]:
    """What a mark of `_source` says of itself."""
    interval = f"{level(confidence)} interval"
    return {"paradigm": "@paradigm (n=@n)", score: "@value %", interval: "@interval"}


def _source(rows: pd.DataFrame, **more: Any) -> ColumnDataSource:
    """Means and intervals, fractions in `rows`, in per cent and as texts; and more columns."""
    return ColumnDataSource(
        {
            "paradigm": rows["paradigm"].to_numpy(object),
            "n": rows["num_seeds"].astype(str).to_numpy(object),
            **{name: 100 * rows[name].to_numpy(float) for name in ("mean", "low", "high")},
            "value": [percent(each) for each in rows["mean"]],
            "interval": [
                between(low, high, percent)
                for low, high in zip(rows["low"], rows["high"], strict=True)
            ],
            **more,
        }
    )


def _range(rows: pd.DataFrame) -> Range1d:
    """Of an axis in per cent that shows means and intervals, as far as they are shares."""
    values = 100 * rows[["mean", "low", "high"]].to_numpy(float)
    low, high = max(np.nanmin(values), 0), min(np.nanmax(values), 100)
    return Range1d(low - _BESIDE, max(high, low + 5 * _BESIDE) + _BESIDE)


def _text(size: int, align: str) -> dict[str, Any]:
    return {"text_align": align, "text_baseline": "middle", "text_font_size": f"{size}px"}


def _marker(style: LineStyle) -> str:
    return _MARKERS.get(style.marker, "circle")
