"""Templates print frames: what stands in the folder `templates`, as HTML, Markdown or plain text.

A name that a template reads and was not given is an error, so that no fact is silently nothing.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import jinja2
import pandas as pd

from analysis import forms, settings
from analysis.digest import limits
from analysis.digest.pairs import POWER, SCREENING
from analysis.groups import AXES
from analysis.rules.overstated import optimism
from analysis.rules.stages import given, interim
from analysis.rules.statistics import LEVEL, MIN_SEEDS
from analysis.section.blocks import Block, Details, Shown, Table
from study import tasks, terminal
from study.evaluate.looks import STYLE

_FOLDER = Path(__file__).with_name("templates")
_FOLDERS = [_FOLDER, *(_FOLDER / name for name in ("forms", "sentences", "tables"))]
"""No two templates have one name, so that a name is enough to find one."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_SPACE = re.compile(r"\s+")
_BAR, _STAND_IN = "\N{BROKEN BAR}", "\ue000"
_MARKED_UP = re.compile(r"([\\`*_\[\]<>|#~$])")


def page(form: Literal["html", "markdown"], **facts: Any) -> str:
    """The report, in the words of a form.

    Args:
        form: name of the template that has them.
        facts: what `page.j2` and the templates of its chapters read.
    """
    template = _environment(form == "html").get_template("page.j2")
    text = template.render(facts, form=f"{form}.j2", parts=[], looks_style=STYLE)
    return _PARAGRAPH.sub("\n\n", text).lstrip()


def printed(template: str, **facts: Any) -> str:
    """What a template says; what is text is escaped where its name ends with ``.html.j2``."""
    environment = _environment(template.endswith(".html.j2"))
    return _PARAGRAPH.sub("\n\n", environment.get_template(template).render(facts)).strip()


def paragraphs(template: str, **facts: Any) -> list[str]:
    """The paragraphs of a template of plain text, which blank lines part, each as one line.

    Args:
        template: its name, as ``limits.j2``; nothing in it is escaped.
        facts: what it reads.
    """
    texts = _PARAGRAPH.split(printed(template, **facts))
    return [" ".join(each.split()) for each in texts if each]


def table(template: str, **facts: Any) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table for people.

    Args:
        template: a paragraph per row, the header first; a broken bar parts cells. No value can
            part anything.
        facts: what it reads.
    """
    text = _of_tables().get_template(template).render(facts)
    rows = [each.split(_BAR) for each in _PARAGRAPH.split(text) if each.strip()]
    header, *others = ([_cell(each) for each in row] for row in rows)
    return header, others


def _cell(text: str) -> str:
    return " ".join(text.split()).replace(_STAND_IN, _BAR)


def markdown(text: str) -> str:
    """Plain text that Markdown shows as it is, on one line."""
    return _MARKED_UP.sub(r"\\\1", " ".join(text.split())).replace("&", "&amp;")


def markdown_table(table: Table) -> str:
    """A table in Markdown; one without a header gets an empty header, which Markdown requires."""
    header = table.header or [""] * len(table.rows[0])
    cells = pd.DataFrame(table.rows, columns=[*map(markdown, header)], dtype=str).map(markdown)
    sides = ["left" if i in table.left else "right" for i in range(len(header))]
    return cells.to_markdown(index=False, disable_numparse=True, colalign=sides)


def _runs(blocks: Iterable[Block]) -> Iterator[tuple[bool, list[Block]]]:
    """Blocks that follow each other and are all pictures, or none of them."""
    for shown, group in itertools.groupby(blocks, lambda block: isinstance(block, Shown)):
        yield shown, [*group]


@functools.cache
def _environment(escapes: bool) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDERS),
        undefined=jinja2.StrictUndefined,
        autoescape=escapes,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    made.filters |= {
        "aligned": lambda table: "\n".join(forms.aligned(table.header, table.rows)),
        "amount": forms.amount,
        "as_markdown": markdown_table,
        "begins": lambda shown, start: [each for each in shown if each.name.startswith(start)],
        "capital": forms.capital,
        "folded": lambda blocks: [each for each in blocks if isinstance(each, Details)],
        "interval": forms.interval,
        "interval_of_pair": forms.interval_of_pair,
        "known": forms.known,
        "level": forms.level,
        "listed": forms.listed,
        "made_equal": forms.made_equal,
        "md": markdown,
        "network": settings.network_text,
        "number": forms.number,
        "percent": forms.percent,
        "points": forms.points,
        "runs": _runs,
        "sentence": terminal.sentence,
        "setting_text": settings.setting_text,
        "share_of_budget": forms.share_of_budget,
        "sort_of": lambda block: type(block).__name__,
        "span": forms.span,
        "three_decimals": forms.three_decimals,
        "unfolded": lambda blocks: [each for each in blocks if not isinstance(each, Details)],
    }
    made.globals |= {
        "counted": terminal.counted,
        "limits": limits,
        "given": given,
        "interim": interim,
        "modality": tasks.modality,
        "optimism": optimism,
        "AXES": AXES,
        "INFINITY": math.inf,
        "LEVEL": LEVEL,
        "MANY": forms.MANY,
        "MIN_SEEDS": MIN_SEEDS,
        "POWER": POWER,
        "SCREENING": SCREENING,
    }
    return made


def _in_a_cell(value: Any) -> str:
    """On one line, with a stand-in for what parts cells."""
    return _SPACE.sub(" ", str(value)).replace(_BAR, _STAND_IN)


@functools.cache
def _of_tables() -> jinja2.Environment:
    return _environment(False).overlay(finalize=_in_a_cell)
