"""The console script: `attention-study run digits` is `python -m study.run digits`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from study.cell.version import code_version
from study.door import imported
from study.errors import unknown
from study.terminal.command import COMMANDS, DONE, guarded, run_as_command


def main() -> None:
    """Runs the command that is named first, and ends the process with its exit status."""
    name, *argv = sys.argv[1:] or ["--help"]
    run_as_command(lambda: guarded("attention-study", lambda: _run(name, argv), "stopped"))


def _run(name: str, argv: Sequence[str]) -> int:
    if name == "--version":
        print(code_version())
        return DONE
    if name not in COMMANDS.core:
        from study.parts import load  # which takes longer than most commands

        load(())  # a package may bring it
    if name in ("--help", "-h"):
        print("usage: attention-study COMMAND ..., where COMMAND --help tells more\n")
        for each, (_, about) in COMMANDS.items():
            print(f"  {each:<8} {about}")
        return DONE
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    return imported(f"{COMMANDS[name][0]}:main")(argv)
