"""The nodes of a Ray cluster that this process has joined, and what fits on them."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

from study.cell.version import source_digest
from study.errors import RequestError
from study.storage.urls import expanded
from study.terminal import counted
from study.terminal.working import working

ANSWER_SECONDS = 180.0
"""How long a node may take to answer: a fresh worker imports PyTorch."""

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


def slots_on(gpus: int, each: float) -> int:
    """How many trials fit on GPUs at a time; a fraction of one is never spread over two.

    Args:
        gpus: that there are.
        each: what a trial takes, > 0.
    """
    return gpus * int(1 / each + 1e-9) if each <= 1 else int(gpus // each)


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
        on_cores = int(self.cpus // threads)
        return min(on_cores, slots_on(int(self.gpus), gpus)) if gpus else on_cores


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        ray: the module, connected to it.
        address: as the user gave it.
    """

    ray: Any
    address: str

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are there and may train."""
        each = (
            _node(
                f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})",
                node["Resources"],
                node["NodeID"],
            )
            for node in self.ray.nodes()
            if node["Alive"]
        )
        return [node for node in each if node.cpus]

    @property
    def to_come(self) -> list[Node]:
        """The largest set of nodes that the autoscaler may run; known only on the head."""
        import yaml

        file = expanded(_GROWTH_FILE)
        if not file.exists():
            return []  # this is no head that `ray up` started
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
        workers = config["max_workers"]
        each = [
            _node(name, kind.get("resources") or {})
            for name, kind in config["available_node_types"].items()
            if name != config["head_node_type"]
            for _ in range(min(kind.get("max_workers", 0), workers))
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
            kinds = {f"{each.name}: {_room(each.cpus, each.gpus)}" for each in (*there, *to_come)}
            has = "; ".join(sorted(kinds)) or "none may train"
            raise RequestError(
                f"a trial takes {_room(threads, gpus)}, which no node of the cluster at "
                f"{self.address} has ({has}). Change --threads or --gpus-per-trial."
            )
        return most

    def call(self, function: Callable[..., T], *args: Any, threads: int, gpus: float) -> T:
        """Calls a function that times cells on a node with room for a trial; waits for one.

        Args:
            function: defined in a module of the project.

        Raises:
            RequestError: the function raised it, or no node can run the function.
        """
        task = self.ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=3)(function)
        try:
            with working(
                f"waiting for a node with {_room(threads, gpus)}, and timing cells on it"
            ):
                return self.ray.get(task.remote(*args))
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, RequestError):
                raise error.cause from error
            raise
        except self.ray.exceptions.RayError as error:
            raise RequestError(
                f"cells cannot be timed on the cluster at {self.address} ({_first_line(error)}). "
                "See `ray status`, and run the command again."
            ) from error

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
        deadline = time.monotonic() + ANSWER_SECONDS

        def ask(node: Node) -> tuple[Any, Any]:
            """The actor, which lives as long as it is held, and its answer."""
            strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
            actor = probe.options(scheduling_strategy=strategy).remote()
            return actor, actor.refusal.remote(node.name, source_digest(), results, origin)

        def refusal(asked: tuple[Any, Any]) -> str:
            return self.ray.get(asked[1], timeout=max(0.0, deadline - time.monotonic()))

        for node, asked in [(node, ask(node)) for node in self.nodes]:
            try:
                try:
                    why_not = refusal(asked)
                except self.ray.exceptions.ActorDiedError:
                    # Ray cancels actors now and then that it starts while its node begins.
                    why_not = refusal(ask(node))
            except self.ray.exceptions.GetTimeoutError:
                why_not = (
                    f"node {node.name} did not answer within {ANSWER_SECONDS:g} s. See `ray "
                    "status` and its logs; or take it out of the cluster."
                )
            except self.ray.exceptions.RayError as error:
                if node not in self.nodes:
                    continue  # just lost: its trials would be tried again elsewhere
                # Also raised if this command uses a token and the cluster does not.
                why_not = (
                    f"node {node.name} starts no worker for this command "
                    f"({_first_line(error)}). Set RAY_AUTH_MODE to what it was where `ray start` "
                    "ran (token, or disabled); or see the logs of Ray there."
                )
            if why_not:
                raise RequestError(why_not)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _probe() -> type:
    """An actor class that is pickled by value, so that a node without the project can run it."""

    class Probe:
        def refusal(self, node: str, source: str, results: str | None, origin: str) -> str:
            import sys

            try:
                from study.cell.version import require_source
                from study.errors import RequestError
                from study.results import Results
            except ImportError as error:
                return (
                    f"node {node} cannot import this project ({error}; its Python is "
                    f"{sys.executable}). Install it there at the same path, with `uv sync "
                    "--no-dev --extra cluster`, and start Ray from its environment."
                )
            try:
                require_source(source, node)
                if results is not None:
                    Results(results).require_origin(origin, node)
            except RequestError as error:
                return str(error)
            return ""

    return Probe


def _node(name: str, resources: Mapping[str, float], id: str = "") -> Node:
    return Node(name, resources.get("CPU", 0), resources.get("GPU", 0), id)


def _room(cores: float, gpus: float) -> str:
    return f"{counted(cores, 'CPU core', form='g')} and {counted(gpus, 'GPU', form='g')}"
