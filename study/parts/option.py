"""The option `--with FILE` of commands that go by the names of parts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

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
        RequestError: the option names none, or a file that cannot be imported.
    """
    first = Parser("study.run", add_help=False)
    add_parts(first)
    known, _ = first.parse_known_args(argv)
    load(filter(None, known.parts))  # the command refuses empty ones
