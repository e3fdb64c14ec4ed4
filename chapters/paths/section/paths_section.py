"""A setting as a section of the report, and the chapter that says of what kind it is.

Theory beside sampling (`theory_section`) and trained networks (`heads_section`) are each a
`Paths`: a declaration of what they show.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

from analysis.forms import aligned
from analysis.page.exports import LONG_COLUMNS
from analysis.rules.claim import Claim
from analysis.section.blocks import Block, Details, Heading, Text
from analysis.section.parts import again_blocks, claim_details, end_states, run_files
from analysis.section.picture import Picture, Shown
from analysis.section.section import Chapter
from analysis.section.summary import claims_note, summary_run
from chapters.paths.heads.heads_cell import SOLVED
from chapters.paths.posterior.posterior_cell import SLICE
from chapters.paths.section import findings, path_claims, path_pictures, path_tables, warnings
from chapters.paths.section.path_tables import Listing
from chapters.paths.section.settings import Setting
from study.tracking.runs import Run

_LISTS = [
    "path_names", "order_parameter", "order_parameter_error", "overlaps", "temperatures",
    "head_scores", "removal_order",
]  # fmt: skip
"""Columns of cells with a list in every row."""


class Part(NamedTuple):
    """What MLflow compares: its name, parameters and metrics."""

    name: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Paths:
    """What sections of one kind show; each function is called with a setting.

    Others, such as `path_claims.claims`, know by a setting's class what they say of it.

    Attributes:
        chapter: see `analysis.section.section.Chapter`.
        study: the study, as MLflow names it.
        says: what is asked, in a paragraph.
        method: how it was computed, in paragraphs.
        tables_of: stem of a file -> table at full precision.
        parts: what MLflow compares.
    """

    chapter: Chapter
    study: str
    says: str
    method: Sequence[str]
    tables_of: Mapping[str, Callable[[Any], pd.DataFrame]]
    parts: Callable[[Any], Iterable[Part]]


class PathsSection:
    """See `analysis.section.section.Section`.

    Args:
        paths: says what it shows.
        setting: what it is of.
    """

    template = "blocks"

    def __init__(self, paths: Paths, setting: Setting) -> None:
        self.paths, self.chapter, self.setting = paths, paths.chapter, setting
        self.finding = findings.paragraph(setting)
        self.facts = {"its": self}
        self.cells, self.key = setting.recorded, setting.id[:8]
        self.title = f"{paths.chapter.about}: {setting.name}"
        self.labels = {"task": setting.task, "variant": setting.label, "key": self.key}

    @functools.cached_property
    def claims(self) -> Sequence[Claim]:
        return path_claims.claims(self.setting)

    @functools.cached_property
    def pictures(self) -> Sequence[Picture]:
        return path_pictures.pictures(self.setting)

    def _listings(self, published: bool) -> list[Listing]:
        """All tables that have rows."""
        beside = [path_tables.beside_others(self.setting)] if published else []
        every = [*path_tables.listings(self.setting), *beside]
        return [each for each in every if each.table.rows]

    def text(self, published: bool = False) -> str:
        """For the terminal."""
        lines, shown = [self.title, ""], self._listings(published)
        for each in shown:
            lines += [each.heading, *aligned(*each.in_terminal()), ""]
        notes = [each.words for each in shown if each.of_others]
        notes += [note for each in shown for note in each.notes]
        lines += [f"note: {note}" for note in (*notes, *warnings.sentences(self.setting))]
        for claim in self.claims:
            verdict = ": ".join(filter(None, [claim.verdict, claim.why]))
            lines.append(f"{claim.name} {claim.statement.removesuffix('.')}: {verdict}")
        return "\n".join(lines)

    def tables(self) -> dict[str, pd.DataFrame]:
        """All that the section shows, and the numbers behind its figures."""
        return {name: make(self.setting) for name, make in self.paths.tables_of.items()}

    def cell_rows(self) -> pd.DataFrame:
        """Its cells with the short columns that they have."""
        return self.cells.drop(columns=[*LONG_COLUMNS, *_LISTS]).dropna(axis="columns", how="all")

    def blocks(self, shown: Sequence[Shown], results: str, published: bool = False) -> list[Block]:
        """The section below its heading."""
        setting, cells = self.setting, self.cells
        blocks: list[Block] = [Text(text, "warning") for text in warnings.sentences(setting)]
        blocks += [*([Heading("Figures")] if shown else []), *shown]
        for each in self._listings(published):
            said = [Text(note, "quiet") for note in each.notes]
            table = replace(each.table, csv=f"{each.stem}-{self.key}.csv")
            blocks.append(Details(each.heading, [Text(each.words), table, *said]))
        seeds = ", ".join(map(str, setting.seeds))
        code = ", ".join(sorted(set(cells["code_version"])))
        facts = f"{setting.said}, seeds {seeds}, code {code}."
        # Cells that train have no method, and rules no width.
        width = cells["network_width"].where(cells["method"].isin([*SOLVED, SLICE]), math.nan)
        states = cells.assign(network_width=width, method=cells["method"].fillna("training"))
        method = [Text(text) for text in (self.paths.says, facts, *self.paths.method)]
        return [
            *blocks,
            *claim_details(self.claims),
            Details("Cells by end state", end_states(states, "method", "network_width")),
            Details("How this was computed", method),
            Details("Repeat any cell", again_blocks(cells.iloc[0], results)),
        ]

    def summaries(self) -> list[Run]:
        """For MLflow: a summary of each part that has a seed."""
        files = functools.cache(lambda: run_files(self.tables(), self.pictures))
        return [
            summary_run(
                key=f"{self.setting.id}/{part.name}",
                named=[part.name, f"{self.paths.study} {self.setting.variant}"],
                note=claims_note(self.claims),
                params=part.params,
                metrics=part.metrics,
                files=files,
            )
            for part in self.paths.parts(self.setting)
            if part.metrics.get("n")
        ]
