"""The command `python -m study.compact RESULTS_DIR`: merges many small files into few."""

from __future__ import annotations

from collections.abc import Sequence

from study.terminal import counted
from study.terminal.command import DONE, Parser, guarded, importing, run_as_command


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done or 2 unusable request."""
    stopped = "stopped; no result is lost, the same command goes on"
    return guarded("study.compact", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    with importing():
        from study.results import Results
        from study.results.merging import compact

    done = compact(Results(args.results_dir))
    if done.before == done.after:
        there = f"{counted(done.cells, 'cell')} in {counted(done.before, 'file')}"
        print(f"{args.results_dir}: nothing to do ({there})")
    else:
        print(
            f"{args.results_dir}: {counted(done.cells, 'cell')}, {counted(done.before, 'file')} "
            f"merged into {done.after}"
        )
    return DONE


def _parser() -> Parser:
    parser = Parser("study.compact", _ABOUT, _EXAMPLES)
    parser.add_results_dir()
    return parser


_ABOUT = """Merges the small files of a results directory into a few large ones. Every row stays as
it is, and studies and analyses use the directory as before. Refuses while a study runs; can be
stopped at any moment and run again."""

_EXAMPLES = """
examples:
  python -m study.compact results
  python -m study.compact s3://bucket/results

Results of another machine are merged by copying, whether compacted or not:
  cp -r other/cells results/cells/other
  cp -rn other/instances results/
  python -m study.compact results
"""

if __name__ == "__main__":
    run_as_command(main)
