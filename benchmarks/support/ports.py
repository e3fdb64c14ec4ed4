"""Ports of the loopback for servers that must be told theirs."""

from __future__ import annotations

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now."""
    with contextlib.ExitStack() as stack:
        listening = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [int(each.getsockname()[1]) for each in listening]


def free_port() -> int:
    """As `free_ports`, one."""
    return free_ports(1)[0]
