"""Connects to Ray, on this machine or a running cluster, with the settings that it reads."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import secrets
import socket
import sysconfig
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from study.errors import RequestError
from study.launch.nodes import Cluster, ray_stderr_into
from study.launch.watching import RECORD_SECONDS
from study.terminal.command import importing, terminating

CONNECT_SECONDS = 10.0
"""How long a cluster's port may take to answer."""

_WORKER_SETTINGS = {
    # A trial without a GPU leaves CUDA_VISIBLE_DEVICES alone, Ray's default to come.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Trials run in a thread, and only glibc's first arena keeps memory for reuse.
    "MALLOC_ARENA_MAX": "1",
    # How long a trial that a scheduler stopped may record its cells before the next one starts.
    "TUNE_FUNCTION_THREAD_TIMEOUT_S": str(RECORD_SECONDS),
    # More queues into a GPU than its default of 8, for the members of a pack.
    "CUDA_DEVICE_MAX_CONNECTIONS": "32",
}
"""Read by workers when they start."""

SETTINGS = {
    # Under `uv run` Ray would copy the project and build an environment for each worker.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # No telemetry.
    "RAY_USAGE_STATS_ENABLED": "0",
    # Parquet and MLflow hold the results; Tune's own loggers and prints would double them.
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    # Tune would rewrite the state of all trials again and again; nobody reads it.
    "TUNE_GLOBAL_CHECKPOINT_S": "inf",
    # Ctrl-C reaches the command, which says how to go on.
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
}
"""Read by Ray when it is first imported. What the environment already sets has precedence."""

_ONE_MACHINE = {
    # Listen on the loopback interface only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Its server would keep the last 100,000 task events for a dashboard: 80 MB a 1,000 cells.
    "RAY_task_events_report_interval_ms": "0",
}
"""Read by a Ray that a command starts for itself."""

LONGEST_FOLDER = 39
"""Bytes of a path in which Ray finds room for its sockets: their paths end at 107 bytes, and up to
68 are `/ray/session_<date>_<time>_<process>/sockets/plasma_store`."""

_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}

_JOB_VARIABLE = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""`ray job submit` sets it for the job that it starts."""


def default_address() -> str | None:
    """`auto` if a cluster runs this process as a job, else None."""
    return "auto" if _JOB_VARIABLE in os.environ else None


def require_lasting(folder: str) -> None:
    """Refuses a folder that Ray deletes after the job.

    Args:
        folder: absolute path.

    Raises:
        RequestError: it lies in the copy of the project that Ray makes for a job with
            `--working-dir`, or for one submitted by `uv run`.
    """
    if {"runtime_resources", "working_dir_files"} <= set(Path(folder).parts):
        raise RequestError(
            f"results or databases would be kept in {folder}, a copy of the project that Ray "
            "deletes after the job. Submit it without --working-dir and outside `uv run`, or give "
            "--results an absolute path."
        )


class NoRay(RequestError):
    """Ray does not come up on this machine."""


@contextlib.contextmanager
def ray_session(
    cores: int, note: Callable[[str], object] = print, gpus: int | None = None
) -> Iterator[Any]:
    """Gives the `ray` module, connected to this process's Ray.

    Starts a Ray if the process has none, and stops that one at the end.

    Args:
        cores: CPU cores of a new Ray.
        note: told of a second try.
        gpus: of a new Ray; None: as many as it finds.

    Raises:
        NoRay: it did not start, twice.
    """
    # A token of its own: others could read the one that Ray keeps in the home directory.
    token = {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
    ray = _import_ray({**SETTINGS, **_WORKER_SETTINGS, **_ONE_MACHINE, **token})
    if ray.is_initialized():
        yield ray
        return
    folder = _folder_for_ray()
    try:
        _start(ray, cores, gpus, folder)
    except NoRay as first:
        note(f"{first}; it is started once more")
        _start(ray, cores, gpus, folder)
    try:
        with terminating():  # after the start, at which Ray takes the signal for itself
            yield ray
    finally:
        _leave(ray)


def _start(ray: Any, cores: int, gpus: int | None, folder: str) -> None:
    """Starts a Ray, or none of its processes.

    Raises:
        NoRay: a process of it was not ready in time: on a busy machine 30 s, Ray's limit, are
            not enough.
    """
    options: Any = {"include_dashboard": False, "_temp_dir": folder, **_QUIET}
    try:
        # "local", or RAY_ADDRESS could turn this into a cluster.
        ray.init(address="local", num_cpus=cores, num_gpus=gpus, job_config=_imports(), **options)
    except Exception as error:  # as Ray raises it
        for frame, _ in traceback.walk_tb(error.__traceback__):
            node = frame.f_locals.get("self")
            if isinstance(node, ray._private.node.Node):  # Ray keeps none that failed
                node.kill_all_processes(check_alive=False)
        ray.shutdown()
        reason = str(error).strip().partition(". ")[0].rstrip(".")
        raise NoRay(
            f"Ray did not start ({reason}; its logs are in {folder}/session_latest/logs)"
        ) from None


@contextlib.contextmanager
def join(address: str) -> Iterator[Cluster]:
    """Joins a running cluster and leaves it running.

    Args:
        address: HOST:PORT, or `auto` for the cluster of this machine.

    Raises:
        RequestError: no cluster answers, or its version or token differs.
    """
    ray = _import_ray(SETTINGS)
    with tempfile.TemporaryFile() as said:
        try:
            _require_listener(address)
            with ray_stderr_into(said):
                env = {"env_vars": _WORKER_SETTINGS}
                ray.init(address=address, runtime_env=env, job_config=_imports(), **_QUIET)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            said.seek(0)
            text = " ".join(str(error).split())
            raise RequestError(_why_not(address, text, said.read().decode())) from error
    try:
        with terminating():
            yield Cluster(ray, address)
    finally:
        _leave(ray)


class _Folders(list[str]):
    """Folders to import from, without those that Ray 2.60 would put before them."""

    def extend(self, folders: object) -> None:
        """Leaves out the folder where the command was typed, whose files may have our names."""


def _imports() -> Any:
    """The part of a job that lets workers import what this process imports."""
    from ray.job_config import JobConfig

    project = str(Path(__file__).parents[2])
    job = JobConfig()
    is_installed = project == sysconfig.get_path("purelib")
    job._py_driver_sys_path = _Folders([] if is_installed else [project])
    return job


def _leave(ray: Any) -> None:
    """Disconnects, and stops a Ray of this process's own.

    Python collects no garbage meanwhile: Ray ends the process, without a word, when another
    thread frees a reference to one of its objects after its core has gone.
    """
    gc.disable()
    try:
        ray.shutdown()
    finally:
        gc.enable()


def _folder_for_ray() -> str:
    """Where Ray can keep its sockets and logs; batch systems give a TMPDIR too long for sockets.

    Raises:
        RequestError: there is no such folder.
    """
    default = None
    with contextlib.suppress(FileNotFoundError):  # no folder can be written
        default = tempfile.gettempdir()
    named = [os.environ.get(name) for name in ("RAY_TMPDIR", "XDG_RUNTIME_DIR")]
    for folder in (named[0], default, "/tmp", named[1]):
        if folder and len(os.fsencode(folder)) <= LONGEST_FOLDER:
            path = os.path.join(folder, "ray")
            if os.access(path if os.path.exists(path) else folder, os.W_OK | os.X_OK):
                return path
    raise RequestError(
        f"Ray finds no folder for its sockets (TMPDIR={os.environ.get('TMPDIR', '')}, /tmp). Set "
        f"RAY_TMPDIR to a writable one whose path has at most {LONGEST_FOLDER} bytes."
    )


def _import_ray(settings: Mapping[str, str]) -> Any:
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    with importing():
        import ray

    return ray


def _why_not(address: str, error: str, said: str) -> str:
    if "Version mismatch" in error:
        return (
            f"the cluster at --address {address} and this command differ in Ray or Python "
            f"({error}). Give both the same: `uv sync` with the same pyproject.toml and Python."
        )
    if "Unauthenticated" in said or re.search("authenticat|token", error, re.IGNORECASE):
        return (
            f"the cluster at --address {address} refused this command's token. Copy "
            "~/.ray/auth_token of the cluster's head here, readable by you alone, and set "
            "RAY_AUTH_MODE=token."
        )
    return (
        f"no Ray cluster at --address {address} ({error}). Run the command on one of its nodes "
        "or as a job, start a cluster with `ray start --head`, or leave --address out to run on "
        "this machine."
    )


def _require_listener(address: str) -> None:
    """Raises OSError at once if nothing listens; Ray itself would wait for minutes."""
    if address == "auto":
        from ray._private.services import canonicalize_bootstrap_address

        address = canonicalize_bootstrap_address(address)
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()) or "://" in address:
        raise ValueError("an address is HOST:PORT or auto")
    socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
