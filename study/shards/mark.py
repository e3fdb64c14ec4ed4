"""What all shards of a study agree on, as the mark that they leave in the results directory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from study.plan.plan import Plan
from study.request import Request, Shard
from study.terminal import counted


@dataclass(frozen=True)
class Mark:
    """The study, its data and how it is divided.

    All shards leave the same mark, so it does not matter which one comes first; a command of
    another kind leaves another one, see `study.results.Results.mark`.

    Attributes:
        study: its name.
        shards: how many there are.
        cells: of the grid.
        grid: a digest of the cells and of what decides which options are confirmed.
        data: each task, with what its data are made with -> the digest of the data.
    """

    study: str
    shards: int
    cells: int
    grid: str
    data: Mapping[str, str]

    @classmethod
    def of(cls, request: Request, shard: Shard, grid: Plan) -> Mark:
        """The mark of a command.

        Args:
            request: what was asked for.
            shard: one of those that share the study.
            grid: the plan of all cells of the study, before it is compared with what is recorded.
        """
        decides = [[cell.id for cell in grid.cells], request.confirm, request.select]
        digest = hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:16]
        data = {}
        for (task, options), facts in grid.facts.items():
            made_with = [f"{k}={v}" for k, v in options._asdict().items() if v is not None]
            data[" ".join([task, *made_with])] = facts.digest
        return cls(grid.study, shard.of, len(grid.cells), digest, data)

    @property
    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def why_not(self, there: str, running: bool) -> str | None:
        """Why shards with this mark cannot train beside, or after, those that left another one.

        Args:
            there: the text of the other mark.
            running: whether those train now.

        Returns:
            None: they can.
        """
        other = _read(there)
        if other is None or other == self:  # of another command, or fenced off by one
            if not running:
                return None
            return f"another command took the results directory over. {_WAIT}"
        if other.study == self.study:
            for name in sorted(other.data.keys() & self.data.keys()):
                if other.data[name] != self.data[name]:
                    return (
                        f"shards of {self.study} trained on {name} with digest "
                        f"{other.data[name]}, but here it has digest {self.data[name]}. Name the "
                        "same data with --data-dir DIR, or choose another directory with "
                        "--results DIR."
                    )
        if not running:
            return None
        return f"{self._difference(other)}. {_WAIT}"

    def _difference(self, other: Mark) -> str:
        if other.study != self.study:
            return f"shards of {other.study} are running with the results directory"
        if other.shards != self.shards:
            there = counted(
                other.shards, f"shard of {self.study} is", f"shards of {self.study} are"
            )
            return f"{there} running, not {self.shards}"
        return (
            f"shards of {self.study} are running with another grid "
            f"({counted(other.cells, 'cell')}, here {self.cells}), other confirming seeds or "
            "another --select"
        )


_WAIT = "Wait for their end, or choose another directory with --results DIR."


def _read(text: str) -> Mark | None:
    """The mark of that text; None if no shard left it."""
    try:
        values: dict[str, Any] = json.loads(text)
        return Mark(**values)
    except (TypeError, ValueError):  # of a driver
        return None
