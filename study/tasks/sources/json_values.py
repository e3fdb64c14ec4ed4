"""Checks values of JSON or Parquet files; messages show numbers, else the kind of a value."""

from __future__ import annotations

from typing import Any

from study.errors import RequestError

_SHOWN = 20  # digits of a number
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
        wanted, got = _KINDS[kind], kind_of(value)
        if kind is int:
            wanted, got = "a whole number", shown(value)
        raise RequestError(f"{what} must be {wanted}, got {got}.")


def whole(value: Any) -> Any:
    """A value, but a float that is a whole number as that."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def shown(value: Any) -> str:
    """A number itself, where others are right; the kind of any other value."""
    return repr(value)[:_SHOWN] if type(value) in (int, float) else kind_of(value)


def kind_of(value: Any) -> str:
    """The kind of a value, such as "a list"; of one that JSON has not, the name of its type."""
    return _KINDS.get(type(value), type(value).__name__)
