"""Japanese Vowels, the bundled example: nine men, each of whom says the vowels /ae/ many times.

Kudo, Toyama and Shimbo, "Multidimensional curve classification using passing-through regions",
Pattern Recognition Letters 20, 1999; UCI repository, doi:10.24432/C5NS47. The package aeon ships
it as the UCR/UEA archive has it; only these files are read, and none of its code.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from study.errors import RequestError
from study.tasks.series.ts_folder import ACCEPTED

FOREGROUND = "1+2+3"
"""The classes are the speakers, 1 to 9."""

WINDOW = 7
"""Steps of the shortest series."""

CHANNELS = 12
"""Coefficients of the cepstrum, from a linear prediction."""


def shipped() -> Path | None:
    """The folder of its files in the package aeon; None: it is not installed."""
    spec = importlib.util.find_spec("aeon")  # which imports nothing
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "datasets" / "data" / "JapaneseVowels"
        if folder.is_dir():
            return folder
    return None


def refuse_download(folder: Path, where: str) -> None:
    """Says how to get it; see `study.tasks.sources.data_set.DataSet`.

    Raises:
        RequestError: always.
    """
    raise RequestError(
        "the example of the study series, JapaneseVowels, ships in the package aeon, which is not "
        "installed. Install it with `uv sync --extra series`, or pass data of your own with "
        f"--data-dir DIR: {ACCEPTED}."
    )
