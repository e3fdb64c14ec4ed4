"""Where the files of a task lie."""

from __future__ import annotations

from typing import NamedTuple


class Places(NamedTuple):
    """Where a task finds its files, and where it keeps those that it makes.

    A task takes what its `study.tasks.base.Declaration` names; the rest is ignored.

    Attributes:
        data_dir: directory of the data set, or a URL, which is copied to the cache; None: bundled,
            cached or downloaded. Made-up tasks take none.
        cache_dir: for downloads and prepared data; None: the user's cache directory. A URL keeps
            only downloads, for all machines; the rest is in the user's cache directory.
        weights: file of the encoder's pretrained weights; None: shipped in a package, or
            downloaded.
        category_words: file of the words of each category; None: beside the data set.
    """

    data_dir: str | None = None
    cache_dir: str | None = None
    weights: str | None = None
    category_words: str | None = None


NO_PLACES = Places()

FILES = ("weights", "category_words")
"""The places that are single files."""
