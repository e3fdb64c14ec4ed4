"""One recorded cell: its row, the cell itself, and the network that it trained, if it was kept."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from study import models, paradigms, parts, tasks
from study.cell import AnyCell, Cell
from study.errors import RequestError, nearest
from study.results.results import Results
from study.tasks.sources.places import Places, absolute
from study.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor

    from study.models.model import Model
    from study.paradigms.paradigm import Paradigm

C = TypeVar("C", bound=AnyCell)


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """The network that a cell trained.

    Attributes:
        cell: that trained it.
        task: its task; `task.splits(cell)["test"]` is what it was tested on.
        model: with the trained weights, on the CPU, in evaluation mode.
    """

    cell: Cell
    task: Task
    model: Model

    @property
    def paradigm(self) -> Paradigm:
        """The paradigm whose formula predicts, as at the last evaluation."""
        last = paradigms.get(self.cell.schedule.phases[-1].paradigm)
        return paradigms.get(self.cell.inference or last.exact)

    def predict(self, segments: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Where it looks, and what it predicts.

        Args:
            segments: (B, m, ...), as in a `study.tasks.task.Batch`.
            mask: (B, m) bool, True = real segment; None: all are.

        Returns:
            Attention (B, m), whose rows sum to 1, and class probabilities (B, C).

        Raises:
            RequestError: it writes captions or compares images: its model has functions for that.
        """
        import torch

        if tasks.modality(self.cell.task).evaluation != tasks.MOSAICS.evaluation:
            raise RequestError(
                f"a network of {self.cell.task} does not classify segments: call its `model`."
            )
        with torch.no_grad():
            heads = self.model.focus, self.model.classifier
            return self.paradigm.predict(*heads, self.model.encode(segments, mask), mask)


def load_network(
    results: str | os.PathLike[str], cell_id: str, **places: str | None
) -> TrainedNetwork:
    """The network of a cell that was trained with `--keep-weights`, with its task.

    Args:
        results: the results directory, local path or URL.
        cell_id: of the cell, or the beginning of it.
        places: of the task's files, as the command's options: `data_dir`, `cache_dir`, and those
            of its task. Without, they are found as the command finds them.

    Raises:
        RequestError: no such cell or several; its network was not kept, or is damaged; its data
            or parts are missing or changed.
        ResultsError: the directory cannot be read.
    """
    from study.models import kept
    from study.train.run_training import task_of

    parts.load(())
    directory = Results(results)
    row = row_of(directory, cell_id)
    if row["kind"] != "training" or not directory.storage.exists(kept.file_of(row["cell_id"])):
        raise RequestError(
            f"{directory.url} holds no network of cell {row['cell_id']}. Train its study with "
            "--keep-weights in another directory (--results DIR), which keeps the networks of "
            "confirming cells."
        )
    cell = cell_of(row, Cell)
    parts.require(cell)
    weights = kept.load(directory.storage, cell.id)
    if pd.notna(row["network_digest"]) and row["network_digest"] != kept.digest(weights):
        where = directory.storage.path(kept.file_of(cell.id))
        raise RequestError(f"{where} is damaged: its weights are not those of the cell's record.")
    task = task_of(cell, Places.of({name: absolute(place) for name, place in places.items()}))
    model = models.model_of(cell, task)
    model.load_state_dict(weights)
    return TrainedNetwork(cell, task, model.eval())


def row_of(results: Results, asked: str) -> dict[Any, Any]:
    """The row, of `study.results.CELLS_SCHEMA`, of the one cell whose id begins so.

    Raises:
        RequestError: no such cell, or several.
        ResultsError: the directory cannot be read.
    """
    asked = asked.strip().lower()
    ids = sorted(results.finished())
    found = [cell_id for cell_id in ids if cell_id.startswith(asked)]
    if not found:
        results.records()  # refuses no directory, or a damaged file, where the cell may be
        if not ids:
            raise RequestError(f"{results.url} holds no finished cell. Run a study first.")
        near = nearest(asked, [cell_id[: len(asked)] for cell_id in ids])
        hint = f"Did you mean {near}? " if near else ""
        raise RequestError(
            f"{results.url} has no cell {asked}. {hint}Reports and the files in cells/ name cells "
            "by 16 hexadecimal digits, of which the first few are enough."
        )
    if len(found) > 1:
        some = ", ".join(found[:5])
        raise RequestError(
            f"{asked!r} begins the ids of {len(found)} cells, such as {some}. Give more digits."
        )
    (row,) = results.cells(found).to_dict("records")
    return row


def cell_of(row: Mapping[Any, Any], of: type[C]) -> C:
    """The cell of a row; `of` is the type of its kind.

    Raises:
        RequestError: another version or other parts made it, so that it has another id here.
    """
    cell_id = row["cell_id"]
    try:
        cell = of.from_dict(json.loads(row["cell"]))
        if cell.id != cell_id:
            raise ValueError(f"here the same settings make cell {cell.id}")
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError(
            f"cell {cell_id} was trained by another trainer, or with parts that --with does not "
            f"name now ({error}). Name them, or take code version {row['code_version']}."
        ) from error
    return cell
