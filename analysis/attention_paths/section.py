"""A setting of attention paths as a section of the report, and the chapter they make."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import pandas as pd

from analysis.attention_paths import agreement, means, prototype, tables
from analysis.attention_paths.answer import THEORY_SAYS, found, warnings
from analysis.attention_paths.claims import claims
from analysis.attention_paths.pictures import pictures
from analysis.attention_paths.settings import Setting, read
from analysis.attention_paths.summaries import summaries
from analysis.groups import is_posterior
from analysis.section.base import Chapter, Question
from analysis.section.blocks import Block, Details, Heading, Shown, Table, Text
from analysis.section.claim import Claim
from analysis.section.parts import (
    LONG_COLUMNS,
    claim_details,
    end_states,
    repeat_blocks,
)
from analysis.section.picture import Picture
from analysis.section.summary import run_files
from analysis.words import aligned
from study.results import Results
from study.tracking.runs import Run

_METHOD = (
    "Theory: the order parameter U at the saddle point of its action, found by a quasi-Newton "
    "method; its predictor is that of a Gaussian process whose kernel U combines from those of "
    "pairs of paths. Limit: the same with U the identity.",
    "Sampling: draws of U from its exact posterior, with the network's function integrated out "
    "(slice); R-hat is the largest of all quantities that were followed, the number of effective "
    "draws the smallest.",
    "Accuracy is that of the sign of the mean predictor, loss the negative log density of the "
    "label under the predictive distribution. Means and t intervals are over seeds; a seed draws "
    "the data and the random heads, so networks of one seed share both, and differences are "
    "paired.",
    "Distance from the limit and error of the mean: root mean square over the test split, as a "
    "share of the reference's root mean square.",
)
_LISTS = ["path_names", "order_parameter", "order_parameter_error", "overlaps"]
"""Columns of cells with a list in every row."""


class AttentionPaths(Chapter["Paths"]):
    """Asks whether paths of finite width work together as theory says."""

    name = "attention paths"
    about = "Attention paths"
    has_published = True

    def answer(self, sections: Sequence[Paths]) -> list[str]:
        """How many claims hold, and what was found in each setting."""
        found = [f"{each.title}. {each.found}" for each in sections if each.found]
        return [*super().answer(sections), *found]


ATTENTION_PATHS = AttentionPaths()


def mine(cells: pd.DataFrame) -> pd.Series:
    """Whether each row was solved or sampled; see `analysis.section.base.Kind`."""
    return is_posterior(cells)


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[Paths]:
    """One section a setting: plain, noisy, own.

    Args:
        results: the directory.
        cell_ids: ids of these cells, at least one.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: see `analysis.attention_paths.settings.read`.
    """
    return [Paths(setting) for setting in read(results, results.cells(cell_ids))]


class Paths:
    """See `analysis.section.base.Section`.

    Args:
        setting: what it shows.
    """

    chapter = ATTENTION_PATHS

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.cells = setting.recorded
        self.key = setting.id[:8]

    @property
    def title(self) -> str:
        return f"Attention paths: {self.setting.name}"

    @property
    def labels(self) -> dict[str, object]:
        first = self.setting.first
        return {"task": first["task"], "variant": first["variant"], "key": self.key}

    @functools.cached_property
    def networks(self) -> pd.DataFrame:
        """See `analysis.attention_paths.means.networks`."""
        return means.networks(self.setting)

    @functools.cached_property
    def agreement(self) -> pd.DataFrame:
        """See `analysis.attention_paths.agreement.agreement`."""
        return agreement.agreement(self.setting)

    @functools.cached_property
    def beside(self) -> pd.DataFrame:
        """See `analysis.attention_paths.prototype.beside`."""
        return prototype.beside(self.setting, self.networks)

    @property
    def found(self) -> str:
        """One paragraph, see `analysis.attention_paths.answer.found`."""
        return found(self.networks, self.agreement)

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """P1 to P6, as far as they are about the variant."""
        return claims(self.setting)

    @functools.cached_property
    def pictures(self) -> list[Picture]:
        """Accuracy, order parameter, alignment, interplay."""
        return pictures(self.setting, self.networks)

    def text(self, published: bool = False) -> str:
        """For the terminal."""
        lines = [self.title, ""]
        for heading, _, table in self._tables(published):
            lines += [heading, *aligned(*tables.in_terminal(table)), ""]
        if published and len(self.beside):
            lines += [f"note: {prototype.source(self.setting)}"]
        lines += [f"note: {text}" for text in warnings(self.setting)]
        for claim in self.claims:
            verdict = ": ".join(filter(None, [claim.verdict, claim.why]))
            lines.append(f"{claim.name} {claim.statement.removesuffix('.')}: {verdict}")
        return "\n".join(lines)

    def tables(self) -> dict[str, pd.DataFrame]:
        """Networks, agreement, order parameters, overlaps, and the prototype's numbers."""
        return {
            "attention-paths-networks": self.networks,
            "attention-paths-agreement": self.agreement,
            "attention-paths-order-parameters": means.order_parameters(self.setting),
            "attention-paths-overlaps": means.overlaps(self.setting),
            "attention-paths-prototype": self.beside,
        }

    def cell_rows(self) -> pd.DataFrame:
        """Its cells with the short columns that they have."""
        return self.cells.drop(columns=[*LONG_COLUMNS, *_LISTS]).dropna(axis="columns", how="all")

    def blocks(self, shown: Sequence[Shown], results: str, published: bool = False) -> list[Block]:
        """The section below its heading."""
        blocks: list[Block] = [Text(text, "warning") for text in warnings(self.setting)]
        blocks += [*([Heading("Figures")] if shown else []), *shown]
        for heading, text, table in self._tables(published):
            blocks.append(Details(heading, [Text(text), table]))
        method = [Text(text) for text in (THEORY_SAYS, self._setting_text(), *_METHOD)]
        return [
            *blocks,
            *claim_details(self.claims),
            Details("Cells by end state", end_states(self.cells, "method", "network_width")),
            Details("How this was computed", method),
            Details("Repeat any cell", repeat_blocks(str(self.cells["cell_id"].iloc[0]), results)),
        ]

    def summaries(self) -> list[Run]:
        """One summary a network that has a seed."""
        files = functools.cache(lambda: run_files(self.tables(), self.pictures))
        return summaries(self.setting, self.networks, self.agreement, self.claims, files)

    def _tables(self, published: bool) -> list[tuple[str, str, Table]]:
        """Heading, words and table of all that have rows."""
        shown = [
            (
                "Networks",
                "Mean over seeds on the test split. Minus limit: accuracy minus that of the limit "
                "with all paths, in points and paired by seed.",
                Table(*tables.network_cells(self.networks)),
            ),
            (
                "Interplay of paths",
                "Accuracy with the whole order parameter U, and with its off-diagonal set to 0; "
                "the difference is in points and paired by seed.",
                Table(*tables.interplay_cells(self.networks)),
            ),
            (
                "Theory against sampling",
                "Error of the mean: distance of theory's mean predictor from the sampled one; the "
                "sampling error, which is part of it, is what a finite number of draws leaves. "
                "Accuracy: theory minus sampled.",
                Table(*tables.agreement_cells(self.agreement)),
            ),
        ]
        if published:
            beside = Table(*tables.prototype_cells(self.beside), left=(0, 1))
            heading = "Beside the specification's prototype"
            shown.append((heading, prototype.source(self.setting), beside))
        return [each for each in shown if each[-1].rows]

    def _setting_text(self) -> str:
        first = self.setting.first
        seeds = ", ".join(map(str, sorted(set(self.cells["seed"]))))
        return (
            f"P={first['n']} training inputs of T={first['tokens']} tokens, noise sigma_perp "
            f"{first['sigma_perp']:g}, temperature {first['temperature']:g}, heads "
            f"{first['heads']}, seeds {seeds}, code "
            f"{', '.join(sorted(set(self.cells['code_version'])))}."
        )
