"""Options that several commands share, and how numbers are typed."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from typing import TYPE_CHECKING

from study.cell.axis import whole
from study.errors import RequestError
from study.terminal.command import importing

if TYPE_CHECKING:
    from study.tasks.sources.places import Places


def positive(text: str) -> int:
    """A whole number from the command line, at least 1."""
    return at_least(1, text)


def at_least(least: int, text: str) -> int:
    """A whole number from the command line that is not below another."""
    with contextlib.suppress(ValueError):
        if (value := whole(text)) >= least:
            return value
    raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, got {text!r}")


def number(text: str) -> float:
    """A number from the command line; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def seconds(text: str) -> float:
    """Seconds from the command line, more than 0."""
    if not number(text) > 0:
        raise argparse.ArgumentTypeError(f"must be seconds > 0, got {text!r}")
    return float(text)


def minutes(text: str) -> float:
    """Minutes from the command line, more than 0."""
    if not number(text) > 0:
        raise argparse.ArgumentTypeError(f"must be minutes > 0, got {text!r}")
    return float(text)


def names(text: str) -> tuple[str, ...]:
    """Names from the command line, with commas between them, at least one."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f"must be names with commas between them, got {text!r}")
    return found


def add_places(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say where the files of the tasks lie."""
    add = parser.add_argument
    add(
        "--data-dir",
        metavar="DIR",
        help="where the data set lies: a directory, or a URL such as s3://bucket/folder that "
        "every machine copies to its cache once; default: downloaded",
    )
    add(
        "--cache-dir",
        metavar="DIR",
        help="for downloads and prepared data; a URL keeps downloads for all machines, the rest "
        "is then in the cache of each",
    )
    add(
        "--weights",
        metavar="FILE",
        help="pretrained weights of the encoder of captions; default: downloaded",
    )
    add(
        "--category-words",
        metavar="FILE",
        help="words of each category of captions; default: beside the data",
    )


def places_of(args: argparse.Namespace) -> Places:
    """The places that the options of `add_places` name, as absolute paths.

    Raises:
        RequestError: a file does not exist, or a URL has a mistake.
    """
    with importing():
        from study.tasks.sources.cache import absolute
        from study.tasks.sources.places import FILES, Places

    places = Places(*(absolute(getattr(args, place)) for place in Places._fields))
    for place in FILES:
        file = getattr(places, place)
        if file and not os.path.isfile(file):
            raise RequestError(f"--{place.replace('_', '-')} {file}: there is no such file.")
    return places
