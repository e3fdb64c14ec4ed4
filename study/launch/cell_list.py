"""A file of cells: what a plan leaves to train, for a machine that trains without the planner."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from study.cell import AnyCell
from study.errors import RequestError, unknown
from study.kinds import KINDS
from study.storage.storage import Storage

_FORMAT = "attention-study cells 1"

_HOW = "Write one with `python -m study.run STUDY --plan --write-cells FILE`."


@dataclass(frozen=True)
class CellList:
    """Cells of one study, each once.

    Args:
        study: its name, recorded beside each cell.
        kind: of the cells, one of `study.kinds.KINDS`.
        cells: in the order in which they should train.
        confirm: seeds that confirm the chosen options; empty: the study has one stage.
    """

    study: str
    kind: str
    cells: tuple[AnyCell, ...]
    confirm: tuple[int, ...] = ()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the list as JSON, one line a cell.

        Raises:
            ResultsError: the file cannot be written.
        """
        head = {"format": _FORMAT, "study": self.study, "kind": self.kind, "confirm": self.confirm}
        cells = ",\n".join(json.dumps(cell.to_dict()) for cell in self.cells)
        text = f'{json.dumps(head)[:-1]}, "cells": [\n{cells}\n]}}\n'
        folder, name = os.path.split(os.path.abspath(path))
        Storage(folder).write(name, text.encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> CellList:
        """Reads a list that `write` wrote.

        Raises:
            RequestError: there is no such file, or it holds no cells of this version.
        """
        values = _json(path)
        if not isinstance(values, dict) or values.get("format") != _FORMAT:
            raise RequestError(f"{path} is no list of cells of this version. {_HOW}")
        study, kind, listed = (values.get(name) for name in ("study", "kind", "cells"))
        if not (isinstance(study, str) and isinstance(kind, str) and isinstance(listed, list)):
            raise RequestError(f"{path} lacks the study, the kind or the cells. {_HOW}")
        if kind not in KINDS:
            raise unknown("kind of cell", kind, KINDS)
        confirm = values.get("confirm", [])  # lists of one stage had none
        if not (isinstance(confirm, list) and all(isinstance(seed, int) for seed in confirm)):
            raise RequestError(f"{path}: confirm must be a list of seeds. {_HOW}")
        type_ = KINDS[kind].cell
        cells = [
            _cell(type_, each, f"cell {n} of {path}") for n, each in enumerate(listed, start=1)
        ]
        each_once = {cell.id: cell for cell in cells}
        return cls(study, kind, tuple(each_once.values()), tuple(confirm))


def _cell(type_: type[AnyCell], values: Any, which: str) -> AnyCell:
    of_type: Any = type_  # every type of cell is a dataclass
    names = {field.name for field in fields(of_type)}
    strange = sorted(set(values) - names) if isinstance(values, dict) else ["no field of a cell"]
    if strange:
        raise RequestError(f"{which} has {', '.join(strange)}, unknown to this version. {_HOW}")
    try:
        return type_.from_dict(values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RequestError(f"{which} cannot be read ({error}). {_HOW}") from error


def _json(path: str | os.PathLike[str]) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({error.strerror}). {_HOW}") from error
    except ValueError as error:  # damaged, or no text at all
        raise RequestError(f"{path} is not JSON ({error}). {_HOW}") from error
