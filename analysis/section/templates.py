"""Templates print frames, as HTML, Markdown or plain text.

Those of `analysis` stand in its folder `templates` and are found by name alone. One of a package,
as a chapter, has a place: ``chapters.dynamics.section:focus.j2`` is the file in that package.

A page is said in the words of a form, HTML or Markdown, which `page.j2` imports as `out`: its
macros `heading`, `text`, `points`, `code`, `table`, `pictures` and `details`. Beside them the
templates of chapters and sections read `results`, the directory, and `published`, whether numbers
of others are asked for; `parts.j2`, imported ``with context``, has what sections share; `table`
fills a template of rows.

A name that a template reads and was not given is an error, so that no fact is silently nothing.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2
import pandas as pd

from analysis import forms, settings
from analysis.digest import classes, limits
from analysis.digest.pairs import POWER, SCREENING
from analysis.groups import AXES, paradigm_order
from analysis.rules.claim import RULES, tallied
from analysis.rules.overstated import optimism
from analysis.rules.stages import given, interim
from analysis.rules.statistics import LEVEL, MIN_SEEDS
from study import tasks, terminal
from study.tracking.looks import STYLE

_FOLDER = Path(__file__).parents[1] / "templates"
_FOLDERS = [_FOLDER, *(_FOLDER / name for name in ("forms", "sentences", "tables"))]
"""No two of these templates have one name, so that a name is enough to find one."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_SPACE = re.compile(r"\s+")
_BAR, _STAND_IN = "\N{BROKEN BAR}", "\ue000"
_MARKED_UP = re.compile(r"([\\`*_\[\]<>|#~$])")


@dataclass(frozen=True)
class Table:
    """A table for people.

    Attributes:
        header: (columns,) text; empty for none.
        rows: (rows, columns) text.
        left: left-aligned columns; the others are right-aligned, as numbers are.
        marked: rows to highlight.
        wrap: columns whose text may break into lines.
        csv: the file beside the report with its numbers at full precision; empty: there is none.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    marked: Sequence[int] = ()
    wrap: Sequence[int] = ()
    csv: str = ""


def page(form: Literal["html", "markdown"], **facts: Any) -> str:
    """The report, in the words of a form.

    Args:
        form: name of the template that has them.
        facts: what `page.j2` and the templates of its chapters read.
    """
    template = _environment(form == "html").get_template("page.j2")
    text = template.render(facts, form=f"{form}.j2", headings=[], looks_style=STYLE)
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


def _in_a_template(
    template: str,
    left: Sequence[int] = (0,),
    marked: Sequence[int] = (),
    wrap: Sequence[int] = (),
    csv: str = "",
    **facts: Any,
) -> Table:
    """The table that a template fills, for a template that shows it."""
    return Table(*table(template, **facts), left, marked, wrap, csv)


def _of_a_package(name: str) -> tuple[str, str, Callable[[], bool]] | None:
    """Text and path of a template that has a place; None of one that has a name alone."""
    package, _, file = name.partition(":")
    if not file:
        return None
    path = importlib.resources.files(package) / file
    return path.read_text("utf-8"), str(path), lambda: True


@functools.cache
def _environment(escapes: bool) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.FileSystemLoader(_FOLDERS), jinja2.FunctionLoader(_of_a_package)]
        ),
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
        "carried": classes.carried,
        "interval": forms.interval,
        "interval_of_pair": forms.interval_of_pair,
        "known": forms.known,
        "level": forms.level,
        "listed": forms.listed,
        "made_equal": forms.made_equal,
        "md": markdown,
        "missing": pd.isna,
        "network": settings.network_text,
        "number": forms.number,
        "percent": forms.percent,
        "points": forms.points,
        "quoted": shlex.quote,
        "sentence": terminal.sentence,
        "setting_text": settings.setting_text,
        "share_of_budget": forms.share_of_budget,
        "span": forms.span,
        "tallied": tallied,
        "three_decimals": forms.three_decimals,
    }
    made.globals |= {
        "counted": terminal.counted,
        "limits": limits,
        "given": given,
        "interim": interim,
        "modality": tasks.modality,
        "optimism": optimism,
        "paradigm_order": paradigm_order,
        "table": _in_a_template,
        "AXES": AXES,
        "INFINITY": math.inf,
        "LEVEL": LEVEL,
        "MANY": forms.MANY,
        "MIN_SEEDS": MIN_SEEDS,
        "POWER": POWER,
        "RULES": RULES,
        "SCREENING": SCREENING,
    }
    return made


def _in_a_cell(value: Any) -> str:
    """On one line, with a stand-in for what parts cells."""
    return _SPACE.sub(" ", str(value)).replace(_BAR, _STAND_IN)


@functools.cache
def _of_tables() -> jinja2.Environment:
    return _environment(False).overlay(finalize=_in_a_cell)
