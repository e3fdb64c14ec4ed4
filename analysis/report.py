"""The report of a results directory: one self-contained HTML file.

python -m analysis.report RESULTS_DIR [--budget X] [--out DIR] [--select accuracy|saif]
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NoReturn

import pandas as pd

from analysis import html
from analysis.compare import Comparison, Select, compare
from analysis.figures import figure_png, heatmap_figure, mean_heatmaps
from analysis.loading import load
from analysis.sections import comparison_section, section_title, stopped_options
from analysis.tables import comparison_text
from study.results import Results, ResultsError

_EXAMPLES = """examples:
  python -m analysis.report results --study digits
  python -m analysis.report results --study cifar10 --out reports/cifar10
  python -m analysis.report s3://bucket/results --budget 2e12
"""
_EXPLANATION = (
    "SAIF is the share of instances that are classified rightly and confidently while attention "
    "rests confidently on the true foreground. All paradigms are compared at equal training "
    "compute; intervals are over seeds. In a heat map, a_z is the attention on the foreground, "
    "s_y the score of the true class; numbers are % of the instances, and the outlined cell is "
    "SAIF."
)


def write_report(
    results: str | os.PathLike[str] | Results,
    out_dir: str | os.PathLike[str],
    *,
    study: str | None = None,
    cell_ids: Collection[str] | None = None,
    budget: float | None = None,
    select: Select = "accuracy",
    title: str | None = None,
    notes: Sequence[str] = (),
    published: bool = False,
) -> Path:
    """Writes `report.html`: one section a comparison, pictures inside, nothing to download.

    The heat maps are also written beside it, as `heatmaps-<split>-<comparison_id>.png`.

    Args:
        results: path, URL or an open `Results`.
        out_dir: local folder, made if missing; an older report.html in it is replaced.
        study: only the cells that this study recorded. A cell that two studies share is recorded
            by the first of them, so name `cell_ids` where they are known; then `study` only
            names the report.
        cell_ids: only these cells; how many of them have no result is said.
        budget: training FLOPs, see `analysis.equal_compute`.
        select: metric that chooses the options, see `analysis.choose`.
        title: of the page.
        notes: paragraphs for the head of the page, e.g. skipped cells and why.
        published: show the paper's Table 1 beside the measured numbers.

    Returns:
        The path of the file.

    Raises:
        ResultsError: unreadable results, no finished cell, an unknown study, an unusable budget
            or a folder that cannot be written; the message says what to do.
    """
    results = results if isinstance(results, Results) else Results(results)
    evaluations = _evaluations(results, study, cell_ids)
    found = compare(evaluations, budget, select)
    title = title or _title(evaluations, study)
    notes = [*notes, *_missing(evaluations, cell_ids)]
    return write_page(found, out_dir, title, notes, published)


def write_page(
    found: Sequence[Comparison],
    out_dir: str | os.PathLike[str],
    title: str,
    notes: Sequence[str] = (),
    published: bool = False,
) -> Path:
    """Writes the report of comparisons that are at hand; else as `write_report`.

    Args:
        found: as `analysis.compare.compare` gives them.
        out_dir, title, notes, published: as for `write_report`.
    """
    return _write(_page(title, notes, found, published), found, Path(out_dir))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    asked = _parser().parse_args(argv)
    try:
        evaluations = _evaluations(Results(asked.results_dir), asked.study, None)
        found = compare(evaluations, asked.budget, asked.select)
        for comparison in found:
            print(comparison_text(comparison.summary, asked.published), end="\n\n")
            for sentence in stopped_options(comparison):
                print(f"note: {sentence}")
        folder = asked.out or _default_out(asked.results_dir)
        title = _title(evaluations, asked.study)
        print(f"report: {write_page(found, folder, title, published=asked.published)}")
    except ResultsError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}. See `{self.prog} --help`.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m analysis.report",
        description="Compares the paradigms in a results directory at equal compute: prints the "
        "tables and writes a self-contained report.html.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results_dir", metavar="RESULTS_DIR", help="local path or fsspec URL")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="X",
        help="compare at X training FLOPs (default: as far as every finished cell got)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for report.html (default: RESULTS_DIR/report, for a URL ./report)",
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


def _default_out(results_dir: str) -> Path:
    return Path("report") if "://" in results_dir else Path(results_dir, "report")


def _title(evaluations: pd.DataFrame, study: str | None) -> str:
    names = [study] if study else sorted(evaluations["study"].unique())
    return f"Attention at equal compute: {', '.join(names)}"


def _evaluations(
    results: Results, study: str | None, cell_ids: Collection[str] | None
) -> pd.DataFrame:
    evaluations = load(results, cell_ids)
    if evaluations.empty:
        which = "no finished cell" if cell_ids is None else "none of the requested cells"
        raise ResultsError(f"{results.url} holds {which}. Run or resume the study first.")
    if study is None or cell_ids is not None:
        return evaluations
    names = sorted(evaluations["study"].unique())
    if study not in names:
        near = difflib.get_close_matches(study, names, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ResultsError(
            f"{results.url} holds no study {study!r}.{hint} It holds: {', '.join(names)}."
        )
    return evaluations[evaluations["study"] == study]


def _missing(evaluations: pd.DataFrame, cell_ids: Collection[str] | None) -> list[str]:
    wanted = set(cell_ids or ())
    missing = len(wanted - set(evaluations["cell_id"]))
    if not missing:
        return []
    return [
        f"{missing} of {len(wanted)} planned cells have no result: they failed or have not run."
    ]


def _write(text: str, found: Sequence[Comparison], out_dir: Path) -> Path:
    """The page, and beside it the heat maps of each comparison as pictures for papers."""
    files = {"report.html": text.encode()}
    for comparison in found:
        for split in ("test", "train"):
            heatmaps = mean_heatmaps(comparison.at_budget, comparison.choice, split)
            if heatmaps:
                name = f"{comparison.task}, m={comparison.m}, {split} mosaics, mean over seeds"
                figure = heatmap_figure(heatmaps, name)
                comparison_id = comparison.at_budget["comparison_id"].iloc[0]
                files[f"heatmaps-{split}-{comparison_id}.png"] = figure_png(figure)
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            partial = out_dir / f".{name}-{uuid.uuid4().hex}.part"
            try:
                partial.write_bytes(data)
                os.replace(partial, out_dir / name)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise ResultsError(
            f"cannot write the report to {out_dir} ({error}). Choose a folder with --out DIR "
            "of `python -m analysis.report`."
        ) from error
    return out_dir / "report.html"


def _page(title: str, notes: Sequence[str], found: Sequence[Comparison], published: bool) -> str:
    titles = [section_title(comparison) for comparison in found]
    anchors = [f"comparison-{i}" for i in range(1, len(found) + 1)]
    body = [html.paragraph(_EXPLANATION, "quiet"), *(html.paragraph(note) for note in notes)]
    if len(found) > 1:
        body.append(html.contents(titles, anchors))
    for comparison, name, anchor in zip(found, titles, anchors, strict=True):
        body += [html.section(name, anchor), *comparison_section(comparison, published)]
    return html.page(title, body)


if __name__ == "__main__":
    sys.exit(main())
