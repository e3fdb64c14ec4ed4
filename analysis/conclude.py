"""What follows from results: printed, and as one self-contained HTML file and in Markdown."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from analysis.comparison.compare import Comparison, compare_results, short_id
from analysis.comparison.report.claims import claims
from analysis.comparison.report.frame import tail
from analysis.comparison.report.pictures import pictures
from analysis.comparison.report.section import comparison_blocks, section_title
from analysis.comparison.report.text import (
    print_comparisons,
    print_paragraph,
)
from analysis.groups import Axis, Select
from analysis.kinds import find
from analysis.page import frame
from analysis.page.exports import exports
from analysis.page.files import refuse_unwritable, write
from analysis.rendering import html, markdown
from analysis.section.base import Dynamics
from analysis.section.blocks import Block, Contents, Heading, Shown
from analysis.section.parts import repeat_blocks
from analysis.section.picture import Picture
from study.results import SAIF_THRESHOLD, Results, ResultsError, report_folder


def write_report(
    results: str | os.PathLike[str] | Results,
    out_dir: str | os.PathLike[str],
    *,
    study: str | None = None,
    cell_ids: Collection[str] | None = None,
    budget: float | None = None,
    select: Select = "accuracy",
    axis: Axis = "flops",
    threshold: float = SAIF_THRESHOLD,
    interpolate: bool = False,
    title: str | None = None,
    notes: Sequence[str] = (),
    published: bool = False,
) -> str | Path:
    """Writes `report.html` and `report.md`, which need nothing else.

    They have a section for each comparison and for each study of learning dynamics (cells with
    `alpha`, and those of the linear orthogonal setting). Beside them lie the tables (`table1`,
    `comparison`, `paired`, `options`, `effort`, `cells`, `claims`, those of learning dynamics, as
    CSV and partly as Markdown and LaTeX) and `figures/`, as PNG and PDF.

    Args:
        results: path, URL or an open `Results`.
        out_dir: path or URL of a folder, made if missing; files of an older report in it are
            replaced.
        study: only the cells that this study recorded. A cell that two studies share is recorded
            by the first of them, so name `cell_ids` where they are known; then `study` only
            names the report.
        cell_ids: only these cells; how many of them have no result is said.
        budget, select, axis, threshold, interpolate: of the comparisons, see
            `analysis.comparison.compare.compare_results`.
        title: of the page.
        notes: paragraphs for the page, e.g. skipped cells and why.
        published: show the paper's Table 1 beside the measured numbers.

    Returns:
        The path of report.html; its URL where `out_dir` is one.

    Raises:
        ResultsError: unreadable results, no finished cell, an unknown study, an unusable budget,
            an option for comparisons where there is none, or a folder that cannot be written;
            the message says what to do.
    """
    results = results if isinstance(results, Results) else Results(results)
    running = results.is_running()  # before it is read: a study that ends meanwhile is partly seen
    found = compare_results(results, study, cell_ids, budget, select, axis, threshold, interpolate)
    dynamics = find(results, study, cell_ids)
    if not found:
        _refuse_options(budget, axis, threshold, interpolate, select)
    title = title or frame.title(found, dynamics, study)
    _refuse_nothing(found, dynamics, results.url)
    notes = [*notes, *frame.missing(found, dynamics, cell_ids)]
    return write_page(
        *(found, out_dir, title, results.url, notes, published),
        dynamics=dynamics,
        running=running,
    )


def write_page(
    found: Sequence[Comparison],
    out_dir: str | os.PathLike[str],
    title: str,
    results: str,
    notes: Sequence[str] = (),
    published: bool = False,
    drawn: Sequence[Sequence[Picture]] | None = None,
    dynamics: Sequence[Dynamics] = (),
    running: bool = False,
) -> str | Path:
    """Writes the report of what is at hand; else as `write_report`.

    Args:
        found: comparisons, as `analysis.comparison.compare.compare` gives them.
        out_dir, title, notes, published: as for `write_report`.
        results: path or URL of the results directory, for the command that repeats a cell.
        drawn: the pictures of each comparison, where they are at hand.
        dynamics: as `analysis.kinds.find` gives them.
        running: a study runs with the results, so that they are not all that it will record.
    """
    drawn = drawn or [pictures(comparison) for comparison in found]
    files = exports(found, dynamics)
    sections: list[tuple[str, str, list[Block]]] = []  # title, anchor, blocks
    for i, (comparison, mine) in enumerate(zip(found, drawn, strict=True), start=1):
        shown = _shown(mine, short_id(comparison), files)
        blocks = comparison_blocks(comparison, claims(comparison), shown, results, published)
        sections.append((section_title(comparison), f"comparison-{i}", blocks))
    for i, each in enumerate(dynamics, start=1):
        shown = _shown(each.pictures(), each.key, files)
        cell_id = str(each.cells["cell_id"].iloc[0])
        blocks = [*each.blocks(shown), *repeat_blocks(cell_id, results)]
        sections.append((f"{each.title} ({each.key})", f"dynamics-{i}", blocks))
    page = frame.head(found, dynamics, notes, running)
    if len(sections) > 1:
        page.append(Contents([(name, anchor) for name, anchor, _ in sections]))
    for name, anchor, blocks in sections:
        page += [Heading(name, 2, anchor), *blocks]
    page += tail(found)
    files["report.html"] = html.render(title, page).encode()
    files["report.md"] = markdown.render(title, page).encode()
    folder = write(files, out_dir)
    return folder / "report.html" if isinstance(folder, Path) else f"{folder}/report.html"


def _refuse_nothing(
    found: Sequence[Comparison], dynamics: Sequence[Dynamics], results: str
) -> None:
    if not found and not dynamics:
        raise ResultsError(
            f"{results} has nothing to show: attention is held in all its cells, and none is of "
            "soft, hard or lvml, for which section 3 defines that. Run one of them, too."
        )


def report(
    results: Results,
    out_dir: str | None,
    *,
    study: str | None = None,
    budget: float | None = None,
    select: Select = "accuracy",
    axis: Axis = "flops",
    threshold: float = SAIF_THRESHOLD,
    interpolate: bool = False,
    published: bool = False,
) -> None:
    """Prints what follows from results, and writes the report; arguments as for `write_report`.

    Args:
        out_dir: None: the folder of the results directory that is for it.

    Raises:
        ResultsError: as `write_report`.
    """
    folder = out_dir or report_folder(results.url, study)
    if out_dir or results.storage.exists("cells"):
        refuse_unwritable(folder)
    running = results.is_running()
    found = compare_results(results, study, None, budget, select, axis, threshold, interpolate)
    dynamics = find(results, study)
    if not found:
        _refuse_options(budget, axis, threshold, interpolate, select, published)
    _refuse_nothing(found, dynamics, results.url)
    with _until_nobody_reads():
        if running:
            print_paragraph(f"note: {frame.RUNNING}")
        print_comparisons(found, published)
        print_dynamics(dynamics)
    title = frame.title(found, dynamics, study)
    path = write_page(
        *(found, folder, title, results.url),
        published=published,
        dynamics=dynamics,
        running=running,
    )
    with _until_nobody_reads():
        print(f"report: {path}")


@contextlib.contextmanager
def _until_nobody_reads() -> Iterator[None]:
    """What is printed after the reader has left, as `head` does, is lost; the rest goes on."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def print_dynamics(dynamics: Sequence[Dynamics]) -> None:
    """Prints the tables and claims of learning dynamics."""
    for each in dynamics:
        print_paragraph(each.text())


def _refuse_options(
    budget: float | None,
    axis: Axis,
    threshold: float,
    interpolate: bool,
    select: Select,
    published: bool = False,
) -> None:
    """Options for comparisons, where there is none.

    Raises:
        ResultsError: one was given.
    """
    given = {
        "--budget": budget is not None,
        "--axis": axis != "flops",
        "--threshold": threshold != SAIF_THRESHOLD,
        "--interpolate": interpolate,
        "--select": select != "accuracy",
        "--published": published,
    }
    names = [name for name, is_given in given.items() if is_given]
    if names:
        raise ResultsError(
            f"{', '.join(names)}: there is nothing to compare here, only learning dynamics, which "
            f"are shown whole. Leave {'it' if len(names) == 1 else 'them'} out."
        )


def _shown(drawn: Sequence[Picture], id: str, files: dict[str, bytes]) -> list[Shown]:
    """The pictures of a comparison; their files, PNG and PDF, are added to `files`."""
    shown = []
    for picture in drawn:
        stem = f"figures/{picture.name}-{id}"
        files[f"{stem}.png"], files[f"{stem}.pdf"] = picture.png, picture.pdf
        shown.append(
            Shown(
                title=picture.title,
                caption=picture.caption,
                alt=picture.alt,
                png=picture.png,
                file=f"{stem}.png",
                wide=picture.wide,
            )
        )
    return shown
