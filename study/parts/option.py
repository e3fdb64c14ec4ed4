"""The option `--with FILE` of commands that go by the names of parts."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence

from study.errors import RequestError
from study.parts.loading import load
from study.terminal.command import Parser


def add_parts(parser: argparse._ActionsContainer) -> None:
    """Adds the option."""
    parser.add_argument(
        "--with",
        dest="parts",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file that registers paradigms, models, tasks or studies of your own "
        "(docs/your-own.md); may be given several times",
    )


def load_parts(argv: Sequence[str] | None) -> None:
    """Imports what the option names, and the parts of installed packages.

    Called before the command line is parsed, whose help and errors list their names.

    Raises:
        RequestError: a file cannot be imported.
    """
    first = Parser("study.run", add_help=False, exit_on_error=False)
    add_parts(first)
    files: list[str] = []
    with contextlib.suppress(
        argparse.ArgumentError, RequestError
    ):  # which the command says better
        known, _ = first.parse_known_args(sys.argv[1:] if argv is None else argv)
        files = [file for file in known.parts if file]  # empty ones are refused there, too
    load(files)
