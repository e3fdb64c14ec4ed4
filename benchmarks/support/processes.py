"""Processes below another one, and ports for servers that must be told theirs."""

from __future__ import annotations

import contextlib
import socket

import psutil


def below(pid: int) -> dict[int, str]:
    """Every process below one: its id -> its command line."""
    found = {}
    with contextlib.suppress(psutil.NoSuchProcess):  # it has ended
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                found[child.pid] = " ".join(child.cmdline())
    return found


def training(pid: int) -> list[int]:
    """The processes below one that train; Ray names its workers by what they run."""
    return [child for child, command in below(pid).items() if "ImplicitFunc" in command]


def is_gone(pid: int) -> bool:
    """Whether a process has ended, even if its parent has not waited for it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nothing listens on now."""
    with contextlib.ExitStack() as stack:
        listening = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [int(each.getsockname()[1]) for each in listening]
