"""Commands as a user calls them, in this process, and refusals as one reads them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence

import pytest

from study.errors import RequestError
from study.terminal.command import UNUSABLE

Main = Callable[[Sequence[str]], int]


def called(main: Main, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """The exit status of a command, what it printed, what it said of errors."""
    capsys.readouterr()
    status = main(args)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


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
