"""Cells that are trained and recorded here, and all that is recorded of them but times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from study.cell import Cell
from study.cell.work import Job, Work
from study.launch.run_job import run_job
from study.results import Results


def work_in(results: Results, **more: Any) -> Work:
    """What jobs of digits have in common."""
    usual = {"study": "digits", "gpu": False, "code_version": "test"}
    return Work(results=results.url, **(usual | more))


def trained(
    results: Results, *packs: tuple[Cell, ...], share: bool = False, **more: Any
) -> dict[str, str]:
    """How the cells of a job ended."""
    return run_job(Job(packs, share), work_in(results, **more))


def table(results: Results | Path | str) -> pd.DataFrame:
    """All evaluations without times, in a fixed order."""
    held = results if isinstance(results, Results) else Results(results)
    keys = ["cell_id", "budget_fraction", "split"]
    return held.evaluations().drop(columns="train_seconds").sort_values(keys, ignore_index=True)
