"""Pages of a few words, or of what chapters say, in each form of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from analysis.section.picture import Shown
from analysis.section.section import Section
from analysis.section.templates import page

Form = Literal["html", "markdown"]


def page_of(
    said: Sequence[tuple[str, Any]],
    title: str = "made up",
    form: Form = "html",
    reload: float | None = None,
) -> str:
    """A page that says something: names of the macros of a form, each with what it is given."""
    chapter = {"template": "tests.made_up:said", "sections": [], "said": said}
    return page_of_chapters([chapter], title, form, reload)


def page_of_chapters(
    chapters: Sequence[Mapping[str, Any]],
    title: str = "made up",
    form: Form = "html",
    reload: float | None = None,
) -> str:
    """A page of chapters, each with its `template`, `sections` and facts."""
    told: dict[str, Any] = {"title": title, "chapters": chapters, "reload": reload}
    told |= {"results": "/my results", "published": True, "claim_tables": {}}
    return page(form, **told, warnings=[], notes=[], claim_counts=None)


def page_of_section(
    section: Section[Any], form: Form = "html", shown: Sequence[Shown] = ()
) -> str:
    """A page of one section, with what is shown of its pictures."""
    told = {"template": section.chapter.template, "claims": section.claims, "shared": []}
    facts = section.chapter.facts([section], published=True)
    sections = [{**section.facts, "shown": shown}]
    return page_of_chapters([{**told, **facts, "sections": sections}], section.title, form)
