"""The contract of a section of the report: one part of a results directory, and what it shows.

A *kind*, a module, finds its sections in a directory: it makes frames of their cells, tests the
paper's claims on them, and names the template that prints them. Sections of one *chapter* stand
together on the page: comparisons, which ask what paradigm is better at equal compute, or what a
package asks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import pandas as pd

from analysis.groups import Axis, Select
from analysis.rules.claim import Claim, tallied
from analysis.section.picture import Picture
from analysis.section.templates import printed
from study.results import Results
from study.tracking.runs import Run


@dataclass(frozen=True)
class Question:
    """What is asked of a results directory.

    Attributes:
        study: only the cells that this study recorded; None: all cells. A cell that two studies
            share is recorded by the first of them, so name `cell_ids` where they are known.
        cell_ids: only these cells; None: all.
        budget, select, axis, threshold, interpolate, test: for comparisons, see
            `analysis.digest.compare.compare_results`.
        of_class: also the heat maps of this class.
    """

    study: str | None = None
    cell_ids: Collection[str] | None = None
    budget: float | None = None
    select: Select | None = None
    axis: Axis | None = None
    threshold: float | None = None
    interpolate: bool = False
    test: Sequence[str] | None = None
    of_class: str | None = None

    OF_COMPARISONS: ClassVar = ("budget", "axis", "threshold", "interpolate", "select", "test")

    def of_comparisons(self) -> list[str]:
        """The given options that concern comparisons only, as the command names them."""
        options = {name: f"--{name}" for name in self.OF_COMPARISONS} | {"of_class": "--class"}
        return [said for n, said in options.items() if getattr(self, n) != getattr(Question, n)]


S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Section(Generic[S]):
    """One section of the report. What takes long is made when it is asked for.

    Attributes:
        chapter: the chapter that it is part of.
        template: place of what prints it, without its end: ``template.j2`` has the macros
            `section` and `folded`, which `page.j2` calls, and ``template.txt.j2`` is its text for
            the terminal. See `analysis.section.templates`.
        title: its heading, without the key.
        key: 8 hex digits for names of files, unique in the directory.
        cells: the rows of `cells` that it rests on.
        labels: column -> value: tell its rows apart in tables of several sections.
        subject: what it is of; the functions below are called with it.
        claims: the paper's claims and what the data says of them.
        tell: gives the facts that its templates read.
        draw: gives its figures; no two share a name.
        tabulate: gives name -> table at full precision; `Chapter.tables` makes files of them.
        list_cells: gives a row per cell for `cells.csv`: short columns of `cells`, its numbers.
        summarise: gives for MLflow one summary of each of what it compares: a paradigm, or a
            network. It is called with the section.
        finding: what was found, in a few sentences for the head of the page; may be empty.
    """

    chapter: Chapter
    template: str
    title: str
    key: str
    cells: pd.DataFrame
    labels: Mapping[str, object]
    subject: S
    claims: Sequence[Claim]
    tell: Callable[[S], Mapping[str, Any]]
    draw: Callable[[S], Sequence[Picture]]
    tabulate: Callable[[S], Mapping[str, pd.DataFrame]]
    list_cells: Callable[[S], pd.DataFrame]
    summarise: Callable[[Section[S]], Iterable[Run]]
    finding: str = ""

    @functools.cached_property
    def facts(self) -> Mapping[str, Any]:
        """What its templates read, besides the section itself, as `its`."""
        return {**self.tell(self.subject), "its": self}

    @functools.cached_property
    def pictures(self) -> Sequence[Picture]:
        return self.draw(self.subject)

    def tables(self) -> Mapping[str, pd.DataFrame]:
        return self.tabulate(self.subject)

    def cell_rows(self) -> pd.DataFrame:
        return self.list_cells(self.subject)

    def summaries(self) -> list[Run]:
        return [*self.summarise(self)]

    @functools.cached_property
    def files(self) -> Mapping[str, bytes]:
        """What a run of MLflow keeps of it: pictures as PNG, where runs are compared, and CSV."""
        files = {f"{picture.name}.png": picture.png for picture in self.pictures}
        return files | {
            f"tables/{name}.csv": table.to_csv(index=False).encode()
            for name, table in self.tables().items()
        }

    def text(self, published: bool = False) -> str:
        """Its text for the terminal.

        Args:
            published: show published numbers beside the measured ones.
        """
        return printed(f"{self.template}.txt.j2", **self.facts, published=published)


@dataclass(frozen=True, eq=False)
class Chapter:
    """What the report says of all sections of a kind together; by default, which claims hold.

    Attributes:
        name: its name in the title of a page that has a chapter before it.
        about: its name in the title of a page that begins with it.
        lead: a sentence on all of its sections.
        template: place of what prints it, without its end: the macros `head`, `across` and
            `details`.
        compares: whether the options of comparisons concern it, see `Question.of_comparisons`.
        has_published: whether numbers of others can be shown beside the measured ones.
    """

    name: str
    about: str
    lead: str = ""
    template: str = "chapter"
    compares: bool = False
    has_published: bool = False

    def names(self, sections: Sequence[Section[Any]]) -> dict[Section[Any], str]:
        """Short names that tell its sections apart, in the order of tables of all of them."""
        return {section: section.title for section in sections}

    def answer(self, sections: Sequence[Section[Any]]) -> list[str]:
        """What its sections say, in a few sentences, which stand above all else."""
        found = [f"{each.title}. {each.finding}" for each in sections if each.finding]
        return [tallied([claim for section in sections for claim in section.claims]), *found]

    def cells_left(self, sections: Sequence[Section[Any]]) -> int:
        """How many planned cells have not ended, as far as the others say."""
        return 0

    def pictures(self, sections: Sequence[Section[Any]]) -> list[Picture]:
        """Figures that several sections share, made anew at each call; no two share a name."""
        return []

    def facts(self, sections: Sequence[Section[Any]], published: bool) -> dict[str, Any]:
        """What its template reads, besides its sections and the figures that they share."""
        return {"answer": self.answer(sections), "lead": self.lead}

    def tables(self, sections: Sequence[Section[Any]]) -> dict[str, pd.DataFrame]:
        """Stem of a file -> table, for export as CSV at full precision."""
        return {
            f"{name}-{section.key}": table
            for section in sections
            for name, table in section.tables().items()
        }

    def papers(self, sections: Sequence[Section[Any]]) -> dict[str, str]:
        """Name of a file -> table in Markdown or LaTeX."""
        return {}


class Kind(Protocol):
    """A kind of sections, a module; a `study.reported.SectionOf` says what it shows."""

    def find(
        self, results: Results, cell_ids: Collection[str], question: Question
    ) -> Sequence[Section[Any]]:
        """Its sections, in a fixed order.

        Args:
            results: the directory.
            cell_ids: ids of its own cells, at least one.
            question: what is asked.

        Raises:
            ResultsError: unreadable results, or results that cannot answer the question.
        """
        ...


def by_chapter(
    sections: Sequence[Section[Any]],
) -> list[tuple[Chapter, list[Section[Any]]]]:
    """Every chapter with its sections, in the given order."""
    chapters = dict.fromkeys(section.chapter for section in sections)
    return [(each, [s for s in sections if s.chapter is each]) for each in chapters]
