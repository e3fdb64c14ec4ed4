"""The contract of a section of the report: one part of a results directory, and what it shows.

A *kind* finds its sections in a directory. Sections of one *chapter* stand together on the page:
comparisons, which ask what paradigm is better at equal compute, learning dynamics, which ask how a
paradigm learns, attention paths, which ask whether a theory of finite width is right, or one-shot
images, which ask whether it says which heads of a trained network matter.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import pandas as pd

from analysis.groups import Axis, Select
from analysis.rules.claim import Claim, tallied
from analysis.section.blocks import Block, Shown, Text
from analysis.section.parts import claim_blocks
from analysis.section.picture import Picture
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
    """

    study: str | None = None
    cell_ids: Collection[str] | None = None
    budget: float | None = None
    select: Select | None = None
    axis: Axis = "flops"
    threshold: float | None = None
    interpolate: bool = False
    test: Sequence[str] | None = None

    OF_COMPARISONS: ClassVar = ("budget", "axis", "threshold", "interpolate", "select", "test")

    def of_comparisons(self) -> list[str]:
        """The given options that concern comparisons only, as the command names them."""
        given = (n for n in self.OF_COMPARISONS if getattr(self, n) != getattr(Question, n))
        return [f"--{name}" for name in given]


class Section(Protocol):
    """One section of the report, read from a results directory.

    Claims and pictures are made once, on demand.
    """

    @property
    def chapter(self) -> Chapter[Any]:
        """The chapter that it is part of."""
        ...

    @property
    def title(self) -> str:
        """Its heading, without the key."""
        ...

    @property
    def key(self) -> str:
        """8 hex digits for names of files, unique in the directory."""
        ...

    @property
    def cells(self) -> pd.DataFrame:
        """The rows of `cells` that it rests on."""
        ...

    @property
    def labels(self) -> Mapping[str, object]:
        """Column -> value: tell its rows apart in tables of several sections."""
        ...

    @property
    def claims(self) -> Sequence[Claim]:
        """The paper's claims and what the data says of them."""
        ...

    @property
    def pictures(self) -> Sequence[Picture]:
        """Its figures; no two share a name."""
        ...

    def text(self, published: bool = False) -> str:
        """Its text for the terminal.

        Args:
            published: show published numbers beside the measured ones.
        """
        ...

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Name -> table at full precision; `Chapter.tables` makes files of them."""
        ...

    def cell_rows(self) -> pd.DataFrame:
        """One row a cell for `cells.csv`: short columns of `cells`, and its numbers."""
        ...

    def summaries(self) -> Sequence[Run]:
        """For MLflow: one summary of each of what it compares: a paradigm, or a network."""
        ...


S = TypeVar("S", bound=Section)


class Chapter(abc.ABC, Generic[S]):
    """What the report says of all sections of a kind together; by default, which claims hold.

    Attributes:
        name: its name in the title of a page that has a chapter before it.
        about: its name in the title of a page that begins with it.
        template: of `analysis/page/templates`, which prints it on a page. It has the macros that
            `page.j2` calls, and reads what `facts` gives.
        compares: whether the options of comparisons concern it, see `Question.of_comparisons`.
        has_published: whether numbers of others can be shown beside the measured ones.
    """

    name: str
    about: str
    template: str
    compares: bool = False
    has_published: bool = False

    def names(self, sections: Sequence[S]) -> dict[S, str]:
        """Short names that tell its sections apart, in the order of tables of all of them."""
        return {section: section.title for section in sections}

    def answer(self, sections: Sequence[S]) -> list[str]:
        """What its sections say, in a few sentences, which stand above all else."""
        return [tallied([claim for section in sections for claim in section.claims])]

    def cells_left(self, sections: Sequence[S]) -> int:
        """How many planned cells have not ended, as far as the others say."""
        return 0

    def pictures(self, sections: Sequence[S]) -> list[Picture]:
        """Figures that several sections share, made anew at each call; no two share a name."""
        return []

    @abc.abstractmethod
    def facts(
        self,
        sections: Sequence[S],
        shown: Mapping[S, Sequence[Shown]],
        shared: Sequence[Shown],
        results: str,
        published: bool,
    ) -> Mapping[str, Any]:
        """What its template reads.

        Args:
            sections: its sections.
            shown: the pictures of each, in order, as the page holds them.
            shared: the same of `pictures`.
            results: path or URL of the results directory, for the command that repeats a cell.
            published: show published numbers beside the measured ones.
        """

    def tables(self, sections: Sequence[S]) -> dict[str, pd.DataFrame]:
        """Stem of a file -> table, for export as CSV at full precision."""
        return {
            f"{name}-{section.key}": table
            for section in sections
            for name, table in section.tables().items()
        }

    def papers(self, sections: Sequence[S]) -> dict[str, str]:
        """Name of a file -> table in Markdown or LaTeX."""
        return {}


class SectionOfBlocks(Section, Protocol):
    """A section that says as a list of blocks what a page shows of it."""

    def blocks(
        self, shown: Sequence[Shown], results: str, published: bool = False
    ) -> Sequence[Block]:
        """Its part of the page, below the heading; arguments as of `Chapter.facts`."""
        ...


B = TypeVar("B", bound=SectionOfBlocks)


class ChapterOfBlocks(Chapter[B]):
    """A chapter of such sections."""

    template = "blocks.j2"

    def head(self, sections: Sequence[B]) -> list[Block]:
        """Blocks above all sections of the page: the answer, and what it rests on."""
        claims = [claim for section in sections for claim in section.claims]
        first, *others = self.answer(sections)
        return [Text(first, "lead"), *claim_blocks(claims), *map(Text, others)]

    def facts(
        self,
        sections: Sequence[B],
        shown: Mapping[B, Sequence[Shown]],
        shared: Sequence[Shown],
        results: str,
        published: bool,
    ) -> dict[str, Any]:
        """What `blocks.j2` reads."""
        of_each = {each: each.blocks(shown[each], results, published) for each in sections}
        return {"head": self.head(sections), "sections": of_each}


class Kind(Protocol):
    """A kind of sections, such as a module; a `study.reported.SectionOf` says what it shows."""

    def find(
        self, results: Results, cell_ids: Collection[str], question: Question
    ) -> Sequence[Section]:
        """Its sections, in a fixed order.

        Args:
            results: the directory.
            cell_ids: ids of its own cells, at least one.
            question: what is asked.

        Raises:
            ResultsError: unreadable results, or results that cannot answer the question.
        """
        ...


def by_chapter(sections: Sequence[Section]) -> list[tuple[Chapter[Any], list[Section]]]:
    """Every chapter with its sections, in the given order."""
    chapters = dict.fromkeys(section.chapter for section in sections)
    return [(each, [s for s in sections if s.chapter is each]) for each in chapters]
