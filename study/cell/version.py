"""The version of the code, which is recorded beside each cell."""

from __future__ import annotations

import functools
import hashlib
import socket
import subprocess
from pathlib import Path

from study import __version__
from study.door import chapters, packages
from study.errors import RequestError


def code_version() -> str:
    """The package's version with the commit, ``1.0.0+1a2b3c4-dirty``.

    Without git, as in a copy on a cluster, the digest of the source stands for the commit. So it
    does where the package is installed within a repository that is not its own.
    """
    try:
        _git("ls-files", "--error-unmatch", __file__)
        return f"{__version__}+{_git('describe', '--always', '--dirty')}"
    except (OSError, subprocess.SubprocessError):
        return f"{__version__}+source.{source_digest()[:8]}"


def _git(*arguments: str) -> str:
    """What git prints in this folder.

    Raises:
        OSError, subprocess.SubprocessError: there is no git, or it fails.
    """
    done = subprocess.run(
        ["git", *arguments],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return done.stdout.strip()


@functools.cache
def source_digest() -> str:
    """Digest of the source on the disk, of chapters, too: 16 hexadecimal digits."""
    project = Path(__file__).parents[2]
    named = [(each.name, each.value) for each in chapters()]
    digest = hashlib.sha256(str(named).encode())
    for package in sorted({"study", *packages()}):
        for path in sorted((project / package).rglob("*.py")):
            digest.update(f"{path.relative_to(project)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def require_source(source: str, node: str = "") -> None:
    """Refuses another source than the command's.

    Args:
        source: `source_digest` of the command.
        node: name of this machine for people; empty: its host name.

    Raises:
        RequestError: the source differs.
    """
    if source_digest() != source:
        raise RequestError(
            f"node {node or socket.gethostname()} has another version of this project than the "
            "command. Give both the same one (`ray up` copies it again) and restart Ray there."
        )
