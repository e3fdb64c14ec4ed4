"""A PostgreSQL of Debian's package on loopback, for tests, which lives as long as they do."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.support.processes import free_ports

PASSWORD = "very-secret"


def programs() -> Path | None:
    """The folder of its newest version's programs; None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class PostgreSQL:
    """A server of its own on a port of loopback; it asks user `study` for `PASSWORD`.

    Args:
        programs: its folder of programs.
        folder: of its own, which the server's user can enter; a server does not run as root.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        (self.port,) = free_ports(1)
        self._as_other: dict[str, Any] = {}
        if os.getuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            self._as_other = {"user": "postgres", "group": "postgres", "extra_groups": []}
        secret = folder / "secret"
        secret.write_text(PASSWORD)
        self._run(
            "initdb", "--username=study", f"--pwfile={secret}", "--auth=scram-sha-256", "--no-sync"
        )

    def url(self, database: str, password: str = PASSWORD) -> str:
        return f"postgresql://study:{password}@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        """Makes a database; returns its URL."""
        import psycopg
        from psycopg.sql import SQL, Identifier

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(SQL("CREATE DATABASE {}").format(Identifier(database)))
        return self.url(database)

    def start(self) -> None:
        # Nothing that a test writes is read after a loss of power.
        options = (
            f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off "
            "-c synchronous_commit=off -c full_page_writes=off"
        )
        self._run("pg_ctl", "start", "-w", "-o", options, "-l", str(self._folder / "log"))

    def stop(self) -> None:
        """Breaks off all connections."""
        self._run("pg_ctl", "stop", "-w", "-m", "fast")

    def _run(self, program: str, *words: str) -> None:
        data = str(self._folder / "data")
        done = subprocess.run(
            [str(self._programs / program), "-D", data, *words],
            cwd=self._folder,
            **self._as_other,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def running(programs: Path) -> Iterator[PostgreSQL]:
    # Not in a folder of pytest, which other users cannot enter.
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:
        server = PostgreSQL(programs, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
