"""The command `python -m analysis.report RESULTS_DIR`: tables, verdicts and the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from study.terminal.command import DONE, Parser, guarded, importing, run_as_command
from study.terminal.working import working

if TYPE_CHECKING:
    from analysis.conclude import Question
    from study.results import Results


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done or 2 unusable request."""
    return guarded("analysis.report", lambda: _run(argv), "stopped; no report was written")


def _run(argv: Sequence[str] | None) -> int:
    with importing():
        from study.parts import load_parts

        load_parts(argv)  # names and words of measures
        parser = _parser()
    asked = vars(parser.parse_args(argv))
    with importing(), working("starting"):
        from analysis.conclude import Question
        from analysis.page.files import Unwritable
        from study.results import Results, ResultsError

    results, out = Results(asked.pop("results_dir")), asked.pop("out")
    asked.pop("parts")
    published, interval = asked.pop("published"), asked.pop("watch")
    question = Question(**asked)
    try:
        if interval is None:
            _report(results, out, question, published)
        else:
            _watch(results, out, question, published, interval)
    except Unwritable as error:
        raise ResultsError(f"{error} Choose a folder with --out DIR.") from error
    return DONE


def _report(results: Results, out_dir: str | None, question: Question, published: bool) -> None:
    """Prints what follows from results, and writes the report.

    Args:
        results: the directory.
        out_dir: path or URL; None: the folder of the results directory that is for it.
        question: what is asked.
        published: show published numbers beside the measured ones.

    Raises:
        ResultsError: unreadable results, no finished cell, an unknown study, an unusable budget,
            an option for comparisons where there is none, or a folder that takes no report.
    """
    from analysis.conclude import conclude
    from analysis.page.files import link, refuse_unwritable
    from analysis.page.opening import partial_note
    from study.results import report_folder

    folder = out_dir or report_folder(results.url, question.study)
    if out_dir or results.storage.exists("cells"):
        refuse_unwritable(folder)
    partial = partial_note(results)
    found = conclude(results, question)
    found.require(published)
    found.print(published, partial)
    path = found.write(folder, published=published, partial=partial)
    print(f"report: {link(path)}")


def _watch(
    results: Results, out_dir: str | None, question: Question, published: bool, interval: float
) -> None:
    """Writes the report again and again; see `_report` and `analysis.watch.watch`."""
    with importing():
        from analysis.page.files import refuse_unwritable
        from analysis.watch import watch
        from study.results import local_path, report_folder

    path = local_path(results.url)
    if path is not None and path.is_file():
        results.require()  # there will never be a directory
    folder = out_dir or report_folder(results.url, question.study)
    refuse_unwritable(folder)
    watch(results, folder, question, published, interval)


def _parser() -> Parser:
    from analysis.groups import AXES, AXIS_NAMES
    from study.parts import add_parts
    from study.terminal.options import above_zero, names

    parser = Parser("analysis.report", _ABOUT, _EXAMPLES)
    parser.add_results_dir()
    parser.add_argument(
        "--budget",
        type=float,
        metavar="X",
        help="compare at X of the axis: training FLOPs, seconds or mosaics; of FLOPs, at the last "
        "evaluation that every cell has within X (default: as far as every finished cell got)",
    )
    parser.add_argument(
        "--axis",
        choices=(*AXES, *AXIS_NAMES),
        help="what is made equal: training FLOPs, measured training seconds, or mosaics or other "
        "examples seen (default: flops, or the only one that recorded runs have)",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="attention and score from which an instance counts for SAIF: 0.2, 0.4, 0.6 or 0.8, "
        "an edge of the recorded heat maps, of captions 0.2 or 0.3 (default: 0.8, of captions "
        "0.3)",
    )
    parser.add_argument(
        "--interpolate",
        action="store_true",
        help="interpolate values at exactly X FLOPs between the evaluations around it (as always "
        "for seconds and mosaics, at which cells are not evaluated alike)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the report, local path or fsspec URL (default: RESULTS_DIR/report, with "
        "--study RESULTS_DIR/report/NAME)",
    )
    parser.add_argument(
        "--select",
        metavar="MEASURE",
        help="validation score that chooses among the options of a paradigm: accuracy (of "
        "captions Bleu-4), saif, which uses the hidden foreground, or a measure of recorded runs "
        "(default: accuracy)",
    )
    parser.add_argument(
        "--test",
        type=names,
        metavar="MEASURE,...",
        help="measures whose differences are tested, separated by commas (default: saif, "
        "accuracy and those of recorded runs, where known); also follows, falls and stays, and "
        "measures of your own, with the file that registers them",
    )
    parser.add_argument(
        "--class",
        dest="of_class",
        metavar="NAME",
        help="also show the heat maps of the inputs of this class",
    )
    parser.add_argument("--study", metavar="NAME", help="only the cells that this study recorded")
    parser.add_argument(
        "--published",
        action="store_true",
        help="show Table 1 of the paper beside CIFAR-10, CIFAR-100, HateXplain and MSCOCO, and "
        "a prototype's numbers beside attention paths",
    )
    add_parts(parser)
    parser.add_argument(
        "--watch",
        nargs="?",
        type=above_zero,
        const=30.0,
        metavar="SECONDS",
        help="write report.html again whenever a cell is recorded, until Ctrl-C; the page "
        "reloads itself. The results are looked at every SECONDS (30)",
    )
    return parser


_ABOUT = """Compares the paradigms in a results directory at equal compute, and shows its learning
dynamics (studies fixed-focus and linear-orthogonal) and its attention paths: prints tables and
verdicts, and writes a self-contained report.html with its tables and figures beside it. The
options on what is equal, SAIF and the choice concern comparisons only."""

_EXAMPLES = """examples:
  python -m analysis.report results --study digits
  python -m analysis.report results --study cifar10 --out reports/cifar10
  python -m analysis.report results --study hatexplain --published
  python -m analysis.report results --study fixed-focus
  python -m analysis.report results --axis seconds
  python -m analysis.report results --study recorded --select dice --test dice,accuracy
  python -m analysis.report results --watch
  python -m analysis.report s3://bucket/results --budget 2e12
  python -m analysis.report s3://bucket/results --out reports/cifar10
"""

if __name__ == "__main__":
    run_as_command(main)
