"""What follows from results: printed, as a self-contained page, and as numbers for MLflow."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.digest.read import opened
from analysis.forms import aligned, listed
from analysis.kinds import find
from analysis.page import opening
from analysis.page.exports import (
    claim_counts,
    claim_matrix,
    claim_rows,
    exports,
    matrix_tables,
)
from analysis.page.files import write
from analysis.section.picture import Picture, Shown
from analysis.section.section import Chapter, Question, Section, by_chapter
from analysis.section.summary import counts_of, told_apart
from analysis.section.templates import Table, page
from study import terminal
from study.results import Results, ResultsError
from study.terminal.working import working
from study.tracking.runs import Answer

__all__ = ["Conclusions", "Question", "conclude"]


@working("comparing results")
def conclude(
    results: str | os.PathLike[str] | Results, question: Question | None = None
) -> Conclusions:
    """Reads a results directory.

    Args:
        results: path, URL or an open `Results`.
        question: what is asked of it, by default of all its cells.

    Raises:
        ResultsError: unreadable results, no finished cell, an unknown study, an unusable budget;
            the message says what to do.
    """
    results = opened(results)
    question = question or Question()
    sections = find(results, question)
    shown = opening.shown_cells(sections)
    doubts = [f"{each}; the first counts." for each in results.disagreements(shown)]
    return Conclusions(results.url, question, sections, doubts)


@dataclass(frozen=True, eq=False)
class Conclusions:
    """What follows from results.

    Attributes:
        results: path or URL of the results directory.
        question: what was asked.
        sections: as `analysis.kinds.find` gives them; empty where there is nothing to show.
        doubts: what speaks against the results that these rest on, in sentences.
    """

    results: str
    question: Question
    sections: Sequence[Section[Any]] = ()
    doubts: Sequence[str] = ()

    def require(self, published: bool = False) -> None:
        """Refuses to go on without anything to show.

        Args:
            published: published numbers were asked for.

        Raises:
            ResultsError: there is no section; or an option was given that concerns none.
        """
        if not self.sections:
            raise ResultsError(
                f"{self.results} has nothing to show: attention is held in all its cells, and "
                "none is of soft, hard or lvml, for which section 3 defines that. Run one of "
                "them, too."
            )
        chapters = [chapter for chapter, _ in by_chapter(self.sections)]
        asked = [] if any(c.compares for c in chapters) else self.question.of_comparisons()
        asked += ["--published"] * (published and not any(c.has_published for c in chapters))
        if asked:
            there = listed([chapter.name for chapter in chapters])
            raise ResultsError(
                f"{', '.join(asked)}: there is nothing to compare here, only {there}, which are "
                f"shown whole. Leave {'it' if len(asked) == 1 else 'them'} out."
            )

    def of(self, cell_ids: Collection[str]) -> Conclusions:
        """The sections that rest on any of some cells."""
        wanted = set(cell_ids)
        mine = [each for each in self.sections if wanted & set(each.cells["cell_id"])]
        return Conclusions(self.results, self.question, mine, self.doubts)

    def print(self, published: bool = False, partial: str = "") -> None:
        """Prints tables, verdicts and claims; arguments as for `write`."""
        for note in filter(None, [partial, *self.doubts]):
            _print_paragraph(f"note: {note}")
        for chapter, sections in by_chapter(self.sections):
            _print_paragraph("\n".join(map(terminal.sentence, chapter.answer(sections))))
            for section in sections:
                _print_paragraph(section.text(published))
        if len(self._matrix):
            counts = aligned(*claim_counts(self._matrix))
            about = "Claims of the paper, and in how many settings each holds:"
            _print_paragraph("\n".join([about, "", *counts]))

    def title(self, study: str | None = None) -> str:
        """Of the page.

        Args:
            study: its name; None: that of the question, or of all whose cells are shown.
        """
        return opening.title(self.sections, study or self.question.study)

    @working("writing the report")
    @np.printoptions(legacy=False)  # which a notebook may have set, and CSV files would follow
    def write(
        self,
        out_dir: str | os.PathLike[str],
        title: str | None = None,
        notes: Sequence[str] = (),
        published: bool = False,
        partial: str = "",
        results: str | None = None,
        reload: float | None = None,
    ) -> str | Path:
        """Writes `report.html` and `report.md`, which need nothing else.

        Beside them lie the tables of its chapters (of comparisons `table1`, `comparison`,
        `paired`, `options`), `cells`, `claims`, as CSV and partly as Markdown and LaTeX, and
        `figures/`, as PNG and PDF.

        Args:
            out_dir: path or URL of a folder, made if missing; files of an older report in it are
                replaced.
            title: of the page.
            notes: paragraphs for the page, e.g. skipped cells and why.
            published: show published numbers beside the measured ones.
            partial: why these may not be all results, where they may not; see
                `analysis.page.opening.partial_note`.
            results: what the command that repeats a cell calls the directory, by default as here.
            reload: seconds after which a browser loads the page again, unless its reader is at
                work with it; None: never.

        Returns:
            The path of report.html; its URL where `out_dir` is one.

        Raises:
            Unwritable: the folder takes no report.
        """
        self._draw()
        files = exports(self.sections)
        facts = {
            "title": title or self.title(),
            "warnings": [*filter(None, [partial]), *self.doubts],
            "notes": notes,
            "chapters": [
                self._told(chapter, sections, files, published)
                for chapter, sections in by_chapter(self.sections)
            ],
            "claim_tables": matrix_tables(self._matrix),
            "claim_counts": Table(*claim_counts(self._matrix), csv="claims.csv"),
            "results": results or self.results,
            "published": published,
            "reload": reload,
        }
        files["report.html"] = page("html", **facts).encode()
        files["report.md"] = page("markdown", **facts).encode()
        folder = write(files, out_dir)
        return folder / "report.html" if isinstance(folder, Path) else f"{folder}/report.html"

    def _told(
        self,
        chapter: Chapter,
        sections: Sequence[Section[Any]],
        files: dict[str, bytes],
        published: bool,
    ) -> dict[str, Any]:
        """What the page says of a chapter; the files of its pictures are added to `files`."""
        shown = {each: [_shown(p, each.key, files) for p in each.pictures] for each in sections}
        return {
            "template": chapter.template,
            "sections": [{**each.facts, "shown": shown[each]} for each in chapter.names(sections)],
            "claims": [claim for section in sections for claim in section.claims],
            # Figures of a chapter are filed under its first section.
            "shared": [_shown(each, sections[0].key, files) for each in self._pictures[chapter]],
            **chapter.facts(sections, published),
        }

    def _draw(self) -> None:
        """Draws every picture, which keeps its files; by far the longest part of a report."""
        with working("drawing the report", unit="figures") as part:
            pictures = [*itertools.chain(*self._pictures.values())]
            pictures += itertools.chain(*(section.pictures for section in self.sections))
            part.total = len(pictures)
            for picture in part.each(pictures):
                assert picture.pdf
                assert picture.svg

    @functools.cached_property
    def _pictures(self) -> dict[Chapter, list[Picture]]:
        """The pictures of each chapter, made once."""
        return {chapter: chapter.pictures(mine) for chapter, mine in by_chapter(self.sections)}

    @functools.cached_property
    def _matrix(self) -> pd.DataFrame:
        """The verdict of every claim in every setting."""
        return claim_matrix(claim_rows(self.sections))

    def answer(self, files: Sequence[Path] = ()) -> Answer:
        """For MLflow.

        Args:
            files: to attach to the study's own run.
        """
        runs = [run for section in self.sections for run in section.summaries()]
        shown = told_apart(runs)
        claims = [claim for section in self.sections for claim in section.claims]
        text = [
            sentence
            for chapter, sections in by_chapter(self.sections)
            for sentence in chapter.answer(sections)
        ]
        if len(shown) < len(runs):
            text.append(f"Below are {len(shown)} of {len(runs)} summaries; the report has all.")
        return Answer(
            text="\n\n".join(filter(None, text)),
            summaries=shown,
            counts=counts_of(claims, (section.cells for section in self.sections)),
            files=files,
        )


def _print_paragraph(text: str) -> None:
    """A paragraph, no wider than the terminal."""
    print(terminal.fitted(text), end="\n\n")


def _shown(picture: Picture, key: str, files: dict[str, bytes]) -> Shown:
    """A picture on the page; its files, PNG and PDF, are added to `files`."""
    stem = f"figures/{picture.name}-{key}"
    files[f"{stem}.png"], files[f"{stem}.pdf"] = picture.png, picture.pdf
    return Shown(
        title=picture.title,
        caption=picture.caption,
        svg=picture.svg,
        file=f"{stem}.png",
        wide=picture.wide,
    )
