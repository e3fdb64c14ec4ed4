"""A setting of one-shot images as a section of the report, and the chapter they make."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence

import pandas as pd

from analysis.attention_paths import means as of_paths
from analysis.comparison.report.limits import pair_notes
from analysis.groups import is_one_shot
from analysis.heads import means, paired, published, tables
from analysis.heads.answer import QUESTION, found
from analysis.heads.claims import claims
from analysis.heads.methods import SOLVED
from analysis.heads.pictures import pictures
from analysis.heads.settings import Setting, read
from analysis.heads.summaries import summaries
from analysis.heads.warnings import warnings
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
    "A seed draws the characters of each split, the episodes and the initial weights: it is a "
    "network, and networks are the sample. Intervals are t intervals over networks, and "
    "differences are paired by network. All seeds split the same characters anew, so their test "
    "splits overlap: what is decided holds for further splits of these characters, not for other "
    "characters.",
    "Theory: the order parameter U at the saddle point of its action, with the attention that the "
    "network learned; its predictor is that of a Gaussian process. Limit: the same with U the "
    "identity.",
    "Score of a head: sum of |U| over the pairs of paths that pass it, divided by the largest. "
    "Pruning: the head is set to zero in the trained network, whose layer divides by the square "
    "root of the remaining heads, and nothing is trained again; every layer keeps a head.",
    "Random: the mean over 1,000 random orders. Greedy: removes next the head whose removal "
    "leaves the best validation accuracy. Bound: the best of all sets of each size on the split "
    "itself.",
    "Verdicts: the area under the curve, the mean accuracy without 0, 1, ..., K heads, by theory "
    "minus by each other order. A row is decided if its test holds after Holm's correction over "
    "the table (p < 0.05) and there are at least 6 networks; a lost network counts against either "
    "verdict.",
)
_PAIRED = "Pruning by theory against other orders"
"""Heading of the table whose verdicts have notes of their own."""

_LISTS = [
    "path_names", "order_parameter", "overlaps", "temperatures", "head_scores", "removal_order",
]  # fmt: skip
"""Columns of cells with a list in every row."""


class OneShot(Chapter["Heads"]):
    """Asks whether a theory of a trained network's attention says which heads matter."""

    name = "one-shot images"
    about = "One-shot images"
    has_published = True

    def answer(self, sections: Sequence[Heads]) -> list[str]:
        """How many claims hold, and what was found in each setting."""
        found = [f"{each.title}. {each.found}" for each in sections if each.found]
        return [*super().answer(sections), *found]


ONE_SHOT = OneShot()


def mine(cells: pd.DataFrame) -> pd.Series:
    """Whether each row trained a network of one-shot images, or scored its heads."""
    return is_one_shot(cells)


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[Heads]:
    """One section a setting.

    Args:
        results: the directory.
        cell_ids: ids of these cells, at least one.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: see `analysis.heads.settings.read`.
    """
    return [Heads(setting) for setting in read(results, results.cells(cell_ids))]


class Heads:
    """See `analysis.section.base.Section`.

    Args:
        setting: what it shows.
    """

    chapter = ONE_SHOT

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.cells = setting.recorded
        self.key = setting.id[:8]

    @property
    def title(self) -> str:
        return f"One-shot images: {self.setting.name}"

    @property
    def labels(self) -> dict[str, object]:
        return {"task": self.setting.task, "variant": self.setting.name, "key": self.key}

    @functools.cached_property
    def trained(self) -> pd.DataFrame:
        """See `analysis.heads.means.trained`."""
        return means.trained(self.setting)

    @functools.cached_property
    def networks(self) -> pd.DataFrame:
        """See `analysis.heads.means.networks`."""
        return means.networks(self.setting)

    @functools.cached_property
    def pruning(self) -> pd.DataFrame:
        """See `analysis.heads.means.pruning`."""
        return means.pruning(self.setting)

    @functools.cached_property
    def areas(self) -> pd.DataFrame:
        """See `analysis.heads.means.areas`."""
        return means.areas(self.setting)

    @functools.cached_property
    def ranks(self) -> pd.DataFrame:
        """See `analysis.heads.means.ranks`."""
        return means.ranks(self.setting)

    @functools.cached_property
    def paired(self) -> pd.DataFrame:
        """See `analysis.heads.paired.paired`."""
        return paired.paired(self.setting)

    @functools.cached_property
    def beside(self) -> pd.DataFrame:
        """See `analysis.heads.published.beside`."""
        return published.beside(self.setting, self.trained, self.ranks)

    @functools.cached_property
    def found(self) -> str:
        """One paragraph, see `analysis.heads.answer.found`."""
        correlations = means.correlations(self.setting)
        return found(self.setting, self.trained, self.networks, correlations, self.paired)

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """P7 to P9."""
        return claims(self.setting)

    @functools.cached_property
    def pictures(self) -> list[Picture]:
        """Accuracy, order parameter, alignment, scores, pruning."""
        return pictures(self.setting, self.trained, self.networks, self.pruning, self.ranks)

    def text(self, published: bool = False) -> str:
        """For the terminal."""
        lines = [self.title, ""]
        for heading, _, table in self._tables(published, brief=True):
            lines += [heading, *aligned(*tables.in_terminal(table)), ""]
        lines += [f"note: {text}" for text in self._notes(published)]
        for claim in self.claims:
            verdict = ": ".join(filter(None, [claim.verdict, claim.why]))
            lines.append(f"{claim.name} {claim.statement.removesuffix('.')}: {verdict}")
        return "\n".join(lines)

    def tables(self) -> dict[str, pd.DataFrame]:
        """All that the section shows, and the numbers behind its figures.

        Paths of the order parameters are named by rank: in each layer, head 1 has the highest
        score.
        """
        return {
            "heads-trained": self.trained,
            "heads-networks": self.networks,
            "heads-paired": self.paired,
            "heads-pruning": self.pruning,
            "heads-areas": self.areas,
            "heads-positions": means.positions(self.setting),
            "heads-ranks": self.ranks,
            "heads-correlations": means.correlations(self.setting),
            "heads-order-parameters": of_paths.order_parameters(means.by_score(self.setting)),
            "heads-overlaps": of_paths.overlaps(self.setting.solved),
            "heads-published": self.beside,
        }

    def cell_rows(self) -> pd.DataFrame:
        """Its cells with the short columns that they have."""
        return self.cells.drop(columns=[*LONG_COLUMNS, *_LISTS]).dropna(axis="columns", how="all")

    def blocks(self, shown: Sequence[Shown], results: str, published: bool = False) -> list[Block]:
        """The section below its heading."""
        blocks: list[Block] = [Text(text, "warning") for text in warnings(self.setting)]
        blocks += [*([Heading("Figures")] if shown else []), *shown]
        for heading, text, table in self._tables(published):
            notes = pair_notes(self.paired) if heading == _PAIRED else []
            said = [Text(note, "quiet") for note in notes]
            blocks.append(Details(heading, [Text(text), table, *said]))
        method = [Text(text) for text in (QUESTION, self._setting_text(), *_METHOD)]
        return [
            *blocks,
            *claim_details(self.claims),
            Details("Cells by end state", self._end_states()),
            Details("How this was computed", method),
            Details("Repeat any cell", repeat_blocks(str(self.cells["cell_id"].iloc[0]), results)),
        ]

    def summaries(self) -> list[Run]:
        """One summary of the trained networks, and one a method and width."""
        files = functools.cache(lambda: run_files(self.tables(), self.pictures))
        return summaries(self.setting, self.trained, self.networks, self.areas, self.claims, files)

    def _tables(self, with_published: bool, brief: bool = False) -> list[tuple[str, str, Table]]:
        """Heading, words and table of all that have rows; brief: for the terminal."""
        reference = self.setting.reference
        shown = [
            (
                "Trained networks",
                "What gradient descent reached at the end of training, mean over networks.",
                Table(*tables.trained_cells(self.trained)),
            ),
            (
                "Theory on the learned attention",
                "Mean over networks on the test split. Minus limit: accuracy minus that of the "
                "limit, in points and paired by network. Temperature: median and range of those "
                "chosen.",
                Table(*tables.network_cells(self.networks)),
            ),
            (
                _PAIRED,
                "Mean accuracy without 0, 1, ..., K heads, removed by theory's scores at the "
                "smallest width, minus the same by another order, paired by network. Would decide "
                "it: networks for a difference at the far end of the interval, to networks for "
                "one at the other end. No order can beat the bound.",
                Table(*tables.paired_cells(self.paired), left=(0, 1)),
            ),
            (
                "Accuracy without heads (%)",
                "Of the trained network on the test split, by the number of removed heads: mean "
                "over networks" + ("." if brief else ", in brackets its 95 % interval."),
                Table(*tables.pruning_cells(self.pruning, reference, brief)),
            ),
            (
                "Heads by rank of their score",
                "Score by theory at the smallest width, and accuracy lost on the test split "
                "without that head alone; rank 1 has the lowest score of its network.",
                Table(*tables.rank_cells(self.ranks)),
            ),
            (
                "Heads by place",
                "The same by place: heads of two networks at one place have nothing else in "
                "common, so that means of all places are alike unless layers differ.",
                Table(*tables.position_cells(means.positions(self.setting))),
            ),
        ]
        if with_published:
            cells = tables.published_cells(self.beside)
            shown.append(("Beside the published numbers", published.SOURCE, Table(*cells)))
        return [each for each in shown if each[-1].rows]

    def _notes(self, with_published: bool) -> list[str]:
        """Sentences below the tables of the terminal."""
        source = [published.SOURCE] if with_published and len(self.beside) else []
        return [*source, *pair_notes(self.paired), *warnings(self.setting)]

    def _end_states(self) -> list[Block]:
        """How the cells ended; those that train have no method, and rules no width."""
        named = self.cells.assign(method=self.cells["method"].fillna("training"))
        width = named["network_width"].where(named["method"].isin(SOLVED), math.nan)
        return end_states(named.assign(network_width=width), "method", "network_width")

    def _setting_text(self) -> str:
        seeds = ", ".join(map(str, self.setting.seeds))
        facts = ", ".join(self.setting.facts.values())
        return (
            f"{self.setting.task}: {facts}, seeds {seeds}, code "
            f"{', '.join(sorted(set(self.cells['code_version'])))}."
        )
