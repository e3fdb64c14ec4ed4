"""Checks values of JSON or Parquet files; messages show their kind, never the value."""

from __future__ import annotations

from typing import Any

from study.errors import RequestError

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def expect(value: Any, kind: type, what: str) -> None:
    """Refuses a value of another type.

    Raises:
        RequestError: it calls the value `what`.
    """
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise RequestError(f"{what} must be {_KINDS[kind]}, got {kind_of(value)}.")


def kind_of(value: Any) -> str:
    """The kind of a value, such as "a list"; of one that JSON has not, the name of its type."""
    return _KINDS.get(type(value), type(value).__name__)
