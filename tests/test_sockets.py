"""On one machine nothing listens to others: every socket that a study opens is on the loopback."""

from __future__ import annotations

import ipaddress
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import processes
from tests.small_study import start, wait_for

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

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


def test_sockets_are_seen() -> None:
    """What the tests below stand on."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as all_:
        found = listening(os.getpid())
        heard = others_hear(found)
        assert f"127.0.0.1:{one.getsockname()[1]}" in found.keys() - heard.keys()
        assert f"0.0.0.0:{all_.getsockname()[1]}" in heard
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as six:
        found = listening(os.getpid())
        assert f"::1:{six.getsockname()[1]}" in found.keys() - others_hear(found).keys()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def running(results: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    process = start(results, environment={**own, "HOME": str(tmp_path)})
    yield process
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)


def test_a_study_listens_on_the_loopback_only_and_asks_for_a_token(
    running: subprocess.Popen[str], results: Path, tmp_path: Path
) -> None:
    wait_for("checkpoints/*.ckpt", results, running)
    found = listening(running.pid)
    below = processes.below(running.pid)
    programs = " ".join(found.values())
    assert "gcs_server" in programs
    assert "raylet" in programs
    assert others_hear(found) == {}
    servers = [pid for pid, command in below.items() if "gcs_server" in command]
    for server in servers:  # it asks for a token, which lies in no file: Ray's others could read
        assert "RAY_AUTH_MODE=token" in Path(f"/proc/{server}/environ").read_text()
    assert servers
    assert not list(tmp_path.rglob("auth_token"))


def test_the_mlflow_ui_listens_on_the_loopback_only(tmp_path: Path, empty_database: Path) -> None:
    """As the README starts it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "ui", "--port", str(port), "--backend-store-uri",
         f"sqlite:///{empty_database}"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while f"127.0.0.1:{port}" not in (found := listening(process.pid)):
            assert process.poll() is None
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        assert others_hear(found) == {}
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
