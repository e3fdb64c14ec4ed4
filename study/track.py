"""The command `python -m study.track RESULTS_DIR`: logs to MLflow the runs that it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from study.terminal.command import DONE, FAILED, Parser, guarded, importing, run_as_command


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done, 1 runs missing, 2 unusable request."""
    stopped = "stopped; the same command goes on where this one ended"
    return guarded("study.track", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    with importing():
        from study.concluding.relog import relog
        from study.results import Results

    return FAILED if relog(Results(args.results_dir), args.study, args.tracking) else DONE


def _parser() -> Parser:
    parser = Parser("study.track", _ABOUT, _EXAMPLES)
    parser.add_results_dir()
    add = parser.add_argument
    add(
        "--tracking",
        metavar="URI",
        help="MLflow tracking URI; default: MLFLOW_TRACKING_URI or a database in the results "
        "directory",
    )
    add("--study", metavar="NAME", help="only this study; default: all in the results")
    return parser


_ABOUT = """Logs to MLflow the runs that it lacks, from the results. Runs that are there are left
alone, so the command can be repeated at will."""

_EXAMPLES = """
examples:
  python -m study.track results
  python -m study.track results --study digits
  python -m study.track results --tracking http://localhost:5000
  python -m study.track s3://bucket/results --tracking https://mlflow.example.org
"""

if __name__ == "__main__":
    run_as_command(main)
