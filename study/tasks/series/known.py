"""The declared task of series."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from study.cell import Options
from study.cell.declared import Axis, Text, Whole
from study.tasks.base import MOSAICS, UNKNOWN_DIGEST, Declaration, Facts, Task, TaskInfo
from study.tasks.mosaics.classes import REST, background_names, foreground_names
from study.tasks.series import japanese_vowels, ts_folder, windows
from study.tasks.series.ts_file import TsFile, read_ts, require_alike
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.places import Places

LEAST_WINDOW = 3
"""Steps, as many as the networks' first kernel has."""

DATA_SET = DataSet(
    title="time series",
    folder="japanese-vowels",
    accepted=ts_folder.ACCEPTED,
    belongs=ts_folder.belongs,
    download=japanese_vowels.refuse_download,
    shipped=japanese_vowels.shipped,
)


def _series(options: Options) -> TaskInfo:
    background, window = options["background"], options["window"]
    classes = foreground_names(options["foreground"], background)
    from study.tasks.mosaics.mosaics import MosaicTask

    def task(base: windows.BaseWindows, others: tuple[str, ...]) -> Task:
        return MosaicTask(windows.TASK, base, classes, windows.VALIDATION_SHARE, others)

    def load(places: Places) -> Task:
        name, train, test = read_data_set(DATA_SET, places, _read)
        others = background_names(classes, background, train.classes, name)
        return task(windows.windows_of(train, test, window), others)

    def made_up(facts: Facts, count: int) -> Task:
        others = (REST,)
        return task(windows.made_up_windows(facts.input_shape, classes, others, count), others)

    shape = (japanese_vowels.CHANNELS, window, 1)
    return TaskInfo(
        shape,
        classes,
        load,
        made_up,
        nominal=Facts(UNKNOWN_DIGEST, shape, sizes={}, lengths={}),
    )


def _read(folder: Path) -> tuple[str, TsFile, TsFile]:
    """The name of a data set, its series to train and validate on, and those to test on.

    Raises:
        RequestError: there are none, or they are damaged.
    """
    pair = ts_folder.find(folder)
    train, test = read_ts(pair.train), read_ts(pair.test)
    require_alike(train, test)
    return pair.name, train, test


TASKS: Mapping[str, Declaration] = {
    "series": Declaration(
        MOSAICS,
        _series,
        {
            "foreground": Axis(
                "classes that are labels, e.g. 1+2+3", Text(), (japanese_vowels.FOREGROUND,)
            ),
            "background": Axis("classes of the other segments, or rest", Text(), (REST,)),
            "window": Axis(
                "steps of a segment", Whole(LEAST_WINDOW, 1_000_000), (japanese_vowels.WINDOW,)
            ),
        },
        DATA_SET,
    ),
}
