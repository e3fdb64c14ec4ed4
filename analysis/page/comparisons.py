"""Comparisons as sections of the report, and the chapter they make.

What is said of them stands in `templates/comparisons.j2`, for the terminal in
`templates/comparison.txt.j2`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.digest.claims import claims
from analysis.digest.compare import Comparison, compare_results
from analysis.digest.effects import across_tables
from analysis.digest.factors import families, setting_names
from analysis.digest.measures import measures
from analysis.page.across import across_facts, count_sentences
from analysis.page.exports import cell_rows, comparison_tables, for_papers
from analysis.page.pictures import family_pictures, heat_map_pictures, pictures
from analysis.page.sentences import (
    answer,
    method,
    over_what,
    said,
    said_once,
    saif,
    setting_text,
    table_one_notes,
)
from analysis.page.summaries import group_summaries
from analysis.page.table_one import table_one_rows
from analysis.page.tables import (
    comparison_cells,
    further_cells,
    option_table,
    pair_cells,
    setting_table,
    verdict_table,
)
from analysis.page.templates import printed
from analysis.page.where_it_looks import looks
from analysis.rules.claim import Claim, tallied
from analysis.rules.stages import cells_left
from analysis.section.blocks import Shown, Table
from analysis.section.parts import again_blocks, claim_blocks, claim_details, end_states
from analysis.section.picture import Picture
from analysis.section.section import Chapter, Question
from study.results import Results
from study.terminal import counted
from study.tracking.runs import Run

MOST_IN_FULL = 6
"""Settings of one report that show all of their figures: of more, a page would be too large."""


class Comparisons(Chapter["Compared"]):
    """Asks which paradigm is better at equal compute, and answers it."""

    name = about = "Attention at equal compute"
    template = "comparisons.j2"
    compares = has_published = True

    def names(self, sections: Sequence[Compared]) -> dict[Compared, str]:
        """What tells each setting from the base, which comes first."""
        of = {section.comparison: section for section in sections}
        return {of[each]: name for each, name in setting_names(_of(sections)).items()}

    def answer(self, sections: Sequence[Compared]) -> list[str]:
        """Who beats whom, in each setting or, of many, in how many; and how much is left."""
        answered = count_sentences if _are_many(sections) else answer
        left = self.cells_left(sections)
        more = counted(left, "planned cell is", "planned cells are")
        return [*answered(_of(sections)), *[f"{more} left."] * bool(left)]

    def cells_left(self, sections: Sequence[Compared]) -> int:
        return sum(cells_left(each.cells, each.choice) for each in _of(sections))

    def pictures(self, sections: Sequence[Compared]) -> list[Picture]:
        """What the settings of each task change."""
        of_families = (family_pictures(family) for family in families(_of(sections)))
        return [*itertools.chain(*of_families)]

    def facts(
        self,
        sections: Sequence[Compared],
        shown: Mapping[Compared, Sequence[Shown]],
        shared: Sequence[Shown],
        results: str,
        published: bool,
    ) -> dict[str, Any]:
        """What `comparisons.j2` reads."""
        found = _of(sections)
        trained = not all(each.recorded for each in found)
        return {
            "answer": self.answer(sections),
            "many": _are_many(sections),
            "saif": saif(found),
            "settings": [setting_text(each) for each in found if len(each.summary)],
            "tables": [*_answer_tables(found, published)],
            "two_sorts": said_once("two_sorts", found),
            "basis": said_once("basis", found),
            "limits": said_once("limits", found),
            "table_one": Table(*table_one_rows(found), csv="table1.csv") if trained else None,
            "table_one_notes": table_one_notes(found) if trained else [],
            "shared": shared,
            **across_facts(found),
            "data": said_once("data", found),
            "how": method(found),
            "sections": {each: each.facts(shown[each], results) for each in sections},
        }

    def tables(self, sections: Sequence[Compared]) -> dict[str, pd.DataFrame]:
        """Each table with the rows of all comparisons."""
        found = _of(sections)
        return comparison_tables(found) | across_tables(found)

    def papers(self, sections: Sequence[Compared]) -> dict[str, str]:
        """Table 1 and the paired differences."""
        return for_papers(_of(sections))


COMPARISONS = Comparisons()


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison as a section of the report; see `analysis.section.section.Section`.

    Attributes:
        comparison: the comparison.
        num_settings: how many its page has.
    """

    comparison: Comparison
    num_settings: int = 1

    @property
    def one_of_many(self) -> bool:
        """Whether its page has so many that it shows no figures but heat maps."""
        return self.num_settings > MOST_IN_FULL

    @property
    def chapter(self) -> Comparisons:
        return COMPARISONS

    @property
    def title(self) -> str:
        return self.comparison.name

    @property
    def key(self) -> str:
        return self.comparison.key

    @property
    def cells(self) -> pd.DataFrame:
        return self.comparison.cells

    @property
    def labels(self) -> dict[str, object]:
        comparison = self.comparison
        return {
            "task": comparison.task,
            "m": comparison.m,
            "architecture": comparison.architecture,
            "comparison_id": comparison.id,
            "axis": comparison.axis,
            "threshold": comparison.threshold,
        }

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """C1 to C6, C16 and C17."""
        return claims(self.comparison)

    @functools.cached_property
    def pictures(self) -> list[Picture]:
        """Its figures; an empty list where nothing can be compared."""
        drawn = heat_map_pictures if self.one_of_many else pictures
        return drawn(self.comparison)

    def text(self, published: bool = False) -> str:
        """The table, its differences, and what limits them, as the page has them."""
        found = self.comparison
        there = len(found.summary) > 0
        return printed(
            "comparison.txt.j2",
            table=Table(*comparison_cells(found, published)) if there else None,
            setting=setting_text(found) if there else "",
            two_sorts=said("two_sorts", found) if there else [],
            pairs=Table(*pair_cells(found)) if len(found.summary) > 1 else None,
            over=over_what(found.paired),
            basis=said("basis", found),
            limits=said("limits", found),
            tallied=tallied(self.claims),
        )

    def tables(self) -> dict[str, pd.DataFrame]:
        found = self.comparison
        return {"summary": found.summary, "paired": found.paired, "options": found.options}

    def cell_rows(self) -> pd.DataFrame:
        return cell_rows(self.comparison)

    def facts(self, shown: Sequence[Shown], results: str) -> dict[str, Any]:
        """What `comparisons.j2` reads of it.

        Args:
            shown: its pictures, in order, as the page holds them.
            results: path or URL of the results directory, for the command that repeats a cell.
        """
        found = self.comparison
        return {
            "shown": shown,
            "looks": None if self.one_of_many else looks(found),
            "claims": claim_blocks(self.claims),
            "claim_details": claim_details(self.claims),
            "comparison": found,
            "verdicts": verdict_table(found.paired) if len(found.paired) else None,
            "over": over_what(found.paired),
            "further": [Table(*each, csv="comparison.csv") for each in further_cells(found)],
            "cut": "".join(said("cut", found)) if len(found.summary) else "",
            "options": option_table(found),
            "tried": found.options.groupby("paradigm", sort=False).size(),
            "chosen_by": measures(found.task, [found.select])[found.select].name,
            "end_states": end_states(found.cells),
            "settings": setting_table(found),
            "again": [] if found.recorded else again_blocks(_an_example(found), results),
        }

    def summaries(self) -> list[Run]:
        alone = self.num_settings == 1
        return group_summaries(self.comparison, self.tables(), lambda: self.pictures, alone)


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[Compared]:
    """Every comparison; see `analysis.section.section.Kind`."""
    asked = {name: getattr(question, name) for name in question.OF_COMPARISONS}
    found = compare_results(results, cell_ids=cell_ids, **asked)
    return [Compared(comparison, len(found)) for comparison in found]


def _answer_tables(found: Sequence[Comparison], published: bool) -> Iterator[Table]:
    """One table of all comparisons, or where their columns differ, several."""
    rows: dict[tuple[str, ...], list[list[str]]] = {}
    for comparison in (each for each in found if len(each.summary)):
        header, mine = comparison_cells(comparison, published)
        if len(found) > 1:
            names = [comparison.name, *[""] * len(mine)]
            header = ["setting", *header]
            mine = [[name, *row] for name, row in zip(names, mine, strict=False)]
        rows.setdefault(tuple(header), []).extend(mine)
    left = range(1 + (len(found) > 1))
    for header_of, mine in rows.items():
        yield Table(header_of, mine, left, wrap=left[:-1], csv="comparison.csv")


def _an_example(comparison: Comparison) -> pd.Series:
    """The row of a cell that numbers are of, or of any where there are none."""
    cells, test = comparison.cells, comparison.chosen[comparison.chosen["split"] == "test"]
    tested = cells[cells["cell_id"].isin(test["cell_id"])]
    return (cells if tested.empty else tested).iloc[0]


def _are_many(sections: Sequence[Compared]) -> bool:
    return any(section.one_of_many for section in sections)


def _of(sections: Sequence[Compared]) -> list[Comparison]:
    return [section.comparison for section in sections]
