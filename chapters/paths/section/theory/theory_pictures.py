"""Figure 2 (c to e) of the paper from a setting, and what the interplay of paths brings."""

from __future__ import annotations

import math
from collections.abc import Iterator

from analysis.section.picture import Picture
from chapters.paths.figures.path_figures import accuracy_figure, order_parameter_figure
from chapters.paths.posterior.posterior_cell import LIMIT, SLICE, THEORY
from chapters.paths.section.means import mean_order_parameter
from chapters.paths.section.networks import line, network_text, path_text
from chapters.paths.section.path_pictures import alignment, evenly, marks, picture
from chapters.paths.section.settings import LEADING, Setting
from chapters.paths.section.theory.theory_settings import networks

_MOST_COLUMNS = 8
"""Matrices side by side, so that a page shows them at a readable size."""


def pictures(setting: Setting) -> list[Picture]:
    """Accuracy, order parameter, alignment and interplay, as far as there are numbers."""
    return [
        *_accuracy(setting),
        *_order_parameter(setting),
        *alignment(setting, "attention-paths-alignment", LEADING),
        *_interplay(setting),
    ]


def _accuracy(setting: Setting) -> Iterator[Picture]:
    there = networks(setting).query("num_seeds > 0")
    if len(there):
        by_name = {"theory": line(there, THEORY), "sampled": line(there, SLICE)}
        lines = {name: marks(rows, "accuracy") for name, rows in by_name.items() if len(rows)}
        ends = there[there["method"] == LIMIT].to_dict("records")
        limits = {network_text(row): 100 * row["accuracy"] for row in ends}
        counts = there["num_seeds"]
        yield picture(accuracy_figure(lines, limits), "attention-paths-accuracy", counts=counts)


def _order_parameter(setting: Setting) -> Iterator[Picture]:
    """As many widths as have room beside the limit, the ends among them, the others evenly."""
    widths = sorted({*setting.widths_of(THEORY), *setting.widths_of(SLICE)})
    shown = evenly(widths, _MOST_COLUMNS - 1)
    rows = {
        method: [mean_order_parameter(setting, method, width) for width in shown]
        for method in (THEORY, SLICE)
    }
    rows = {name: found for name, found in rows.items() if any(u is not None for u in found)}
    if not rows:
        return
    names = [path_text(name) for name in max(setting.rows["path_names"], key=len)]
    columns = [f"N={width:g}" for width in shown]
    identity = mean_order_parameter(setting, LIMIT, math.inf)
    if identity is not None:
        columns.append("limit")
        rows = {name: [*u, identity if name == THEORY else None] for name, u in rows.items()}
    facts = {"names": names, "left_out": len(widths) - len(shown)}
    figure = order_parameter_figure(rows, columns, names)
    yield picture(figure, "attention-paths-order-parameter", **facts)


def _interplay(setting: Setting) -> Iterator[Picture]:
    theory = line(networks(setting), THEORY).query("num_seeds > 0")
    theory = theory.dropna(subset="accuracy_diagonal")
    if len(theory):
        lines = {
            "whole U": marks(theory, "accuracy"),
            "diagonal of U alone": marks(theory, "accuracy_diagonal"),
        }
        figure, counts = accuracy_figure(lines, filled=True), theory["num_seeds"]
        yield picture(figure, "attention-paths-interplay", counts=counts)
