"""Settings of a model that cells of some tasks alone have, as a part of a cell."""

from __future__ import annotations

from typing import Any, ClassVar

from study.cell.declared import Declared
from study.door import Registry


class Settings(Declared):
    """The base of a frozen dataclass whose fields are axes of these tasks.

    Attributes:
        key: under which they stand in the JSON of a cell.
    """

    key: ClassVar[str]

    def further(self, cell: Any) -> tuple[Any, ...]:
        """What the builder of the model of a `study.cell.Cell` takes besides."""
        return (self,)

    def columns(self, cell: Any) -> dict[str, Any]:
        """Columns of results that follow from a `study.cell.Cell`."""
        return {}


SETTINGS: Registry[type[Settings]] = Registry({})
"""Key -> class, of all that chapters and files of parts register."""
