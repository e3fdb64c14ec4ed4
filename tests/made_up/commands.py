"""Commands as a user calls them, in this process, and refusals as one reads them."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from study.errors import RequestError
from study.terminal.command import UNUSABLE

PROJECT = Path(__file__).parents[2]
Main = Callable[[Sequence[str]], int]


class Command(NamedTuple):
    """A command with what is peculiar to it.

    Attributes:
        usual: its arguments, {} stands for a results directory.
        options: those that its help names, apart from examples.
        wrong: arguments that it refuses in a moment -> what it says of them.
        works: the path of a function that it calls while it works.
        kept: what it says after Ctrl-C.
        reads: whether it needs results.
    """

    usual: str
    options: str
    wrong: Mapping[str, str]
    works: str
    kept: str
    reads: bool = True


def called(main: Main, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """The exit status of a command, what it printed, what it said of errors."""
    capsys.readouterr()
    status = main(args)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def python(
    *words: str, folder: Path = PROJECT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What a Python of its own does, called in a folder with more in its environment."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder, env=os.environ | environment, capture_output=True, text=True,
    )  # fmt: skip


def one_line(main: Main, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    """The exit status of a command and the one line that it printed, or said of errors."""
    status, printed, errors = called(main, capsys, *args)
    text, other = (errors, printed) if status == UNUSABLE else (printed, errors)
    assert not other
    (line,) = text.splitlines()
    return status, line


def answer(main: Main, words: Sequence[str]) -> tuple[int, str]:
    """The exit status of a command, and all that it says, where there is no `capsys`."""
    with (
        io.TextIOWrapper(io.BytesIO(), "utf-8") as said,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        status = main(words)
        said.flush()
        said.seek(0)
        return status, said.read()


def refusal(call: Callable[[], object]) -> str:
    """The message of the `RequestError` that a call raises, which is one line."""
    with pytest.raises(RequestError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message
