"""Names as people see them: two that look alike are one."""

from __future__ import annotations

import re
import unicodedata


def as_seen(name: str) -> str:
    """A name with composed characters, one blank between words, none around it, and no BOM.

    macOS and some archives write letters and their accents apart, tables end cells with blanks.
    """
    return " ".join(unicodedata.normalize("NFC", name.replace("\ufeff", "")).split())


def class_name(name: object) -> str:
    """The plain name of a class, with / in place of + and commas, which separate names."""
    return re.sub(r"\s*[+,]\s*", "/", as_seen(str(name)))
