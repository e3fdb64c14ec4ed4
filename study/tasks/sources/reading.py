"""The one gate for files that others wrote: what a reader raises of a bad one is one line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from study.errors import RequestError
from study.storage.stand_ins import refuse_stand_in


@contextlib.contextmanager
def reading(what: object, mend: str = "Copy it again.") -> Iterator[None]:
    """Reads a file in its body, whatever may be in it.

    Args:
        what: the file, whose path shows what cannot be one, or a place in it.
        mend: what to do about a bad one.

    Raises:
        RequestError: the body raised something, whose reason it tells.
    """
    try:
        if isinstance(what, Path):
            refuse_stand_in(what)
        yield
    except (RequestError, MemoryError):
        raise
    except Exception as error:  # of a damaged file a library can raise anything
        raise RequestError(f"{what} cannot be read ({why(error)}). {mend}") from error


def why(error: BaseException) -> str:
    """The reason of an exception, on one line."""
    reason: object = error
    if isinstance(error, KeyError):
        key = str(error.args[0] if error.args else "")
        reason = key if " " in key else f"it has no {key!r}"  # libraries give sentences
    elif isinstance(error, UnicodeDecodeError):
        looks = "UTF-16" if b"\0" in error.object else "Windows-1252 or the like"
        reason = f"it is not UTF-8 but looks like {looks}: save it as UTF-8"
    elif isinstance(error, OSError):
        reason = getattr(error, "reason", None) or error.strerror or error
        reason = getattr(reason, "strerror", None) or reason
    text = re.sub(r" <\S* object at \w+>", "", str(reason))  # an address tells nothing
    return " ".join(text.split()).rstrip(".") or type(error).__name__
