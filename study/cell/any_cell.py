"""What cells of every kind have in common: they are frozen values with a content hash.

A cell holds everything that determines its result and nothing else, so that its `id` can stand for
the result. Where it ran, how fast and with which versions is recorded beside it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from study.cell.declared import Declared
from study.storage.hashed import hashed


class Options(Mapping[str, Any]):
    """What determines a task's data besides its files: what its declaration names, but None."""

    def __init__(self, **given: Any) -> None:
        self._given = {name: value for name, value in sorted(given.items()) if value is not None}

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __hash__(self) -> int:
        return hash(tuple(self._given.items()))

    def __repr__(self) -> str:
        return f"Options({', '.join(f'{name}={value!r}' for name, value in self.items())})"


NO_OPTIONS = Options()
"""The options of a task that takes none, or of its usual data."""


class AnyCell(Declared, ABC):
    """A cell of any kind; each kind has a frozen dataclass of plain values.

    Attributes:
        version: what runs the cells -> its version, part of every content hash; to be raised when
            a change there changes what a cell's numbers mean.
        task: name of the task.
        data_digest: of its data.
        n: training inputs.
        seed: draws all that is random in the cell.
        evaluation_points: increasing fractions of its budget, the last one 1.
        options: of its task's data.
        precision: of its products.
        setting: what only cells share that one section of the report shows.
    """

    version: ClassVar[Mapping[str, int]]

    if TYPE_CHECKING:  # a real property would be taken for the default of a subclass's field

        @property
        def task(self) -> str: ...

        @property
        def data_digest(self) -> str: ...

        @property
        def n(self) -> int: ...

        @property
        def seed(self) -> int: ...

        @property
        def evaluation_points(self) -> tuple[float, ...]: ...

        @property
        def options(self) -> Options: ...

        @property
        def precision(self) -> str: ...

        @property
        def setting(self) -> Hashable: ...

    @cached_property
    def id(self) -> str:
        """Content hash of all fields: 16 hexadecimal digits."""
        return self.content_hash(self.to_dict())

    @property
    @abstractmethod
    def comparison_id(self) -> str:
        """A hash that only cells share which may be compared."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What is compared, e.g. its paradigm."""

    @property
    def group(self) -> tuple[str, str]:
        """What is compared, and with which cells."""
        return self.comparison_id, self.label

    @property
    def option(self) -> Hashable:
        """What only cells share that differ in their seed alone."""
        return self.hash_without("seed")

    @property
    @abstractmethod
    def text(self) -> str:
        """The cell for people, but for its seed."""

    @property
    def columns(self) -> dict[str, Any]:
        """Its columns of results, see `study.results.CELLS_SCHEMA`."""
        return self.columns_of_fields()

    def hash_without(self, *names: str) -> str:
        """Content hash of all fields but these."""
        return self.content_hash({k: v for k, v in self.to_dict().items() if k not in names})

    def content_hash(self, values: Mapping[str, Any]) -> str:
        """Hash of values and the version: 16 hexadecimal digits."""
        payload = {**self.version, **values}
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashed(text.encode())
