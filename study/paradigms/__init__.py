"""Attention paradigms: one file each, one contract (`study.paradigms.base.Paradigm`)."""

from __future__ import annotations

from study.errors import unknown
from study.paradigms.base import Paradigm
from study.paradigms.hard import Hard
from study.paradigms.hard_sampled import HardSampled
from study.paradigms.lvml import LVML
from study.paradigms.lvml_logits import LVMLLogits
from study.paradigms.soft import Soft

_PARADIGMS: dict[str, Paradigm] = {
    p.name: p for p in (Soft(), Hard(), LVML(), HardSampled(), LVMLLogits())
}


def get(name: str) -> Paradigm:
    """The paradigm of that name.

    Raises:
        RequestError: no such paradigm; names the nearest.
    """
    if name not in _PARADIGMS:
        raise unknown("paradigm", name, _PARADIGMS)
    return _PARADIGMS[name]
