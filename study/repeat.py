"""The command `python -m study.repeat RESULTS_DIR CELL_ID`: trains a recorded cell once more."""

from __future__ import annotations

from collections.abc import Sequence

from study.parts import add_parts, load_parts
from study.terminal.command import DONE, FAILED, Parser, guarded, importing, run_as_command
from study.terminal.options import add_places, places_of


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 equal, 1 different or 2 unusable request."""
    return guarded("study.repeat", lambda: _run(argv), "stopped; the results are as they were")


def _run(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    places = places_of(args)
    with importing():
        from study.launch.repetition import repeat
        from study.results import Results

    load_parts(argv)
    text, equal = repeat(Results(args.results_dir), args.cell_id, places)
    print(text)
    return DONE if equal else FAILED


def _parser() -> Parser:
    parser = Parser("study.repeat", _ABOUT, _EXAMPLES)
    parser.add_results_dir()
    parser.add_argument("cell_id", metavar="CELL_ID", help="id of a cell, or the beginning of it")
    add_parts(parser)
    add_places(parser)
    return parser


_ABOUT = """Trains one recorded cell once more, alone, with the recorded number of threads, and
compares every evaluation with the recorded one. The results directory stays as it is. Exit status:
0 equal, 1 different, 2 unusable request."""

_EXAMPLES = """
examples:
  python -m study.repeat results 3f2a
  python -m study.repeat s3://bucket/results 3f2a5c0d1e9b8a77 --data-dir ~/data/cifar10

Equal numbers need equal threads, package versions and CPU; if these differ, the output says which.
On a GPU two runs are equal only to rounding, which training magnifies. A cell that was
trained in a pack or from a shared first phase has the same numbers alone.
"""

if __name__ == "__main__":
    run_as_command(main)
