"""The console script: `attention-study run digits` is `python -m study.run digits`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from study.cell.version import code_version
from study.door import Registry
from study.errors import unknown
from study.terminal.command import DONE, guarded, run_as_command

COMMANDS: Registry[tuple[str, str]] = Registry(
    {
        "run": ("study.run", "runs a study"),
        "check": ("study.check", "checks parts of your own against what the project promises"),
        "compact": ("study.compact", "joins the files of a results directory"),
        "track": ("study.track", "logs recorded cells to MLflow"),
        "report": ("analysis.report", "compares recorded cells at equal compute"),
    }
)
"""Name -> module that `python -m` runs, and what it does; chapters register more."""


def main() -> None:
    """Runs the command that is named first, and ends the process with its exit status."""
    name, *argv = sys.argv[1:] or ["--help"]
    run_as_command(lambda: guarded("attention-study", lambda: _run(name, argv), "stopped"))


def _run(name: str, argv: Sequence[str]) -> int:
    if name in ("--help", "-h"):
        print("usage: attention-study COMMAND ..., where COMMAND --help tells more\n")
        for each, (_, about) in COMMANDS.items():
            print(f"  {each:<8} {about}")
        return DONE
    if name == "--version":
        print(code_version())
        return DONE
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    return importlib.import_module(COMMANDS[name][0]).main(argv)
