"""The report of a results directory: one self-contained HTML file, and the same in Markdown.

python -m analysis.report RESULTS_DIR [--budget X] [--axis flops|seconds|mosaics] [--threshold .8]
    [--interpolate] [--out DIR] [--select accuracy|saif] [--study NAME] [--published]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
import textwrap
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from analysis.answer import QUESTION, answer
from analysis.claims import claims
from analysis.compare import Comparison, compare_results
from analysis.exports import exports, short_id
from analysis.groups import AXES, Axis, Select
from analysis.labels import MADE_EQUAL
from analysis.page import Block, Contents, Heading, Shown, Table, Text, html, markdown
from analysis.pictures import FILE_STEM, Picture, pictures
from analysis.sections import (
    comparison_blocks,
    lone_paradigm,
    section_title,
    stopped_options,
    unusual_cut,
)
from analysis.table_one import flat_header, table_one_cells, table_one_notes
from analysis.tables import comparison_text
from analysis.verdicts import verdict_lines
from study.results import SAIF_THRESHOLD, Results, ResultsError

_EXAMPLES = """examples:
  python -m analysis.report results --study digits
  python -m analysis.report results --study cifar10 --out reports/cifar10
  python -m analysis.report results --axis seconds --interpolate
  python -m analysis.report s3://bucket/results --budget 2e12
"""
_METHOD = (
    "Equal compute: every cell is cut at the same point of the axis, at its last evaluation there "
    "or before. A diverged cell counts as SAIF 0 and accuracy 1/C.",
    "Choice: learning rate and switch point of each paradigm by the mean over seeds on "
    "validation mosaics; all numbers are of the test mosaics.",
    "Intervals: over seeds, 95 %. Means have t intervals, interquartile means a bootstrap over "
    "seeds.",
    "Verdicts: paired by seed. A pair is decided if the paired t test holds after Holm's "
    "correction over the table (p < 0.05), a bootstrap that repeats the choice of learning rate "
    "and switch point agrees, and there are at least 6 common seeds; else it is undecided. "
    "'Seeds to decide' is the number at which the test would have 80 % power for the difference "
    "seen. P(first higher) is the share of all pairs of seeds in which the first paradigm scores "
    "higher, a tie counting half.",
)
_WIDTH = 99  # of sentences in the terminal
_OWN_FIGURE = re.compile(rf"{FILE_STEM.pattern}-[0-9a-f]{{8}}\.(png|pdf)")


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
) -> Path:
    """Writes `report.html` and `report.md`: one section a comparison, nothing to download.

    Beside them lie the tables (`table1`, `comparison`, `paired`, `options`, `effort`, `cells`,
    `claims`, as CSV and partly as Markdown and LaTeX) and `figures/`, as PNG and PDF.

    Args:
        results: path, URL or an open `Results`.
        out_dir: local folder, made if missing; files of an older report in it are replaced.
        study: only the cells that this study recorded. A cell that two studies share is recorded
            by the first of them, so name `cell_ids` where they are known; then `study` only
            names the report.
        cell_ids: only these cells; how many of them have no result is said.
        budget, select, axis, threshold, interpolate: see `analysis.compare.compare_results`.
        title: of the page.
        notes: paragraphs for the page, e.g. skipped cells and why.
        published: show the paper's Table 1 beside the measured numbers.

    Returns:
        The path of report.html.

    Raises:
        ResultsError: unreadable results, no finished cell, an unknown study, an unusable budget
            or a folder that cannot be written; the message says what to do.
    """
    results = results if isinstance(results, Results) else Results(results)
    found = compare_results(results, study, cell_ids, budget, select, axis, threshold, interpolate)
    title = title or _title(found, study)
    notes = [*notes, *_missing(found, cell_ids)]
    return write_page(found, out_dir, title, results.url, notes, published)


def write_page(
    found: Sequence[Comparison],
    out_dir: str | os.PathLike[str],
    title: str,
    results: str,
    notes: Sequence[str] = (),
    published: bool = False,
    drawn: Sequence[Sequence[Picture]] | None = None,
) -> Path:
    """Writes the report of comparisons that are at hand; else as `write_report`.

    Args:
        found: as `analysis.compare` gives them, at least one.
        out_dir, title, notes, published: as for `write_report`.
        results: path or URL of the results directory, for the command that repeats a cell.
        drawn: the pictures of each comparison, where they are at hand.
    """
    drawn = drawn or [pictures(comparison) for comparison in found]
    files = exports(found)
    blocks = _head(found, notes)
    titles = [section_title(comparison) for comparison in found]
    anchors = [f"comparison-{i}" for i in range(1, len(found) + 1)]
    if len(found) > 1:
        blocks.append(Contents(list(zip(titles, anchors, strict=True))))
    for comparison, name, anchor, mine in zip(found, titles, anchors, drawn, strict=True):
        shown = _shown(mine, short_id(comparison), files)
        blocks.append(Heading(name, 2, anchor))
        blocks += comparison_blocks(comparison, claims(comparison), shown, results, published)
    blocks += _tail(found)
    files["report.html"] = html.render(title, blocks).encode()
    files["report.md"] = markdown.render(title, blocks).encode()
    out_dir = Path(out_dir)
    _write(files, out_dir)
    return out_dir / "report.html"


def verdict_text(found: Sequence[Comparison]) -> str:
    """The verdict of every pair, and the answer in three sentences, for the terminal."""
    lines = []
    for comparison in found:
        if len(found) > 1:
            lines.append(f"{comparison.task} m={comparison.m} ({short_id(comparison)}):")
        lone = lone_paradigm(comparison)
        lines += [lone] if lone else verdict_lines(comparison.paired)
    sentences = [textwrap.fill(sentence, _WIDTH) for sentence in answer(found)]
    return "\n".join([*lines, "", *sentences])


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    asked = _parser().parse_args(argv)
    try:
        folder = asked.out or _default_out(asked.results_dir, asked.study)
        if asked.out or Path(asked.results_dir).is_dir():
            _refuse_unwritable(folder)
        results = Results(asked.results_dir)
        found = compare_results(
            results,
            study=asked.study,
            budget=asked.budget,
            select=asked.select,
            axis=asked.axis,
            threshold=asked.threshold,
            interpolate=asked.interpolate,
        )
        with _until_nobody_reads():
            print_comparisons(found, asked.published)
        title = _title(found, asked.study)
        path = write_page(found, folder, title, results.url, published=asked.published)
        with _until_nobody_reads():
            print(f"report: {path}")
    except KeyboardInterrupt:
        print("stopped: no report was written.", file=sys.stderr)
        return 130
    except ResultsError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


@contextlib.contextmanager
def _until_nobody_reads() -> Iterator[None]:
    """What is printed after the reader has left, as `head` does, is lost; the rest goes on."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def print_comparisons(found: Sequence[Comparison], published: bool = False) -> None:
    """Prints the tables, what was stopped early, the verdicts and the answer."""
    for comparison in found:
        if len(comparison.summary):
            print(comparison_text(comparison.summary, published, comparison.threshold), end="\n\n")
        for sentence in (*unusual_cut(comparison), *stopped_options(comparison)):
            print(f"note: {sentence}\n")
    if found:
        print(verdict_text(found), end="\n\n")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}. See `{self.prog} --help`.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m analysis.report",
        description="Compares the paradigms in a results directory at equal compute: prints the "
        "tables and verdicts, and writes a self-contained report.html with its tables and "
        "figures beside it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results_dir", metavar="RESULTS_DIR", help="local path or fsspec URL")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="X",
        help="compare at X of the axis: training FLOPs, seconds or mosaics (default: as far as "
        "every finished cell got)",
    )
    parser.add_argument(
        "--axis",
        choices=tuple(AXES),
        default="flops",
        help="what is made equal: training FLOPs, measured training seconds, or mosaics seen "
        "(default: flops)",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        default=SAIF_THRESHOLD,
        metavar="T",
        help="attention and score from which an instance counts for SAIF: 0.2, 0.4, 0.6 or 0.8, "
        "an edge of the recorded heat maps (default: 0.8)",
    )
    parser.add_argument(
        "--interpolate",
        action="store_true",
        help="interpolate between the evaluations around the cut instead of taking the last one "
        "within it",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for the report (default: RESULTS_DIR/report, with --study "
        "RESULTS_DIR/report/NAME; for a URL ./report)",
    )
    parser.add_argument(
        "--select",
        choices=("accuracy", "saif"),
        default="accuracy",
        help="validation score that chooses the learning rate and switch point; saif uses the "
        "hidden foreground (default: accuracy)",
    )
    parser.add_argument("--study", metavar="NAME", help="only the cells that this study recorded")
    parser.add_argument(
        "--published",
        action="store_true",
        help="show Table 1 of the paper beside CIFAR-10 and CIFAR-100",
    )
    return parser


def _default_out(results_dir: str, study: str | None) -> Path:
    """A report of one study lies where `study.run` writes it, not over that of all studies."""
    folder = Path("report") if "://" in results_dir else Path(results_dir, "report")
    name = re.sub(r"[^\w.-]+", "_", study or "").strip(".")
    return folder / name if name else folder


def _title(found: Sequence[Comparison], study: str | None) -> str:
    recorded = {name for comparison in found for name in comparison.cells["study"]}
    names = [study] if study else sorted(recorded)
    return f"Attention at equal compute: {', '.join(names)}"


def _missing(found: Sequence[Comparison], cell_ids: Collection[str] | None) -> list[str]:
    wanted = set(cell_ids or ())
    present = {cell_id for comparison in found for cell_id in comparison.cells["cell_id"]}
    missing = len(wanted - present)
    if not missing:
        return []
    return [
        f"{missing} of {len(wanted)} planned cells have no result: they failed or have not run."
    ]


def _head(found: Sequence[Comparison], notes: Sequence[str]) -> list[Block]:
    """Question and answer, and what has to be known to understand them."""
    threshold = found[0].threshold
    explanation = (
        "SAIF is the share of test mosaics that are classified rightly and confidently while "
        "attention rests confidently on the true foreground: attention on the foreground "
        f"a_z \u2265 {threshold:g} and score of the true class s_y \u2265 {threshold:g}. "
        f"The paradigms are compared at {MADE_EQUAL[found[0].axis]}; intervals are over "
        "seeds."
    )
    return [
        Heading("Question", 2),
        Text(QUESTION, "lead"),
        Heading("Answer", 2),
        *(Text(sentence, "lead") for sentence in answer(found)),
        Text(explanation, "quiet"),
        *(Text(note, "quiet") for note in notes),
    ]


def _tail(found: Sequence[Comparison]) -> list[Block]:
    """What concerns all comparisons: the paper's table, and how everything was computed."""
    header, rows = table_one_cells(found)
    return [
        Heading("In the layout of the paper's Table 1", 2, "table-1"),
        Table(flat_header(header), rows),
        *(Text(note, "quiet") for note in table_one_notes(found)),
        Heading("How this was computed", 2, "method"),
        *(Text(text) for text in _METHOD),
    ]


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


def _write(files: Mapping[str, bytes], out_dir: Path) -> None:
    """Every file whole: a reader finds the old one or the new one, never half of it.

    The old ones are touched when all new ones are there; then figures that the report no longer
    has are removed.
    """
    partials: dict[Path, Path] = {}
    try:
        for name, data in files.items():
            path = out_dir / name
            path.parent.mkdir(parents=True, exist_ok=True)
            partials[path] = path.with_name(f".{path.name}-{uuid.uuid4().hex}.part")
            partials[path].write_bytes(data)
        for path, partial in partials.items():
            os.replace(partial, path)
        for path in (out_dir / "figures").glob("*"):
            if path not in partials and _OWN_FIGURE.fullmatch(path.name):
                path.unlink()
    except OSError as error:
        raise _unwritable(out_dir, error) from error
    finally:
        for partial in partials.values():
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)


def _refuse_unwritable(folder: Path) -> None:
    """Before the work: the folder, or what it would be made in, takes a file."""
    with_parents = [folder, *folder.absolute().parents]
    there = next(path for path in with_parents if path.exists() or path.is_symlink())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> ResultsError:
    return ResultsError(
        f"cannot write the report to {folder} ({error}). Choose a folder with --out DIR of "
        "`python -m analysis.report`."
    )


if __name__ == "__main__":
    sys.exit(main())
