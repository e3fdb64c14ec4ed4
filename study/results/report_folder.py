"""Where the report of a results directory lies."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from study.evaluate.heat_map import HEATMAP_EDGES as HEATMAP_EDGES
from study.evaluate.heat_map import SAIF_THRESHOLD as SAIF_THRESHOLD
from study.results.copies import agree as agree
from study.results.coverage import KEY as KEY
from study.results.coverage import Damage as Damage
from study.results.coverage import coded as coded
from study.results.parquet import DICTIONARIES as DICTIONARIES
from study.results.schema import CELLS_SCHEMA as CELLS_SCHEMA
from study.results.schema import DYNAMICS as DYNAMICS
from study.results.schema import EVALUATIONS_SCHEMA as EVALUATIONS_SCHEMA
from study.results.schema import METRICS as METRICS
from study.results.schema import RATIONALES as RATIONALES
from study.results.schema import SPLITS as SPLITS
from study.results.schema import cell_columns as cell_columns
from study.storage.storage import ResultsError as ResultsError
from study.storage.storage import Storage as Storage
from study.storage.urls import local_path as local_path

_REPORT = "report.html"


def report_folder(results: str, study: str | None = None) -> str:
    """Where the report of a results directory lies, or that of one study: a path or URL."""
    # A report of one study lies beside that of all, not over it.
    name = re.sub(r"[^\w.-]+", "_", study or "").strip(".")
    path = local_path(results)
    if path is not None:
        return str(path.expanduser() / "report" / name)
    return "/".join([results.rstrip("/"), "report", *([name] * bool(name))])


@contextmanager
def report_files(results: str, study: str) -> Iterator[list[Path]]:
    """The report of a study, if it is there, as files of this machine, for MLflow to take.

    Raises:
        ResultsError: it is there and cannot be read.
    """
    folder = report_folder(results, study)
    with tempfile.TemporaryDirectory(prefix="attention-study-") as copies:
        file = (local_path(folder) or Path(copies)) / _REPORT
        if file.parent == Path(copies):
            with suppress(FileNotFoundError):
                file.write_bytes(Storage(folder).read(_REPORT))
        yield [file] if file.exists() else []
