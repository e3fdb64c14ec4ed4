"""Which code runs: recorded beside each cell."""

from __future__ import annotations

import subprocess
from pathlib import Path

from study import __version__


def code_version() -> str:
    """The package's version and, in a git checkout, the commit: ``0.1.0+1a2b3c4-dirty``."""
    try:
        git = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return __version__
    return f"{__version__}+{git.stdout.strip()}"
