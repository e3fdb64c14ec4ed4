"""Which split of your own data a file or folder is of, by its name."""

from __future__ import annotations

import re

_OF_NAME = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
}

NAMES = "train, validation (or val, valid, dev) and test"
"""The names of splits, for messages."""


def split_named(name: str) -> str | None:
    """ "train", "validation" or "test", in any letter case; None if the name is of no split."""
    return _OF_NAME.get(name.lower())


def split_of_file(name: str) -> str | None:
    """The split that a file's name begins with, such as ``val-00000-of-00001.parquet``."""
    word = re.match("[A-Za-z]*", name)
    return split_named(word[0]) if word else None
