"""Comparisons as sections of the report, and the chapter they make.

What is said of them stands in `analysis/templates`: `comparisons.j2` and `comparison.j2`, for the
terminal in `comparison.txt.j2`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.digest.claims import claims
from analysis.digest.compare import Comparison, compare_results
from analysis.digest.factors.effects import across_tables
from analysis.digest.factors.families import families, setting_names
from analysis.page.across import across_facts, count_sentences
from analysis.page.exports import cell_rows, comparison_tables, for_papers
from analysis.page.pictures import (
    family_pictures,
    heat_map_pictures,
    pictures,
    refuse_unknown_class,
)
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
    class_tables,
    comparison_cells,
    further_cells,
    option_table,
    pair_cells,
    setting_table,
    verdict_table,
)
from analysis.page.where_it_looks import looks
from analysis.rules.stages import cells_left
from analysis.section.picture import Picture
from analysis.section.section import Chapter, Question, Section
from analysis.section.templates import Table
from study.results import Results
from study.terminal import counted

MOST_IN_FULL = 6
"""Settings of one report that show all of their figures: of more, a page would be too large."""

Compared = Section[Comparison]
"""A comparison as a section of the report."""


class Comparisons(Chapter):
    """Asks which paradigm is better at equal compute, and answers it."""

    def names(self, sections: Sequence[Compared]) -> dict[Compared, str]:
        """What tells each setting from the base, which comes first."""
        of = {section.subject: section for section in sections}
        return {of[each]: name for each, name in setting_names([*of]).items()}

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

    def facts(self, sections: Sequence[Compared], published: bool) -> dict[str, Any]:
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
            **across_facts(found),
            "data": said_once("data", found),
            "how": method(found),
        }

    def tables(self, sections: Sequence[Compared]) -> dict[str, pd.DataFrame]:
        """Each table with the rows of all comparisons."""
        found = _of(sections)
        return comparison_tables(found) | across_tables(found)

    def papers(self, sections: Sequence[Compared]) -> dict[str, str]:
        """Table 1 and the paired differences."""
        return for_papers(_of(sections))


COMPARISONS = Comparisons(
    name="Attention at equal compute",
    about="Attention at equal compute",
    template="comparisons",
    compares=True,
    has_published=True,
)


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[Compared]:
    """Every comparison; see `analysis.section.section.Kind`."""
    asked = {name: getattr(question, name) for name in question.OF_COMPARISONS}
    found = compare_results(results, cell_ids=cell_ids, **asked)
    if question.of_class is not None:
        refuse_unknown_class(found, question.of_class)
    return [section_of(comparison, len(found), question.of_class) for comparison in found]


def section_of(
    comparison: Comparison, num_settings: int = 1, of_class: str | None = None
) -> Compared:
    """A comparison as a section of a page of so many, which shows no figures but heat maps of
    each where there are more than `MOST_IN_FULL`; also those of a class, if one is asked for.
    """
    is_one_of_many = num_settings > MOST_IN_FULL
    return Section(
        chapter=COMPARISONS,
        template="comparison",
        title=comparison.name,
        key=comparison.key,
        cells=comparison.cells,
        labels={
            "task": comparison.task,
            "m": comparison.m,
            "architecture": comparison.architecture,
            "comparison_id": comparison.id,
            "axis": comparison.axis,
            "threshold": comparison.threshold,
        },
        subject=comparison,
        claims=claims(comparison),
        tell=functools.partial(_facts, is_one_of_many=is_one_of_many),
        draw=functools.partial(
            heat_map_pictures if is_one_of_many else pictures, of_class=of_class
        ),
        tabulate=_tables,
        list_cells=cell_rows,
        summarise=functools.partial(group_summaries, alone=num_settings == 1),
    )


def _tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    return {
        "summary": comparison.summary,
        "paired": comparison.paired,
        "options": comparison.options,
        "classes": comparison.classes,
        "class_parts": comparison.class_parts,
    }


def _facts(comparison: Comparison, is_one_of_many: bool) -> dict[str, Any]:
    """What its templates read: what only some of them show is made when they do."""
    makers: dict[str, Callable[..., Any]] = {
        "means": _mean_table,
        "pairs": lambda of: Table(*pair_cells(of)),
        "looks": (lambda of: None) if is_one_of_many else looks,
        "verdicts": verdict_table,
        "further": lambda of: [Table(*each, csv="comparison.csv") for each in further_cells(of)],
        "by_class": class_tables,
        "cut": lambda of: "".join(said("cut", of)),
        "options": option_table,
        "settings": setting_table,
        "example": _an_example,
    }
    return {name: functools.partial(make, comparison) for name, make in makers.items()} | {
        "c": comparison,
        "said": lambda name: said(name, comparison),
        "over": over_what(comparison),
        "chosen_by": comparison.measures[comparison.select].name,
    }


def _mean_table(comparison: Comparison, published: bool) -> Table:
    return Table(*comparison_cells(comparison, published))


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


def _are_many(sections: Iterable[Compared]) -> bool:
    return len([*sections]) > MOST_IN_FULL


def _of(sections: Iterable[Compared]) -> list[Comparison]:
    return [section.subject for section in sections]
