"""Which sockets of a process, and of those below it, listen, and who can hear of them."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from pathlib import Path

from benchmarks.support import processes

LISTENS = "0A"


def listening(pid: int) -> dict[str, str]:
    """Address:port -> command line, of TCP sockets of a process and those below that listen."""
    found = {}
    for each, command in {pid: "itself", **processes.below(pid)}.items():
        sockets = set()
        for link in Path(f"/proc/{each}/fd").glob("*"):
            try:
                sockets |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(link)))
            except OSError:  # it was closed
                continue
        for table in ("tcp", "tcp6"):
            for line in _lines(Path(f"/proc/{each}/net/{table}")):
                _, local, _, state, *rest = line.split()
                if state == LISTENS and rest[5] in sockets:
                    found[_address(local)] = command
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()[1:]
    except OSError:  # the process ended
        return []


def _address(hexadecimal: str) -> str:
    """127.0.0.1:80 of 0100007F:0050, as Linux writes it: words of the machine's byte order."""
    host, port = hexadecimal.split(":")
    raw = bytes.fromhex(host)
    words = [raw[i : i + 4] for i in range(0, len(raw), 4)]
    packed = b"".join(word[:: 1 if sys.byteorder == "big" else -1] for word in words)
    return f"{ipaddress.ip_address(packed)}:{int(port, 16)}"


def others_hear(found: dict[str, str]) -> dict[str, str]:
    """Those that are not on the loopback."""
    hosts = {address: address.rpartition(":")[0] for address in found}
    return {a: found[a] for a, host in hosts.items() if not _is_loopback(host)}


def _is_loopback(host: str) -> bool:
    address = ipaddress.ip_address(host)
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
