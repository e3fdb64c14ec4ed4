"""Cells of their fields and of the options of their data, side by side as in JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

from study.cell import Cell, Options

_FIELDS = {field.name for field in dataclasses.fields(Cell)}


def cell_of(**values: Any) -> Cell:
    options = {name: value for name, value in values.items() if name not in _FIELDS}
    own = {name: value for name, value in values.items() if name in _FIELDS}
    return Cell(**own, **({"options": Options(**options)} if options else {}))
