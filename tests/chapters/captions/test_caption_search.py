"""A search of captions: what it improves, and what of its axes depends on the paradigm."""

from __future__ import annotations

from chapters.captions.studies import MSCOCO
from study.plan.axes import resolve
from study.search.space import Space


def test_a_search_of_captions_improves_bleu_and_keeps_what_depends_on_the_paradigm() -> None:
    space = Space.of(resolve(MSCOCO, "paper", ("lr=1e-4,1e-3",)))
    assert space.improved(["accuracy"]) == "validation Bleu-4"
    alone, after = (space.points[name] for name in ("hard-running", "hybrid-running"))
    assert (alone["drop_at"], alone["teacher_forcing"]) == (0.4, 0.7)
    assert (after["drop_at"], after["teacher_forcing"], after["hard_lr"]) == (0.24, 1.0, 1e-4)
    assert list(space.ranges("hybrid-running")) == ["lr"]
