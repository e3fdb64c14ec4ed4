"""The one runner of a job: it trains cells, evaluates and records them. Knows no Ray."""

from __future__ import annotations

import datetime
import json
import math
import platform
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from study import hardware
from study.cell import AnyCell
from study.cell.events import Ended, Report, Runner
from study.cell.version import require_source
from study.cell.work import Job, Work
from study.kinds import KINDS
from study.launch.failures import Failure, failure_of
from study.results import ENDED, Results, cell_columns

Pack = Sequence[AnyCell]


def run_job(job: Job, work: Work, report: Report | None = None) -> dict[str, str]:
    """Runs the cells of a job, pack by pack, and records each pack's as they have ended.

    A job can be repeated: recorded cells are left alone, others go on from their checkpoints. A
    pack that runs out of memory is tried again in halves, and on a GPU a single cell once more: a
    neighbour may have had the rest for a moment. Then it has failed, and the others go on.

    Args:
        job: which cells.
        work: how.
        report: told of events.

    Returns:
        Cell id -> how it ended: done, diverged, censored, or failed. Cells that were recorded
        before are among them.

    Raises:
        RequestError: the data or the project's version differs from the plan's, or the results
            directory cannot be written.
        Exception: a bug, or what the loss of a GPU raises.
    """
    device = _set_up(work)
    kind, results = KINDS[work.kind], Results(work.results)
    tell: Report = report or (lambda event: None)
    run = kind.runner(work, device, report)
    statuses: dict[str, str] = {}
    given_up: dict[str, str | None] = {}  # by an earlier command, and when
    once_more: list[AnyCell] = []

    def end(cell_id: str, status: str, **why: str) -> None:
        statuses[cell_id] = status
        tell({"event": "ended", "cell_id": cell_id, "status": status, **why})

    waiting = [list(pack) for pack in job.packs]
    while waiting:
        pack = []
        for cell in waiting.pop(0):
            recorded = None if work.dry_run else results.status(cell.id)
            if recorded == "failed":
                given_up[cell.id] = results.failed_at(cell.id)
            if recorded in ENDED:
                kind.discard(results.storage, cell.id)  # a lost worker may have left it
                end(cell.id, recorded)
            else:
                pack.append(cell)
        if not pack:
            continue
        started = time.perf_counter()
        later = [cell for other in waiting for cell in other] if job.share else []
        try:
            ended = _run(run, pack, later)
        except Exception:
            tell({"event": "raised", "cells": [cell.id for cell in pack]})
            raise
        if not isinstance(ended, Failure):
            for cell, outcome in zip(pack, ended, strict=True):
                if not work.dry_run:
                    seconds = time.perf_counter() - started
                    earlier = given_up.get(cell.id)
                    _record(cell, outcome, seconds, len(pack), work, device, earlier)
                    kind.discard(results.storage, cell.id)
                end(cell.id, outcome.status)
        elif len(pack) > 1:
            half = math.ceil(len(pack) / 2)
            waiting[:0] = [pack[:half], pack[half:]]
            tell({"event": "note", "text": f"{ended.text}; tried again in packs of {half}"})
        elif device.type == "cuda" and pack[0] not in once_more:
            once_more += pack
            waiting.insert(0, pack)
            tell({"event": "note", "text": f"{ended.text}; tried once more"})
        else:
            end(pack[0].id, "failed", kind=ended.kind, text=ended.text)
    return statuses


def record_failure(cell: AnyCell, why: str, work: Work) -> None:
    """Records that a cell failed and is not tried again by its command; a later one does.

    No result is recorded. But whoever reads the others knows that it is not to be waited for.
    """
    results = Results(work.results)
    if results.status(cell.id) is None:
        row = _row(cell, work) | {"status": "failed", "status_reason": why}
        results.write_cell(row, [])


def _set_up(work: Work) -> torch.device:
    """Prepares this process; refuses another results directory or version than the command's."""
    if work.origin is not None and not work.dry_run:
        Results(work.results).require_origin(work.origin)
    if work.source is not None:
        require_source(work.source)
    return hardware.set_up(work.threads, work.gpu)


def _run(run: Runner, pack: Pack, later: Pack) -> list[Ended] | Failure:
    """How each cell of a pack ended, or that it ran out of memory."""
    try:
        return run(pack, later)
    except (RuntimeError, MemoryError) as error:
        failure = failure_of(error)
        if failure.kind != "out of memory":
            raise
    hardware.give_back_memory()  # outside the except clause, which holds on to tensors
    return failure


def _record(
    cell: AnyCell,
    ended: Ended,
    seconds: float,
    pack: int,
    work: Work,
    device: torch.device,
    given_up_at: str | None,
) -> None:
    """Records a cell.

    Args:
        cell, ended, work, device: what ran, how it ended, and how it was run.
        seconds: wall time of this process.
        pack: cells that were trained together.
        given_up_at: when an earlier command had given it up, if one had.
    """
    row = _row(cell, work) | {
        **ended.columns,
        "total_seconds": ended.earlier_seconds + seconds,
        "pack": pack,
        "device": hardware.device_name(device),
        "threads": torch.get_num_threads(),
        "given_up_at": given_up_at,
    }
    evaluations = [{"cell_id": cell.id, **each} for each in ended.evaluations]
    Results(work.results).write_cell(row, evaluations, ended.instances)


def _row(cell: AnyCell, work: Work) -> dict[str, Any]:
    """Columns of a cell that are known however it ended."""
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    return {
        "study": work.study,
        "kind": work.kind,
        "stage": work.stage(cell),
        "planned_seeds": work.planned_seeds(cell),
        **cell_columns(cell),
        "code_version": work.code_version,
        "package_versions": json.dumps(versions),
        "finished_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
