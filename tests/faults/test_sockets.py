"""Sockets that listen are seen: what the tests of studies and of MLflow's pages stand on."""

from __future__ import annotations

import os
import socket

from tests.made_up.sockets import listening, others_hear


def test_sockets_are_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as all_:
        found = listening(os.getpid())
        heard = others_hear(found)
        assert f"127.0.0.1:{one.getsockname()[1]}" in found.keys() - heard.keys()
        assert f"0.0.0.0:{all_.getsockname()[1]}" in heard
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as six:
        found = listening(os.getpid())
        assert f"::1:{six.getsockname()[1]}" in found.keys() - others_hear(found).keys()
