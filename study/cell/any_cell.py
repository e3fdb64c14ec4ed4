"""What cells of every kind have in common: they are frozen values with a content hash.

A cell holds everything that determines its result and nothing else, so that its `id` can stand for
the result. Where it ran, how fast and with which versions is recorded beside it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self


class Options(NamedTuple):
    """What determines a task's data besides its files, see `study.cell.Cell`.

    None: not for this task.
    """

    num_classes: int | None = None
    label_rule: str | None = None
    rationale_rule: str | None = None
    min_count: int | None = None
    encoder: str | None = None
    pixels: int | None = None
    foreground: str | None = None
    background: str | None = None
    window: int | None = None


NO_OPTIONS = Options()
"""The options of a task that takes none."""


class AnyCell(ABC):
    """A cell of any kind; each kind has a frozen dataclass of plain values.

    Attributes:
        version: what runs the cells -> its version, part of every content hash; to be raised when
            a change there changes what a cell's numbers mean.
        task: name of the task.
        data_digest: of its data.
        n: training inputs.
        seed: draws all that is random in the cell.
        evaluation_points: increasing fractions of its budget, the last one 1.
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
    def setting(self) -> Hashable:
        """What only cells share that one section of the report shows."""

    @property
    @abstractmethod
    def precision(self) -> str:
        """Of its products."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What is compared, e.g. its paradigm."""

    @property
    def group(self) -> tuple[str, str]:
        """What is compared, and with which cells."""
        return self.comparison_id, self.label

    @property
    @abstractmethod
    def text(self) -> str:
        """The cell for people, but for its seed."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, Any]:
        """Columns of `study.results.CELLS_SCHEMA` that only cells of its kind have."""

    @property
    def options(self) -> Options:
        """The options of its task's data."""
        return NO_OPTIONS

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; `from_dict` gives an equal cell back.

        None is left out: what a task does not have is no part of a cell's id.
        """
        return json.loads(json.dumps(_plain(self)))

    @classmethod
    @abstractmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The cell of plain values.

        Raises:
            KeyError, TypeError, ValueError: a value is missing, unknown or out of range.
        """

    def hash_without(self, *names: str) -> str:
        """Content hash of all fields but these."""
        return self.content_hash({k: v for k, v in self.to_dict().items() if k not in names})

    def content_hash(self, values: Mapping[str, Any]) -> str:
        """Hash of values and the version: 16 hexadecimal digits."""
        payload = {**self.version, **values}
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """A value with dictionaries in place of dataclasses, without entries that are None.

    `dataclasses.asdict` takes three times as long, a third of the time of a large plan.
    """
    if value is None or isinstance(value, str | int | float):  # nearly all, so first
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return {key: _plain(each) for key, each in value.items() if each is not None}
