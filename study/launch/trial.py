"""A trial: trains cells and records them. Usable without Ray."""

from __future__ import annotations

import dataclasses
import datetime
import json
import platform
import socket
import time
from typing import Any

import numpy as np
import torch

from study import hardware
from study.cell.events import Report
from study.cell.version import source_digest
from study.cell.work import Work
from study.errors import RequestError
from study.kinds import KINDS
from study.results import Results, cell_columns


def train_cells(work: Work, report: Report | None = None) -> dict[str, str]:
    """Runs cells as their kind does, e.g. trains a pack, and records them when all have ended.

    A trial can be repeated: recorded cells are left alone, others go on from their checkpoints.

    Args:
        work: which cells, and how.
        report: told of events.

    Returns:
        Cell id -> end state; without the cells that were recorded before.

    Raises:
        RequestError: the data or the project's version differs from the plan's, or the results
            directory cannot be written.
    """
    results = Results(work.results)
    record = not work.dry_run
    if record and work.origin is not None:
        results.require_origin(work.origin)
    if work.source is not None and work.source != source_digest():
        raise RequestError(
            f"node {socket.gethostname()} has another version of this project than the command. "
            "Bring them to one (`ray up` again copies it) and restart Ray there."
        )
    device = hardware.set_up(work.threads, work.gpu)
    kind = KINDS[work.kind]
    if record:
        ended = {c.id for c in work.cells if results.status(c.id) not in (None, "censored")}
        for cell_id in ended:  # a lost worker may have left its checkpoints
            kind.discard(results.storage, cell_id)
        cells = tuple(cell for cell in work.cells if cell.id not in ended)
        work = dataclasses.replace(work, cells=cells)
    if not work.cells:
        return {}
    started = time.perf_counter()
    outcomes = dict(zip(work.cells, kind.run(work, device, report), strict=True))
    for cell, outcome in outcomes.items() if record else ():
        row = {
            "study": work.study,
            "kind": work.kind,
            "stage": work.stage(cell),
            "planned_seeds": work.planned_seeds(cell),
            **cell_columns(cell),
            **outcome.columns,
            "total_seconds": outcome.earlier_seconds + time.perf_counter() - started,
            **_circumstances(work, device),
        }
        evaluations = [{"cell_id": cell.id, **each} for each in outcome.evaluations]
        results.write_cell(row, evaluations, outcome.base_images)
        kind.discard(results.storage, cell.id)
    return {cell.id: outcome.status for cell, outcome in outcomes.items()}


def _circumstances(work: Work, device: torch.device) -> dict[str, Any]:
    """Columns that are recorded beside a cell but not part of its id."""
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    return {
        "device": hardware.device_name(device),
        "threads": torch.get_num_threads(),
        "pack": len(work.cells),
        "code_version": work.code_version,
        "package_versions": json.dumps(versions),
        "finished_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
