"""Which sockets of a process, and of those below it, listen, and who can hear of them."""

from __future__ import annotations

import contextlib
import ipaddress

import psutil

from benchmarks.support import processes


def listening(pid: int) -> dict[str, str]:
    """Address:port -> command line, of TCP sockets of a process and those below that listen."""
    found = {}
    for each, command in {pid: "itself", **processes.below(pid)}.items():
        with contextlib.suppress(psutil.Error):
            for socket in psutil.Process(each).net_connections("tcp"):
                if socket.status == psutil.CONN_LISTEN:
                    found[f"{socket.laddr.ip}:{socket.laddr.port}"] = command
    return found


def others_hear(found: dict[str, str]) -> dict[str, str]:
    """Those that are not on the loopback."""
    hosts = {address: address.rpartition(":")[0] for address in found}
    return {a: found[a] for a, host in hosts.items() if not _is_loopback(host)}


def _is_loopback(host: str) -> bool:
    address = ipaddress.ip_address(host)
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
