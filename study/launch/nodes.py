"""The nodes of a Ray cluster that this process has joined, and what fits on them."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from study.cell.version import source_digest
from study.errors import RequestError
from study.storage.urls import expanded
from study.terminal import counted

ANSWER_SECONDS = 180.0
"""How long a node may take to answer: a fresh worker imports PyTorch."""

SILENT_SECONDS = 20.0
"""How long a call waits for a free node before it says so."""

_GROWTH_FILE = "~/ray_bootstrap_config.yaml"
"""`ray up` leaves it on the head node for the autoscaler."""

T = TypeVar("T")


@contextlib.contextmanager
def ray_stderr_into(file: BinaryIO) -> Iterator[None]:
    """Redirects stderr of the process: Ray's C++ part complains there of what we say better."""
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


@dataclass(frozen=True)
class Node:
    """A machine that is there, or one that the autoscaler may start.

    Attributes:
        name: host and address; of a machine to start, its node type.
        cpus, gpus: how many Ray may use.
        id: Ray's; empty for a machine to start.
    """

    name: str
    cpus: float
    gpus: float
    id: str = ""

    def slots(self, threads: int, gpus: float) -> int:
        """How many trials fit on it at a time."""
        if not gpus:
            return int(self.cpus // threads)
        # A fraction of a GPU is never spread over two GPUs.
        on_gpus = int(self.gpus) * int(1 / gpus + 1e-9) if gpus <= 1 else int(self.gpus // gpus)
        return min(int(self.cpus // threads), on_gpus)


class Cluster:
    """A running cluster.

    Args:
        ray: the module, connected to it.
        address: as the user gave it.
        home: the folder on the head where `ray up` leaves its file; None: the home directory.
    """

    def __init__(self, ray: Any, address: str, home: Path | None = None) -> None:
        self.ray = ray
        self.address = address
        self._growth = (home / _GROWTH_FILE[2:]) if home else expanded(_GROWTH_FILE)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are there and may train."""
        found = []
        for node in self.ray.nodes():
            resources = node["Resources"]
            if node["Alive"] and resources.get("CPU"):
                name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                found.append(Node(name, resources["CPU"], resources.get("GPU", 0), node["NodeID"]))
        return found

    @property
    def to_come(self) -> list[Node]:
        """The largest set of nodes that the autoscaler may run; known only on the head."""
        types, workers = _growth(self._growth)
        each = [
            Node(name, resources.get("CPU", 0), resources.get("GPU", 0))
            for name, (resources, most) in types.items()
            for _ in range(min(most, workers))
        ]
        return sorted(each, key=lambda node: (node.gpus, node.cpus), reverse=True)[:workers]

    def default_gpus(self) -> float:
        """GPUs of a trial: one if any node has or may have GPUs, else 0."""
        return 1 if any(node.gpus for node in (*self.nodes, *self.to_come)) else 0

    def slots(self, threads: int, gpus: float) -> int:
        """How many trials fit at a time on the cluster at its full size.

        Raises:
            RequestError: a trial fits on no node.
        """
        # `to_come` includes the nodes that the autoscaler has started already.
        there, to_come = self.nodes, self.to_come
        most = max(sum(n.slots(threads, gpus) for n in nodes) for nodes in (there, to_come))
        if not most:
            kinds = {f"{n.name}: {', '.join(_room(n.cpus, n.gpus))}" for n in (*there, *to_come)}
            has = "; ".join(sorted(kinds)) or "none may train"
            cores, cards = _room(threads, gpus)
            raise RequestError(
                f"a trial takes {cores} and {cards}, which no node of the cluster at "
                f"{self.address} has ({has}). Change --threads or --gpus-per-trial."
            )
        return most

    def room(self, gpus: float) -> Callable[[int], int]:
        """`slots` as a function of the threads, for trials with this many GPUs."""
        return lambda threads: self.slots(threads, gpus)

    def call(self, function: Callable[..., T], *args: Any, threads: int, gpus: float) -> T:
        """Calls a function that times cells on a node with room for a trial; waits for one.

        Args:
            function: defined in a module of the project.

        Raises:
            RequestError: the function raised it, or no node can run the function.
        """
        task = self.ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=3)(function)
        answer = task.remote(*args)
        done, _ = self.ray.wait([answer], timeout=SILENT_SECONDS)
        if not done:
            room = " and ".join(_room(threads, gpus)[: 2 if gpus else 1])
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

    def _answer(self, answer: Any, deadline: float) -> Any:
        return self.ray.get(answer, timeout=max(0.0, deadline - time.monotonic()))

    def require(self, results: str | None = None, origin: str = "") -> None:
        """Checks that every node has this project and sees the results directory.

        Nodes that join later are checked by their trials.

        Args:
            results: path or URL of the results directory; None: not checked.
            origin: as `study.results.Results.origin` gives it.

        Raises:
            RequestError: names the node and what to do.
        """
        with tempfile.TemporaryFile() as unsaid, ray_stderr_into(unsaid):
            self._require(results, origin)

    def _require(self, results: str | None, origin: str) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        probe = self.ray.remote(num_cpus=0)(_probe())

        def ask(node: Node) -> tuple[Any, Any]:
            """The actor, which lives as long as it is held, and its answer."""
            strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
            actor = probe.options(scheduling_strategy=strategy).remote()
            return actor, actor.ask.remote(results, origin)

        asked = [(node, *ask(node)) for node in self.nodes]
        deadline = time.monotonic() + ANSWER_SECONDS
        for node, _, answer in asked:
            try:
                try:
                    said = self._answer(answer, deadline)
                except self.ray.exceptions.ActorDiedError:
                    # Ray cancels actors now and then that it starts while its node begins.
                    again = ask(node)
                    said = self._answer(again[1], deadline)
            except self.ray.exceptions.GetTimeoutError:
                raise RequestError(
                    f"node {node.name} did not answer within {ANSWER_SECONDS:g} s. See `ray "
                    "status` and its logs; or take it out of the cluster."
                ) from None
            except self.ray.exceptions.RayError as error:
                if node not in self.nodes:
                    continue  # just lost: its trials would be tried again elsewhere
                # Also raised if this command uses a token and the cluster does not.
                raise RequestError(
                    f"node {node.name} starts no worker for this command "
                    f"({_first_line(error)}). Set RAY_AUTH_MODE to what it was where `ray start` "
                    "ran (token, or disabled); or see the logs of Ray there."
                ) from error
            if refusal := _refusal(node, said):
                raise RequestError(refusal)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _probe() -> type:
    """An actor class that is pickled by value, so that a node without the project can run it."""

    class Probe:
        def ask(self, results: str | None, origin: str) -> dict[str, str]:
            import sys

            try:
                from study.cell.version import source_digest
                from study.errors import RequestError
                from study.results import Results
            except ImportError as error:
                return {"missing": str(error), "python": sys.executable}
            try:
                if results is not None:
                    Results(results).require_origin(origin)
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
    """Worker type -> (resources, most nodes), and the most workers in all."""
    import yaml

    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
        head = config["head_node_type"]
        types = {
            name: (kind.get("resources") or {}, int(kind.get("max_workers", 0)))
            for name, kind in config["available_node_types"].items()
            if name != head
        }
        return types, int(config["max_workers"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError):
        return {}, 0  # this is no head that `ray up` started


def _room(cores: float, gpus: float) -> tuple[str, str]:
    return counted(cores, "CPU core", form="g"), counted(gpus, "GPU", form="g")
