"""What a study takes besides training, as the last one on this machine measured it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

FILE = "overhead.json"


@dataclass(frozen=True)
class Overhead:
    """Seconds before and after training.

    Attributes:
        start: from the plan to the first evaluation of a cell: MLflow, Ray, its workers, data.
        report: from the end of the last cell on, for each setting that the report shows: figures,
            the page, MLflow.
        measured: here, by the last study that trained; else they are those of one on two cores.
    """

    start: float = 13.0
    report: float = 12.0
    measured: bool = False


def recall(cache: Path, where: str) -> Overhead:
    """What was measured here; what is assumed where nothing was.

    Args:
        cache: the folder of this machine where data are kept.
        where: the cells train.
    """
    try:
        start, report = map(float, json.loads((cache / FILE).read_text())[where])
    except (OSError, ValueError, TypeError, KeyError):  # nothing, or nothing of ours
        return Overhead()
    usable = all(math.isfinite(seconds) and seconds >= 0 for seconds in (start, report))
    return Overhead(start, report, measured=True) if usable else Overhead()


def remember(cache: Path, where: str, overhead: Overhead) -> None:
    """Keeps what was measured, for `recall`; does nothing where the cache cannot be written."""
    file = cache / FILE
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError):
        known = {}
    if not isinstance(known, dict):
        known = {}
    known[where] = [round(overhead.start, 3), round(overhead.report, 3)]
    partial = file.with_name(f"{FILE}.{uuid.uuid4().hex}")
    with contextlib.suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known))
        os.replace(partial, file)
