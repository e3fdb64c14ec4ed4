"""Seconds that a study takes besides training, measured by the last study on this machine."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from pathlib import Path

from study.storage.storage import ResultsError, Storage

FILE = "overhead.json"


@dataclass(frozen=True)
class Overhead:
    """Seconds before and after training.

    Attributes:
        start: from the plan to the first evaluation of a cell: MLflow, Ray, its workers, data.
        report: from the end of the last cell on, for each setting in the report: figures, the
            page, MLflow.
        measured: whether the last study that trained here measured them; else they are assumed
            from a first one on two cores, where Python compiles Ray, MLflow and PyTorch: 44 s of
            CPU before training, 19 s later on.
    """

    start: float = 30.0
    report: float = 12.0
    measured: bool = False


def recall(cache: Path, where: str) -> Overhead:
    """The overhead measured on this machine, or the assumed one.

    Args:
        cache: this machine's cache folder.
        where: name of the place where cells train.
    """
    try:
        start, report = map(float, json.loads((cache / FILE).read_text())[where])
    except (OSError, ValueError, TypeError, KeyError):  # missing or malformed
        return Overhead()
    usable = all(math.isfinite(seconds) and seconds >= 0 for seconds in (start, report))
    return Overhead(start, report, measured=True) if usable else Overhead()


def remember(cache: Path, where: str, overhead: Overhead) -> None:
    """Keeps a measured overhead for `recall`; does nothing if the cache cannot be written."""
    try:
        known = json.loads((cache / FILE).read_text())
    except (OSError, ValueError):
        known = {}
    if not isinstance(known, dict):
        known = {}
    known[where] = [round(overhead.start, 3), round(overhead.report, 3)]
    with contextlib.suppress(ResultsError):
        storage = Storage(cache, "the cache")
        storage.make("")
        storage.write(FILE, json.dumps(known).encode())
