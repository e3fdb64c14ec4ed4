"""The suggestions of a search, one small file each beside its results.

A search's database is made anew from them and from the results. A recorded cell alone does not
tell which search suggested it, or whether a grid did.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from study.storage.storage import ResultsError, Storage

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

FOLDER = "search"


@dataclass(frozen=True, eq=False)
class Suggested:
    """A suggestion as Optuna made it.

    Attributes:
        number: of its Optuna trial, which is its place in the search.
        point: axis -> value of its cells.
        params: Optuna's parameter -> value; numbers are those of the point before rounding.
        distributions: Optuna's parameter -> the range or choices at that time.
    """

    number: int
    point: Mapping[str, Any]
    params: Mapping[str, Any]
    distributions: Mapping[str, BaseDistribution]


class Record:
    """The recorded suggestions of one search.

    Args:
        storage: the files of the results directory.
        title: of the Optuna study.

    Raises:
        ResultsError: their folder cannot be made or listed.
    """

    def __init__(self, storage: Storage, title: str) -> None:
        self._storage = storage
        self._folder = f"{FOLDER}/{title.replace(' ', '-')}"
        storage.make(self._folder)
        self._names = set(storage.names(self._folder, ".json"))

    def add(self, suggested: Suggested) -> None:
        """Records a suggestion; of those with equal points the first one stays.

        Raises:
            ResultsError: it cannot be written.
        """
        from optuna.distributions import distribution_to_json

        name = self._name(suggested.point)
        if name in self._names:
            return
        content = {
            "number": suggested.number,
            "point": suggested.point,
            "params": suggested.params,
            "distributions": {
                name: json.loads(distribution_to_json(each))
                for name, each in suggested.distributions.items()
            },
        }
        self._storage.write(name, json.dumps(content, indent=1).encode())
        self._names.add(name)

    def lacking(self, points: Iterable[Mapping[str, Any]]) -> list[Suggested]:
        """The suggestions whose points are none of these, in the order of their numbers.

        Raises:
            ResultsError: a file cannot be read.
        """
        names = self._names - {self._name(point) for point in points}
        return sorted((self._read(name) for name in names), key=lambda each: each.number)

    def _name(self, point: Mapping[str, Any]) -> str:
        text = json.dumps(point, sort_keys=True)
        return f"{self._folder}/{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"

    def _read(self, name: str) -> Suggested:
        from optuna.distributions import json_to_distribution

        try:
            content = json.loads(self._storage.read(name))
            made = {
                n: json_to_distribution(json.dumps(d)) for n, d in content["distributions"].items()
            }
            return Suggested(content["number"], content["point"], content["params"], made)
        except (ValueError, KeyError, TypeError) as error:
            raise ResultsError(
                f"{self._storage.path(name)} is damaged ({error}). Remove it: the search goes on "
                "without this suggestion; its cells stay."
            ) from error
