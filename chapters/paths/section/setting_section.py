"""What sections of both kinds share: their cells as rows, and what MLflow compares."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pandas as pd

from analysis.forms import level, percent, points, three_decimals
from analysis.page.exports import LONG_COLUMNS
from analysis.rules.statistics import CONFIDENCE
from analysis.section.section import Chapter, Section
from analysis.section.summary import claims_note, summary_run
from analysis.section.templates import paragraphs
from chapters.paths.heads.heads_cell import SOLVED
from chapters.paths.posterior.posterior_cell import SLICE
from chapters.paths.section.networks import network_text, r_hat_text
from chapters.paths.section.settings import LONGER_CHAINS, Setting
from study.tracking.runs import Run

S = TypeVar("S", bound=Setting)

_LISTS = [
    "path_names", "order_parameter", "order_parameter_error", "overlaps", "temperatures",
    "head_scores", "removal_order",
]  # fmt: skip
"""Columns of cells with a list in every row."""

FORMS: Mapping[str, Callable[[float], str]] = {
    "percent": percent,
    "points": points,
    "r_hat": r_hat_text,
    "three_decimals": three_decimals,
    "two_decimals": "{:+.2f}".format,
    "two_digits": functools.partial(percent, digits=2),
}
"""Forms of numbers, for intervals."""


def section_of(
    chapter: Chapter, kind: str, setting: S, label: str, facts: Mapping[str, Any], **what: Any
) -> Section[S]:
    """A section of a setting.

    Args:
        chapter: that it is part of.
        kind: names its templates: `theory` or `heads`.
        setting: what it is of.
        label: tells it apart in tables of several sections.
        facts: see `told`.
        what: the other attributes of `analysis.section.section.Section`.
    """
    key, cells = setting.id[:8], setting.recorded
    return Section(
        chapter=chapter,
        template=f"{__package__}:{kind}",
        title=f"{chapter.about}: {setting.name}",
        key=key,
        cells=cells,
        labels={"task": cells["task"].iloc[0], "variant": label, "key": key},
        subject=setting,
        tell=lambda _: facts,
        list_cells=cell_rows,
        finding=" ".join(sentences(f"{kind}_finding", **facts)),
        **what,
    )


def told(setting: Setting, template: str, **facts: Any) -> dict[str, Any]:
    """What templates of both kinds read, with what they say of a setting.

    Args:
        setting: what they are of.
        template: of `sentences`: what is missing or unusual.
        facts: what those of its kind read.
    """
    shared = {
        "setting": setting,
        "states": _states(setting),
        "name": network_text,
        "level": level(CONFIDENCE),
        "forms": FORMS,
        "longer_chains": LONGER_CHAINS,
        **facts,
    }
    return shared | {"gaps": sentences(template, **shared)}


def sentences(template: str, **facts: Any) -> list[str]:
    """The paragraphs of a template of this folder."""
    return paragraphs(f"{__package__}:sentences/{template}.j2", **facts)


def _states(setting: Setting) -> pd.DataFrame:
    """Its cells by method; those that train have none, and rules have no width."""
    cells = setting.recorded
    width = cells["network_width"].where(cells["method"].isin([*SOLVED, SLICE]), math.nan)
    return cells.assign(network_width=width, method=cells["method"].fillna("training"))


def cell_rows(setting: Setting) -> pd.DataFrame:
    """Its cells with the short columns that they have."""
    short = setting.recorded.drop(columns=[*LONG_COLUMNS, *_LISTS])
    return short.dropna(axis="columns", how="all")


def summary(
    section: Section[Any], name: str, params: Mapping[str, str], metrics: Mapping[str, float]
) -> Run:
    """What MLflow compares: a network, or a scorer, over its seeds, which are the metric `n`."""
    setting, study = section.subject, section.cells["study"].iloc[0]
    return summary_run(
        key=f"{setting.id}/{name}",
        named=[name, f"{study} {setting.variant}"],
        note=claims_note(section.claims),
        params=params,
        metrics={name: float(value) for name, value in metrics.items()},
        files=lambda: section.files,
    )
