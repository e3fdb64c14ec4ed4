"""Where the report of a results directory lies."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from study.storage.storage import Storage
from study.storage.urls import local_path

_REPORT = "report.html"


def report_folder(results: str, study: str | None = None) -> str:
    """Path or URL of the report of a results directory, or of one of its studies."""
    # A study's report lies in a folder of its own, so that it does not replace the whole report.
    name = re.sub(r"[^\w.-]+", "_", study or "").strip(".")
    path = local_path(results)
    if path is not None:
        return str(path / "report" / name)
    return "/".join([results.rstrip("/"), "report", *([name] * bool(name))])


@contextmanager
def report_files(results: str, study: str) -> Iterator[list[Path]]:
    """The report of a study as local files, for MLflow; empty if there is none.

    Raises:
        ResultsError: the report cannot be read.
    """
    folder = report_folder(results, study)
    here = local_path(folder)
    with tempfile.TemporaryDirectory(prefix="attention-study-") as copies:
        file = (here or Path(copies)) / _REPORT
        if here is None:
            with suppress(FileNotFoundError):
                file.write_bytes(Storage(folder).read(_REPORT))
        yield [file] if file.exists() else []
