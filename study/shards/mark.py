"""What all shards of a study agree on, as the mark that they leave in the results directory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from study.plan.plan import Plan
from study.request import Request, Shard

_WAIT = "Wait for their end, or choose another directory with --results DIR."


@dataclass(frozen=True)
class Mark:
    """The study, its data and how it is divided.

    All shards leave the same mark, so it does not matter which one comes first; a command of
    another kind leaves another one, see `study.results.Results.mark`.

    Attributes:
        study: its name.
        shards: how many there are.
        grid: how many cells it has, and a digest of their ids.
        confirm: seeds that confirm the chosen options.
        select: validation metric that chooses them.
        data: each task, with what its data are made with -> the digest of the data.
    """

    study: str
    shards: int
    grid: str
    confirm: list[int]
    select: str
    data: Mapping[str, str]

    @classmethod
    def of(cls, request: Request, shard: Shard, grid: Plan) -> Mark:
        """The mark of a command.

        Args:
            request: what was asked for.
            shard: one of those that share the study.
            grid: the plan of all cells of the study, before it is compared with what is recorded.
        """
        ids = json.dumps([cell.id for cell in grid.cells])
        digest = hashlib.sha256(ids.encode()).hexdigest()[:16]
        data = {}
        for (task, options), facts in grid.facts.items():
            made_with = [f"{k}={v}" for k, v in options._asdict().items() if v is not None]
            data[" ".join([task, *made_with])] = facts.digest
        return cls(
            grid.study,
            shard.of,
            f"{len(grid.cells)} ({digest})",
            list(request.confirm),
            request.select,
            data,
        )

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
            return f"another command took the results directory over. {_WAIT}" if running else None
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
        theirs, mine = asdict(other), asdict(self)
        differ = [f"{k} {theirs[k]}, here {mine[k]}" for k in mine if theirs[k] != mine[k]]
        return f"other shards are running with the results directory: {'; '.join(differ)}. {_WAIT}"


def _read(text: str) -> Mark | None:
    """The mark of that text; None if no shard left it."""
    try:
        return Mark(**json.loads(text))
    except (TypeError, ValueError):  # of a driver
        return None
