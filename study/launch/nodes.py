"""A Ray cluster that this process has joined: its nodes, what fits on them, what they can do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from study.cell.version import source_digest
from study.errors import RequestError

ANSWER_SECONDS = 180.0
"""How long a node may take to answer: a fresh worker imports PyTorch."""

SILENT_SECONDS = 20.0
"""How long a call may wait for a free node before the wait is told."""

_GROWTH_FILE = "~/ray_bootstrap_config.yaml"
"""What `ray up` leaves on a head for its autoscaler."""

T = TypeVar("T")


@dataclass(frozen=True)
class Node:
    """One kind of machine.

    Attributes:
        name: host and address of one that is there; the name of its type for others.
        cpus, gpus: that Ray may use on it.
        id: Ray's, of one that is there.
    """

    name: str
    cpus: float
    gpus: float
    id: str = ""

    def slots(self, threads: int, gpus: float) -> int:
        """How many trials find room on it at a time."""
        if not gpus:
            return int(self.cpus // threads)
        # A share of a GPU lies on one GPU.
        on_gpus = int(self.gpus) * int(1 / gpus + 1e-9) if gpus <= 1 else int(self.gpus // gpus)
        return min(int(self.cpus // threads), on_gpus)


class Cluster:
    """A running cluster.

    Args:
        ray: the module, connected to it.
        address: as the user gave it.
        home: where `ray up` leaves its file, on the head.
    """

    def __init__(self, ray: Any, address: str, home: Path | None = None) -> None:
        self.ray = ray
        self.address = address
        self._growth = (home / _GROWTH_FILE[2:]) if home else Path(_GROWTH_FILE).expanduser()

    @property
    def nodes(self) -> list[Node]:
        """Those that are there and may train."""
        found = []
        for node in self.ray.nodes():
            resources = node["Resources"]
            if node["Alive"] and resources.get("CPU"):
                name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                found.append(Node(name, resources["CPU"], resources.get("GPU", 0), node["NodeID"]))
        return found

    @property
    def to_come(self) -> list[Node]:
        """The most that its autoscaler may have at a time; known on the head alone."""
        types, workers = _growth(self._growth)
        each = [
            Node(name, resources.get("CPU", 0), resources.get("GPU", 0))
            for name, (resources, most) in types.items()
            for _ in range(min(most, workers))
        ]
        return sorted(each, key=lambda node: (node.gpus, node.cpus), reverse=True)[:workers]

    def default_gpus(self) -> float:
        """GPUs of a trial: one where there are any, or may be."""
        return 1 if any(node.gpus for node in (*self.nodes, *self.to_come)) else 0

    def slots(self, threads: int, gpus: float) -> int:
        """How many trials find room at a time, when the cluster has grown as far as it may.

        Raises:
            RequestError: none does on any node.
        """
        # The autoscaler's nodes count those that it started already.
        there, to_come = self.nodes, self.to_come
        most = max(sum(n.slots(threads, gpus) for n in nodes) for nodes in (there, to_come))
        if not most:
            kinds = {f"{n.name}: {n.cpus:g} cores, {n.gpus:g} GPUs" for n in (*there, *to_come)}
            has = "; ".join(sorted(kinds)) or "none may train"
            raise RequestError(
                f"a trial takes {_count(threads, 'CPU core')} and {_count(gpus, 'GPU')}, which no "
                f"node of the cluster at {self.address} has ({has}). Change --threads or "
                "--gpus-per-trial."
            )
        return most

    def room(self, gpus: float) -> Callable[[int], int]:
        """`slots` of trials with so many GPUs, by their threads."""
        return lambda threads: self.slots(threads, gpus)

    def call(self, function: Callable[..., T], *args: Any, threads: int, gpus: float) -> T:
        """Calls a function that times cells, where a trial would run; waits for such a node.

        Args:
            function: of a module of the project.

        Raises:
            RequestError: as the function, or the nodes cannot run it.
        """
        task = self.ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=3)(function)
        answer = task.remote(*args)
        done, _ = self.ray.wait([answer], timeout=SILENT_SECONDS)
        if not done:
            room = _count(threads, "CPU core") + (f" and {_count(gpus, 'GPU')}" if gpus else "")
            print(
                f"waiting for a node with {room} free, to time cells on",
                file=sys.stderr,
                flush=True,
            )
        try:
            return self.ray.get(answer)
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, RequestError):
                raise error.cause from error
            raise
        except self.ray.exceptions.RayError as error:
            raise RequestError(
                f"cells cannot be timed on the cluster at {self.address} ({_first_line(error)}). "
                "See `ray status`, and run the command again."
            ) from error

    def require(self, results: str | None = None, mark: str = "") -> None:
        """Checks that every node can train: it has this project, and sees the results directory.

        Nodes that join later are checked by their trials.

        Args:
            results: path or URL of the results directory; None: not looked for.
            mark: as `study.results.Results.mark` gives it.

        Raises:
            RequestError: names the node and what to do.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        probe = self.ray.remote(num_cpus=0)(_probe())
        asked = []
        for node in self.nodes:
            strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
            actor = probe.options(scheduling_strategy=strategy).remote()
            asked.append((node, actor, actor.ask.remote(results, mark)))
        deadline = time.monotonic() + ANSWER_SECONDS
        for node, _, answer in asked:
            left = max(0.0, deadline - time.monotonic())
            try:
                said = self.ray.get(answer, timeout=left)
            except self.ray.exceptions.GetTimeoutError:
                raise RequestError(
                    f"node {node.name} did not answer within {ANSWER_SECONDS:g} s. See `ray "
                    "status` and its logs; or take it out of the cluster."
                ) from None
            except self.ray.exceptions.RayError as error:
                if node not in self.nodes:
                    continue  # lost just now: trials would be tried again elsewhere
                # So it is, too, where this command uses a token and the cluster does not.
                raise RequestError(
                    f"node {node.name} starts no worker for this command "
                    f"({_first_line(error)}). Set RAY_AUTH_MODE to what it was where `ray start` "
                    "ran (token, or disabled); or see the logs of Ray there."
                ) from error
            if refusal := _refusal(node, said):
                raise RequestError(refusal)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _count(number: float, what: str) -> str:
    return f"{number:g} {what}" + "s" * (number != 1)


def _probe() -> type:
    """An actor, as trials are, that travels by value: a node without the project can run it."""

    class Probe:
        def ask(self, results: str | None, mark: str) -> dict[str, str]:
            import sys

            try:
                from study.cell.version import source_digest
                from study.errors import RequestError
                from study.results import Results
            except ImportError as error:
                return {"missing": str(error), "python": sys.executable}
            try:
                if results is not None:
                    Results(results).require_mark(mark)
            except RequestError as error:
                return {"refused": str(error)}
            return {"source": source_digest()}

    return Probe


def _refusal(node: Node, said: Mapping[str, str]) -> str:
    if "missing" in said:
        return (
            f"node {node.name} cannot import this project ({said['missing']}; its Python is "
            f"{said['python']}). Install it there at the same path, with `uv sync --no-dev "
            "--extra cluster`, and start Ray from its environment."
        )
    if "refused" in said:
        return f"node {node.name}: {said['refused']}"
    if said["source"] != source_digest():
        return (
            f"node {node.name} has another version of this project than this command. Bring "
            "them to one (`ray up` again copies it) and restart Ray there."
        )
    return ""


def _growth(file: Path) -> tuple[dict[str, tuple[dict[str, float], int]], int]:
    """Name -> (resources, most nodes) of each type of worker, and the most workers in all."""
    import yaml

    try:
        config = yaml.safe_load(file.read_text())
        head = config["head_node_type"]
        types = {
            name: (kind.get("resources") or {}, int(kind.get("max_workers", 0)))
            for name, kind in config["available_node_types"].items()
            if name != head
        }
        return types, int(config["max_workers"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError):
        return {}, 0  # no head of `ray up`
