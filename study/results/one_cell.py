"""One recorded cell: its row, the cell itself, and the network that it trained, if it was kept."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, TypeVar

import pandas as pd

from study import models, parts, tasks
from study.cell import AnyCell, Cell
from study.errors import RequestError, nearest
from study.results.results import Results
from study.results.trained_network import TrainedNetwork
from study.tasks.sources.places import Places, absolute
from study.tasks.task import carried

C = TypeVar("C", bound=AnyCell)


def load_network(
    results: str | os.PathLike[str], cell_id: str, **places: str | None
) -> TrainedNetwork:
    """The network of a cell that was trained with `--keep-weights`; its data is not opened.

    Of a network that an earlier version kept it is, as that knows neither classes nor vocabulary.

    Args:
        results: the results directory, local path or URL.
        cell_id: of the cell, or the beginning of it.
        places: of the task's files, for `TrainedNetwork.task`, as the command's options:
            `data_dir`, `cache_dir`, and those of its task. Without, they are found as the command
            finds them.

    Raises:
        RequestError: no such cell or several; its network was not kept, or is damaged; its parts
            are missing or changed; or a place is of no use to its task.
        ResultsError: the directory cannot be read.
    """
    from study.models import kept
    from study.train.run_training import task_of

    parts.load(())
    directory = Results(results)
    row = row_of(directory, cell_id)
    if row["kind"] != "training" or not directory.storage.exists(kept.file_of(row["cell_id"])):
        raise RequestError(
            f"{directory.url} holds no network of cell {row['cell_id']}. The command `study.run "
            f"{row['study']} --keep-weights --results DIR`, with another directory, keeps the "
            "networks of confirming cells."
        )
    cell = cell_of(row, Cell)
    parts.require(cell)
    weights, facts = kept.read(directory.storage, cell.id)
    if pd.notna(row["network_digest"]) and row["network_digest"] != kept.digest(weights):
        where = directory.storage.path(kept.file_of(cell.id))
        raise RequestError(f"{where} is damaged: its weights are not those of the cell's record.")
    found = Places.of({name: absolute(place) for name, place in places.items()})
    tasks.require_use(found, [cell.task])
    facts = facts or carried(task_of(cell, found))
    model = models.network_of(cell, tuple(facts["input_shape"]), facts["num_classes"])
    model.load_state_dict(weights)
    return TrainedNetwork(cell, model.eval(), facts | {"m": cell.m}, found)


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
            f"cell {cell_id} was trained by another trainer, or with parts that "
            f"--with (in Python: study.parts.load) does not name now ({error}). Name them, or "
            f"take code version {row['code_version']}."
        ) from error
    return cell
