"""A trial: trains cells and records them. Usable without Ray."""

from __future__ import annotations

import dataclasses
import datetime
import json
import platform
import socket
import time
from collections.abc import Sequence
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
    if record and work.mark is not None:
        results.require_mark(work.mark)
    if work.source is not None and work.source != source_digest():
        raise RequestError(
            f"node {socket.gethostname()} has another version of this project than the command. "
            "Bring them to one (`ray up` again copies it) and restart Ray there."
        )
    device = hardware.set_up(work.threads, work.gpu)
    kind = KINDS[work.kind]
    if record:
        recorded = _recorded(results, [cell.id for cell in work.cells], work.mark is not None)
        for cell_id in recorded:  # a lost worker may have left its checkpoints
            kind.discard(results.storage, cell_id)
        cells = tuple(cell for cell in work.cells if cell.id not in recorded)
        work = dataclasses.replace(work, cells=cells)
    if not work.cells:
        return {}
    started = time.perf_counter()
    outcomes = dict(zip(work.cells, kind.run(work, device, report), strict=True))
    if record and work.mark is not None:
        results.require_mark(work.mark)  # a later command may have merged this cell's files
    for cell, ended in outcomes.items() if record else ():
        row = {
            "study": work.study,
            "kind": work.kind,
            "stage": work.stage(cell),
            **cell_columns(cell),
            **ended.columns,
            "total_seconds": ended.earlier_seconds + time.perf_counter() - started,
            **_circumstances(work, device),
        }
        results.write_cell(row, [{"cell_id": cell.id, **each} for each in ended.evaluations])
        kind.discard(results.storage, cell.id)
    return {cell.id: ended.status for cell, ended in outcomes.items()}


def _recorded(results: Results, cell_ids: Sequence[str], of_a_command: bool) -> set[str]:
    """The cells that need no training.

    A command reads every file before it leaves its mark, and then keeps other commands out. It
    merges files of cells only once it knows that they have ended, in their first trial. So those
    that it may ask for here each have a file of their name.
    """
    own = {cell_id for cell_id in cell_ids if results.has_cell(cell_id)}
    if of_a_command or len(own) == len(set(cell_ids)):
        return own
    statuses = results.survey().statuses
    return {cell_id for cell_id in cell_ids if statuses.get(cell_id, "censored") != "censored"}


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
