"""Sockets that listen are seen, on which test_kills.py stands; MLflow's pages have one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sockets import listening, others_hear

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


def test_sockets_are_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as all_:
        found = listening(os.getpid())
        heard = others_hear(found)
        assert f"127.0.0.1:{one.getsockname()[1]}" in found.keys() - heard.keys()
        assert f"0.0.0.0:{all_.getsockname()[1]}" in heard
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as six:
        found = listening(os.getpid())
        assert f"::1:{six.getsockname()[1]}" in found.keys() - others_hear(found).keys()


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
