"""Templates print frames: what stands in the folder `templates`, as HTML, Markdown or plain text.

A name that a template reads and was not given is an error, so that no fact is silently nothing.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2

from analysis import words
from study.terminal import counted

_FOLDER = Path(__file__).with_name("templates")
_PARAGRAPH = re.compile(r"\n\s*\n")

ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER),
    undefined=jinja2.StrictUndefined,
    autoescape=jinja2.select_autoescape(["html.j2"]),
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {
    "capital": words.capital,
    "known": words.known,
    "level": words.level,
    "listed": words.listed,
    "number": words.number,
    "percent": words.percent,
    "points": words.points,
    "span": words.span,
}
ENVIRONMENT.globals |= {"counted": counted}


def paragraphs(template: str, **facts: Any) -> list[str]:
    """The paragraphs of a template of plain text, which blank lines part, each as one line.

    Args:
        template: its name, as ``limits.j2``; nothing in it is escaped.
        facts: what it reads.
    """
    text = ENVIRONMENT.get_template(template).render(facts)
    return [" ".join(each.split()) for each in _PARAGRAPH.split(text) if each.strip()]
