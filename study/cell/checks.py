"""Checks of values, with error messages that state the rule."""

from __future__ import annotations


def require(condition: bool, name: str, got: object, rule: str) -> None:
    """Raises a ValueError that states the rule and the value received."""
    if not condition:
        raise ValueError(f"{name} must be {rule}, got {got!r}")


def is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
