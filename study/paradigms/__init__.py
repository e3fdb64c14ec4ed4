"""Attention paradigms: one file each, one contract (`study.paradigms.paradigm.Paradigm`).

Their names are known without PyTorch.
"""

from __future__ import annotations

import functools
import pkgutil
from typing import TYPE_CHECKING

from study.door import Registry
from study.errors import unknown

if TYPE_CHECKING:
    from study.paradigms.paradigm import Paradigm

REGISTERED: Registry[str] = Registry(
    {
        "soft": "study.paradigms.soft:Soft",
        "hard": "study.paradigms.hard:Hard",
        "lvml": "study.paradigms.lvml:LVML",
        "hard-sampled": "study.paradigms.hard_sampled:HardSampled",
        "hard-running": "study.paradigms.hard_running:HardRunning",
        "lvml-sampled": "study.paradigms.lvml_sampled:LVMLSampled",
        "lvml-logits": "study.paradigms.lvml_logits:LVMLLogits",
    }
)
"""Name in a schedule -> module and class."""


def get(name: str) -> Paradigm:
    """The paradigm of a name.

    Raises:
        RequestError: no such paradigm; names the nearest.
    """
    if name not in REGISTERED:
        raise unknown("paradigm", name, REGISTERED)
    return _made(REGISTERED[name])


@functools.cache
def _made(place: str) -> Paradigm:
    return pkgutil.resolve_name(place)()
