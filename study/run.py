"""The command `python -m study.run STUDY`: parse, plan, launch, report."""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from search_spaces import SearchSpace, all_studies
from study import __version__, packs, tasks
from study.axes import AXES, resolve
from study.cell import Budget, Cell, Schedule
from study.describe import describe
from study.errors import RequestError, unknown
from study.estimate import cell_seconds, choose_packing
from study.launch import Failure, launch
from study.plan import UNKNOWN_DIGEST, Plan, make_plan, with_packing
from study.progress import Progress
from study.results import Results
from study.tracking import Tracker, open_tracker
from study.trial import train_cells

DONE, CELLS_FAILED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done, 1 cells failed, 2 unusable request."""
    try:
        return _run(_parser().parse_args(argv))
    except RequestError as error:
        print(f"study.run: {' '.join(str(error).split())}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on where this one ended", file=sys.stderr)
        return INTERRUPTED


def _run(args: argparse.Namespace) -> int:
    studies = all_studies()
    if args.study not in studies:
        raise unknown("study", args.study, studies)
    space = studies[args.study]
    plan = _plan(space, args)
    if not (args.plan or args.dry_run):
        Results(args.results).prepare()
    plan = with_packing(plan, choose_packing(args.pack, plan, remote=args.address is not None))
    seconds = cell_seconds(plan, plan.to_run)
    print(describe(plan, space.presets[args.preset].about, seconds), flush=True)
    if args.plan:
        return DONE
    config = {
        "study": space.name,
        "results": args.results if "://" in args.results else _absolute(args.results),
        "data_dir": args.data_dir and _absolute(args.data_dir),
        "cache_dir": args.cache_dir and _absolute(args.cache_dir),
        "micro_batch": args.micro_batch,
        "code_version": _code_version(),
    }
    if args.dry_run:
        return _dry_run(plan, config)
    failures = _train(plan, config, seconds, args)
    for failure in failures[:1]:
        print(f"\ncell {failure.cell_id} failed:\n{failure.error}", file=sys.stderr)
    if failures:
        ids = ", ".join(failure.cell_id for failure in failures)
        print(
            f"{len(failures)} of {len(plan.cells)} cells failed and are missing above ({ids}); "
            "the same command tries them again",
            file=sys.stderr,
        )
    return CELLS_FAILED if failures else DONE


def _plan(space: SearchSpace, args: argparse.Namespace) -> Plan:
    info = tasks.info(space.task)
    axes = resolve(space, args.preset, args.set)
    make_plan(space, args.preset, axes, info, UNKNOWN_DIGEST)  # before anything is downloaded
    results = Results(args.results)
    finished = results.finished()
    if args.plan and not tasks.at_hand(space.task, args.data_dir, args.cache_dir):
        digest = UNKNOWN_DIGEST
    else:
        digest = tasks.load(space.task, args.data_dir, args.cache_dir).data_digest
    return make_plan(space, args.preset, axes, info, digest, finished)


def _train(
    plan: Plan, config: dict[str, Any], seconds: dict[str, float], args: argparse.Namespace
) -> list[Failure]:
    """Trains what is missing while MLflow is told, then compares and reports."""
    from analysis.figures import heatmap_figure

    results = Results(config["results"])
    with results.lock():
        tracker = open_tracker(results, plan.study, args.tracking, heatmap_figure)
        tracker.log_cells(sorted(plan.finished))
        failures: list[Failure] = []
        if plan.to_run:
            progress = Progress(plan.to_run, seconds, plan.concurrent, len(plan.finished))

            def on_cell(cell_id: str) -> str:
                tracker.log_cells([cell_id])
                return str(results.cells([cell_id])["status"].iloc[0])

            failures = launch(plan, config, progress, on_cell, args.address)
            progress.show(last=True)
        _report(plan, results, failures, tracker, args)
    return failures


def _report(
    plan: Plan,
    results: Results,
    failures: list[Failure],
    tracker: Tracker,
    args: argparse.Namespace,
) -> None:
    """Prints the comparison at equal compute, the path of the report and how to see the runs."""
    from analysis.compare import compare
    from analysis.loading import load
    from analysis.report import write_page
    from analysis.tables import comparison_text

    failed = {failure.cell_id for failure in failures}
    ids = [cell.id for cell in plan.cells if cell.id not in failed]
    comparisons = compare(load(results, ids), select=args.select) if ids else []
    metrics: dict[str, float] = {}
    published = plan.preset == "paper" and not args.set
    print()
    for comparison in comparisons:
        print(comparison_text(comparison.summary, published), end="\n\n")
        rows = comparison.summary.to_dict("records")
        for row in rows:
            where = f"{row['task']}/m{row['m']}/{row['comparison_id'][:8]}/{row['paradigm']}"
            metrics |= {f"{where}/{metric}": row[metric] for metric in ("saif", "accuracy")}
    about = all_studies()[plan.study].presets[plan.preset].about
    changed = f", changed by --set {' '.join(args.set)}" if args.set else ""
    print(f"preset {plan.preset}: {about}{changed}")
    notes = [
        f"Preset {plan.preset}: {about}{changed}.",
        *(f"Skipped: {skip.what}: {skip.reason}." for skip in plan.skipped),
        *([f"{len(failed)} of {len(plan.cells)} cells failed and are missing."] * bool(failed)),
    ]
    files = []
    try:
        if comparisons:
            folder = _report_folder(args.results, plan.study)
            title = f"Attention at equal compute: {plan.study}"
            files = [write_page(comparisons, folder, title, notes, published)]
            print(f"report: {files[0]}")
    finally:
        tracker.finish(metrics, files)
    if tracker.ui_command:
        print(f"runs:   {tracker.ui_command}")


def _absolute(path: str) -> str:
    """Workers have another working directory."""
    return str(Path(path).expanduser().resolve())


def _report_folder(results: str, study: str) -> Path:
    return Path("report" if "://" in results else Path(results).expanduser() / "report") / study


def _dry_run(plan: Plan, config: dict[str, Any]) -> int:
    """Two training steps a phase and evaluations of a cell of each kind; nothing is recorded."""
    kinds: dict[tuple[Any, ...], Cell] = {}
    for cell in plan.cells:
        kinds.setdefault((cell.comparison_id, cell.paradigm), cell)
    for (_, paradigm), cell in kinds.items():
        count = len(cell.schedule.phases)
        phases = (
            dataclasses.replace(phase, until=(i + 1) / count)
            for i, phase in enumerate(cell.schedule.phases)
        )
        short = dataclasses.replace(
            cell,
            schedule=Schedule(tuple(phases)),
            budget=Budget(2 * count * cell.batch_size, "mosaics"),
            evaluation_points=(0.0, 1.0),
        )
        statuses = train_cells(
            {**config, "cells": [short.to_dict()], "threads": plan.threads, "dry_run": True}
        )
        print(f"dry run: {paradigm} at m={cell.m}, {cell.schedule.text}: {statuses[short.id]}")
    return DONE


def _code_version() -> str:
    """The package's version and, in a git checkout, the commit."""
    try:
        git = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return __version__
    return f"{__version__}+{git.stdout.strip()}"


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return int(text)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message}. See `python -m study.run --help`.")


def _parser() -> argparse.ArgumentParser:
    studies = all_studies()
    lines = ["studies:"]
    for space in studies.values():
        lines.append(f"  {space.name:<10}{space.about}")
        lines += [
            f"    --preset {name:<7}{preset.about}" for name, preset in space.presets.items()
        ]
    lines.append("\naxes, for --set axis=value,value ...:")
    lines += [f"  {name:<20}{axis.about}" for name, axis in AXES.items()]
    lines.append(_EXAMPLES)
    parser = _Parser(
        prog="python -m study.run",
        description="Runs a study of attention paradigms at equal compute.",
        epilog="\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("study", metavar="STUDY", help=", ".join(studies))
    add("--preset", default="quick", help="quick (default) or paper")
    add("--plan", action="store_true", help="print what would run, its cost and time; run nothing")
    add("--dry-run", action="store_true", help="two steps of each kind of cell; record nothing")
    add("--set", nargs="+", action="extend", default=[], metavar="AXIS=V,V", help="values of axes")
    add("--results", default="results", metavar="DIR", help="results directory (./results)")
    add("--data-dir", metavar="DIR", help="where the data set lies; default: downloaded")
    add("--cache-dir", metavar="DIR", help="for downloads and prepared data")
    add(
        "--select",
        choices=("accuracy", "saif"),
        default="accuracy",
        help="validation metric that "
        "chooses learning rate and switch point; saif uses the hidden foreground",
    )
    add(
        "--tracking",
        metavar="URI",
        help="MLflow tracking URI, or none; default: "
        "MLFLOW_TRACKING_URI or a database in the results directory",
    )
    add(
        "--pack",
        choices=("auto", *packs.AXES),
        default="auto",
        help="cells that train together in one process: those that differ in these only; auto: "
        "where a GPU is measured to be faster with them",
    )
    add(
        "--micro-batch",
        type=_positive,
        metavar="N",
        help="mosaics a forward and backward pass; fewer take less memory (default: by device)",
    )
    add("--address", metavar="ADDR", help="of a running Ray cluster; default: this machine")
    return parser


_EXAMPLES = """
examples:
  python -m study.run digits
  python -m study.run cifar10 --data-dir ~/data/cifar10 --plan
  python -m study.run cifar10 --preset paper --set m=5 seed=0-5
  python -m study.run digits --set lr=0.01,0.05 m=5,10 paradigm=soft,hybrid
"""

if __name__ == "__main__":
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    sys.exit(main())
