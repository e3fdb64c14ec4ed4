"""Pages of blocks alone, or of what chapters say, in each form of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from analysis.page.templates import page
from analysis.section.blocks import Block

Form = Literal["html", "markdown"]


def page_of(
    blocks: Sequence[Block],
    title: str = "made up",
    form: Form = "html",
    reload: float | None = None,
) -> str:
    """A page with one section."""
    facts = {"head": [], "sections": {title: blocks}}
    told = {"template": "blocks.j2", "sections": [title], "facts": facts}
    return page_of_chapters([told], title, form, reload)


def page_of_chapters(
    chapters: Sequence[Mapping[str, Any]],
    title: str = "made up",
    form: Form = "html",
    reload: float | None = None,
) -> str:
    """A page of chapters, each with its `template`, `sections` and `facts`."""
    said: dict[str, Any] = {"title": title, "chapters": chapters, "reload": reload}
    return page(form, **said, warnings=[], notes=[], claim_tables={}, claim_counts=None)
