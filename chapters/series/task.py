"""The declared task of series, and its example that a package ships.

JapaneseVowels: nine men, each of whom says the vowels /ae/ many times. Kudo, Toyama and Shimbo,
"Multidimensional curve classification using passing-through regions", Pattern Recognition Letters
20, 1999; UCI repository, doi:10.24432/C5NS47. The package aeon ships it as the UCR/UEA archive has
it; only these files are read, and none of its code.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

from chapters.series import ts_files, windows
from study.cell import Options
from study.cell.declared import Axis, Text, Whole
from study.errors import RequestError
from study.tasks.mosaics.classes import REST, background_names, foreground_names
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.places import Places
from study.tasks.task import MOSAICS, Declaration, Task, TaskInfo


def shipped() -> Path | None:
    """The folder of JapaneseVowels in the package aeon; None: it is not installed."""
    spec = importlib.util.find_spec("aeon")  # which imports nothing
    places = (spec and spec.submodule_search_locations) or ()
    folders = (Path(place, "datasets", "data", "JapaneseVowels") for place in places)
    return next((folder for folder in folders if folder.is_dir()), None)


def _refuse_download(folder: Path, where: str) -> None:
    raise RequestError(
        "the example of the study series, JapaneseVowels, ships in the package aeon, which is not "
        "installed. Install it with `uv sync --extra series`, or pass data of your own with "
        f"--data-dir DIR (data_dir in Python): {ts_files.ACCEPTED}."
    )


DATA_SET = DataSet(
    title="time series",
    folder="japanese-vowels",
    accepted=ts_files.ACCEPTED,
    belongs=ts_files.belongs,
    download=_refuse_download,
    shipped=shipped,
)


def _series(options: Options) -> TaskInfo:
    background, window = options["background"], options["window"]
    classes = foreground_names(options["foreground"], background)
    from study.tasks.mosaics.mosaics import MosaicTask

    def load(places: Places) -> Task:
        train, test = read_data_set(DATA_SET, places, ts_files.read_pair)
        others = background_names(classes, background, train.classes, train.name)
        base = windows.windows_of(train, test, window)
        return MosaicTask(windows.TASK, base, classes, windows.VALIDATION_SHARE, others, _WINDOWS)

    return TaskInfo(classes, load)


_WINDOWS = replace(
    MOSAICS,
    shown="chapters.series.windows:shown",
    reads="chapters.series.given_series:given_series",
    example="series",
)

SERIES = Declaration(
    _WINDOWS,
    _series,
    {  # by default three of the nine speakers, and the steps of the shortest series
        "foreground": Axis("classes that are labels, e.g. 1+2+3", Text(), ("1+2+3",)),
        "background": Axis("classes of the other segments; rest: all others", Text(), (REST,)),
        # As many steps at least as the networks' first kernel has.
        "window": Axis("steps of a segment", Whole(3, 1_000_000), (7,)),
    },
    DATA_SET,
)
