"""The classes of the foreground and of the background, as options name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from study.errors import RequestError, as_seen, unknown

REST = "rest"
"""Value of `background`: all classes but those of the foreground."""

_JOIN = "+"


def class_name(name: object) -> str:
    """The plain name of a class, with / in place of + and commas, which separate names."""
    return re.sub(r"\s*[+,]\s*", "/", as_seen(str(name)))


def class_names(called: Iterable[object], source: object) -> tuple[str, ...]:
    """The plain names of classes, each once, in their order.

    Args:
        called: their names as the data spell them.
        source: of the data, for messages.

    Raises:
        RequestError: two classes get one name.
    """
    spelt: dict[str, str] = {}
    for name in map(str, called):
        first = spelt.setdefault(class_name(name), as_seen(name))
        if first != as_seen(name):
            raise RequestError(
                f"{source}: the classes {first!r} and {as_seen(name)!r} would both be called "
                f"{class_name(name)!r}, since + and comma separate names. Rename one of them."
            )
    return tuple(spelt)


def foreground_names(foreground: str, background: str) -> tuple[str, ...]:
    """The names of the foreground classes; label k is the k-th of them.

    Args:
        foreground: class names joined by +.
        background: the same, or `REST`.

    Raises:
        RequestError: fewer than two, a name twice, or an empty name.
    """
    names = _names("foreground", foreground)
    if len(names) < 2:
        raise RequestError(
            f"foreground must name two classes or more, got {foreground!r}. Join their names by "
            f"+: --set foreground={foreground}+OTHER."
        )
    others = () if background == REST else _names("background", background)
    for name in names:
        if name in others:
            raise RequestError(
                f"the class {name!r} is in foreground={foreground} and in "
                f"background={background}. Leave it out of one, with --set."
            )
    return names


def background_names(
    foreground: tuple[str, ...], background: str, known: Sequence[str], source: object
) -> tuple[str, ...]:
    """The names of the background classes.

    Args:
        foreground: names of the foreground classes.
        background: class names joined by +, or `REST`.
        known: all classes of the data.
        source: of the data, for messages.

    Raises:
        RequestError: an unknown class, or no background.
    """
    others = () if background == REST else _names("background", background)
    for option, names in (("foreground", foreground), ("background", others)):
        for name in names:
            if name not in known:
                raise RequestError(
                    f"{unknown('class', name, known)} Choose classes of {source} with --set "
                    f"{option}=A+B."
                )
    names = others or tuple(name for name in known if name not in foreground)
    if not names:
        raise RequestError(
            f"all {len(known)} classes of {source} are in the foreground, so none is left for the "
            "background. Mosaics need three classes or more: choose with --set foreground=A+B."
        )
    return names


def joined(names: Sequence[str]) -> str:
    """Class names as an option names them."""
    return _JOIN.join(names)


def _names(option: str, text: str) -> tuple[str, ...]:
    names = tuple(as_seen(name) for name in text.split(_JOIN))
    if "" in names or len(set(names)) < len(names):
        fault = "an empty name" if "" in names else "a class twice"
        raise RequestError(
            f"{option}={text} has {fault}. Name each class once, joined by +, with --set."
        )
    return names
