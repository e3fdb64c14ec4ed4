"""A page of blocks alone, in each form of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from analysis.page.templates import page
from analysis.section.blocks import Block


def page_of(
    blocks: Sequence[Block],
    title: str = "made up",
    form: Literal["html", "markdown"] = "html",
    reload: float | None = None,
) -> str:
    facts = {"head": [], "sections": {title: blocks}}
    return page(
        form,
        title=title,
        warnings=[],
        notes=[],
        chapters=[{"template": "blocks.j2", "sections": [title], "facts": facts}],
        claim_tables={},
        reload=reload,
    )
