"""Where the files of a task lie, and the cache of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from study.storage import urls

CACHE_VARIABLE = "ATTENTION_STUDY_CACHE"

FOLDERS = ("data_dir", "cache_dir")
"""The places that all commands take."""

HUB = "hf://"
"""How the URL of a data set of the Hugging Face Hub begins."""


class Places(NamedTuple):
    """Where a task finds its files, and where it keeps those that it makes.

    A task takes what its `study.tasks.task.Declaration` names; the rest is ignored.

    Attributes:
        data_dir: directory of the data set, or a URL, which is copied to the cache; None: bundled,
            cached or downloaded. Made-up tasks take none.
        cache_dir: for downloads and prepared data; None: the user's cache directory. A URL keeps
            only downloads, for all machines; the rest is in the user's cache directory.
        files: name and path of further files.
    """

    data_dir: str | None = None
    cache_dir: str | None = None
    files: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, str | None]) -> Places:
        """The places that are given by name: `data_dir`, `cache_dir`, and further files."""
        files = ((name, each) for name, each in given.items() if each and name not in FOLDERS)
        return cls(given.get("data_dir"), given.get("cache_dir"), tuple(files))

    @property
    def given(self) -> dict[str, str]:
        """Name -> place, of those that are given."""
        named = zip(FOLDERS, self[:2], strict=True)
        return {name: place for name, place in named if place} | dict(self.files)

    def file(self, name: str) -> str | None:
        """A further file; None: it is not given."""
        return dict(self.files).get(name)

    @property
    def cache(self) -> Path:
        """The cache directory of this machine."""
        if self.cache_dir is None or is_url(self.cache_dir):
            return default_cache_dir()
        return urls.expanded(self.cache_dir)


NO_PLACES = Places()


def is_url(place: str | None) -> bool:
    """Whether a place is on shared storage, such as s3://bucket/folder."""
    return "://" in str(place)


def absolute(place: str | None) -> str | None:
    """The absolute path of a directory; a URL or None stays.

    Raises:
        RequestError: it is a URL with a mistake.
    """
    if place is None or is_url(place):
        return place
    return urls.absolute(place)


def default_cache_dir() -> Path:
    """`$ATTENTION_STUDY_CACHE`, or `~/.cache/attention-study`."""
    return urls.expanded(os.environ.get(CACHE_VARIABLE) or "~/.cache/attention-study")
