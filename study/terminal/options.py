"""Options of commands: how they are declared once, as fields."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any

from study.cell.declared import Number, Takes, Whole


def typed(takes: Takes) -> Callable[[str], Any]:
    """How argparse reads a value."""

    def parse(text: str) -> Any:
        try:
            value = takes.parse(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {takes.noun}, got {text!r}") from None
        try:
            return takes.checked("it", value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix("it ")) from None

    return parse


positive = typed(Whole(1))
above_zero = typed(Number(0, ends="(]"))
"""A number that may be infinite."""


def names(text: str) -> tuple[str, ...]:
    """Names from the command line, with commas between them, at least one."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f"must be names separated by commas, got {text!r}")
    return found


def mlflow_uri(text: str) -> str:
    """An MLflow tracking URI, or none; MLflow itself refuses a folder only when it opens one."""
    if ":" not in text and text not in ("none", "databricks"):
        raise argparse.ArgumentTypeError(
            f"must be none or a URI, such as http://HOST:PORT or sqlite:///FILE, got {text!r}"
        )
    return text


def option(about: str, default: Any = None, *, of: str = "", **more: Any) -> Any:
    """A field of a request that is an option of its command.

    Args:
        about: its line in `--help`.
        default: of the field and the option.
        of: the use without which it means nothing, one of `study.kind.Kind.uses`; empty: none.
        more: for `ArgumentParser.add_argument`; `flag`, where it is not the name of the field;
            `flags`, of a choice: what is given -> (value, its line in `--help`).
    """
    metadata = {"option": {"help": about, **more}, "of": of}
    return dataclasses.field(default=default, metadata=metadata)


def flags_of(field: dataclasses.Field[Any]) -> list[str]:
    """The options of a field, ``--micro-batch``."""
    declared = field.metadata["option"]
    return [*declared.get("flags", [declared.get("flag", f"--{field.name.replace('_', '-')}")])]


def add_option(add_to: Any, field: dataclasses.Field[Any]) -> None:
    """Adds the option that `option` declares to a parser or a group of its options."""
    how = {name: each for name, each in field.metadata["option"].items() if name != "flag"}
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    if flags := how.pop("flags", None):
        either = add_to.add_mutually_exclusive_group()
        for flag, (value, about) in flags.items():
            either.add_argument(
                flag, dest=field.name, action="store_const", const=value, help=about,
                default=default,
            )  # fmt: skip
    else:
        add_to.add_argument(*flags_of(field), dest=field.name, default=default, **how)
