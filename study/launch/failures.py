"""Why a trial failed. The kind of failure decides what happens next."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from study.errors import RequestError
from study.terminal.working import aside

Kind = Literal["out of memory", "worker lost", "bug", "request"]
"""`out of memory`: tried again in smaller packs. `worker lost`: its process, node or GPU died;
tried again in another process. `request`: the study cannot go on as
asked, e.g. the disk is full. `bug`: any other exception. The last two stop a study at once."""

_OUT_OF_MEMORY = re.compile(
    r"DefaultCPUAllocator: (can't|not enough)|CUDA error: out of memory|_ALLOC(ATION)?_FAILED"
    # cuDNN's, if no kernel's workspace has room
    r"|unable to find an engine"
)
_GPU_ERROR = re.compile(r"CUDA (driver )?error|CU(BLAS|DNN|SOLVER|SPARSE)_STATUS_\w+")


@dataclass(frozen=True)
class Failure:
    """Why a trial failed.

    Attributes:
        kind: decides what happens next.
        text: a traceback, or one line for a `request`.
        cell_ids: the trial's cells.
    """

    kind: Kind
    text: str
    cell_ids: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The exception, without further lines of it: CUDA's have advice at their end."""
        lines = self.text.strip().splitlines() or [self.kind]
        code = [number for number, line in enumerate(lines[:-1]) if line.startswith("  ")]
        return lines[max(code, default=-1) + 1]

    @property
    def ends_process(self) -> bool:
        """Whether the process in which it happened is of no further use.

        So it is after a recording of a CUDA graph that could not be ended, which PyTorch 2.11
        takes to be still under way.
        """
        return self.kind == "worker lost" or (self.kind == "bug" and "captur" in self.reason)


def say(failures: Iterable[Failure]) -> None:
    """Prints what failed; a bug with its traceback."""
    for failure in failures:
        ids = ", ".join(failure.cell_ids)
        aside(f"cell {ids} failed: {failure.kind}: {failure.reason}")
        if failure.kind == "bug":
            aside(f"\n{failure.text}")


def failure_of(error: BaseException) -> Failure:
    """Classifies an exception of a trial's code."""
    text = "".join(traceback.format_exception(error))
    if isinstance(error, RequestError):
        return Failure("request", str(error))
    if _is_out_of_memory(error):
        return Failure("out of memory", text)
    if _has_lost_gpu(error):
        return Failure("worker lost", text)
    return Failure("bug", text)


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it followed, says that memory is used up.

    An error while a CUDA graph is recorded makes the end of the recording raise another one.
    """
    return error is not None and (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or (isinstance(error, RuntimeError) and bool(_OUT_OF_MEMORY.search(str(error))))
        or _is_out_of_memory(error.__cause__ or error.__context__)
    )


def _has_lost_gpu(error: BaseException) -> bool:
    """Whether an error of CUDA's, after which most of its calls fail in this process.

    One that says that a step cannot be recorded as a CUDA graph is a bug.
    """
    of_cuda = isinstance(error, torch.AcceleratorError) or (
        isinstance(error, RuntimeError) and bool(_GPU_ERROR.search(str(error)))
    )
    return of_cuda and "captur" not in str(error)


def failure_of_trial(trial: Any) -> Failure:
    """Classifies a failure that Tune reports although the trial's code raised nothing.

    Tune keeps the error as text and as a pickle. Only the text is read: others on this machine
    could write to that folder.
    """
    file = trial.error_file
    there = file and os.path.exists(file)
    text = Path(file).read_text(encoding="utf-8", errors="replace") if there else ""
    if "low on memory" in text:
        return Failure("out of memory", "Ray stopped its worker before the machine ran out")
    if "failed to import on the worker" in text:
        node, why = re.search(r"ip: (\S+)", text), re.search(r"\w*Error: (No module.*)", text)
        return Failure(
            "request",
            f"node {node[1] if node else ''} cannot import this project "
            f"({why[1] if why else 'see its logs'}). Install it there at the same path, with `uv "
            "sync --no-dev --extra cluster`, and start Ray from its environment; or take it out "
            "of the cluster. The same command goes on.",
        )
    if "Traceback" in text:  # Tune failed, or the start of a worker
        return Failure("bug", text)
    return Failure("worker lost", "its process or its node died")
