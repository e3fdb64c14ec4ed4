"""Errors for the person who typed the command."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RequestError(Exception):
    """A request that cannot be carried out. Its message says what was wrong and what to do.

    The command line prints the message on one line and exits with status 2.
    """


class ResultsError(RequestError):
    """A results directory cannot be read or written; the message says which file and why."""


def unknown(kind: str, got: object, valid: Iterable[object]) -> RequestError:
    """A `RequestError` for a name that is not one of `valid`, with the nearest valid one."""
    names = [str(name) for name in valid]
    near = difflib.get_close_matches(str(got), names, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return RequestError(f"unknown {kind} {str(got)!r}.{hint} Valid: {', '.join(names)}.")
