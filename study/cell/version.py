"""The version of the code, which is recorded beside each cell."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from pathlib import Path

from study import __version__


def code_version() -> str:
    """The package's version with the commit, ``0.1.0+1a2b3c4-dirty``.

    Without git, as in a copy on a cluster, the digest of the source stands for the commit.
    """
    try:
        git = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return f"{__version__}+source.{source_digest()[:8]}"
    return f"{__version__}+{git.stdout.strip()}"


@functools.cache
def source_digest() -> str:
    """Digest of this package's source on the disk: 16 hexadecimal digits."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
