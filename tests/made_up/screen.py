"""A pseudo-terminal for a command, and the screen that its output leaves."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios

from tests.conftest import PROJECT

_PIECES = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


def in_a_terminal(code: str, columns: int) -> str:
    """All that Python code writes on a terminal; it has to end well."""
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (50, columns))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        cwd=PROJECT, stdin=its, stdout=its, stderr=its, env={**environment, "TERM": "xterm"},
    ) as process:  # fmt: skip
        os.close(its)
        written = b""
        try:
            while more := os.read(ours, 2**16):
                written += more
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    text = written.decode()
    assert process.returncode == 0, text
    return text


def screen(written: str, columns: int) -> list[str]:
    """The lines that are left at the end, without blanks at their ends.

    Only what moves or erases is followed. A line wider than the terminal fails.
    """
    lines, row, column = [""], 0, 0
    for private, number, letter, newline, text in _PIECES.findall(written):
        if newline == "\r":
            column = 0
        elif newline == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif letter == "A":
            row -= int(number or 1)
        elif letter == "K":
            lines[row] = ""
        elif text:
            lines[row] = (
                lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            )
            column += len(text)
            assert column <= columns, lines[row]
        else:
            assert private or letter == "m", (number, letter)
    return [line.rstrip() for line in lines]


def words(written: str) -> str:
    """Without what only moves the cursor, colours or breaks lines."""
    return " ".join(re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", written).split())
