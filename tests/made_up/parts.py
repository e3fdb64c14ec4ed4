"""Files of parts for tests, and a context that forgets what they register."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import search_spaces
from study import models, paradigms, parts, tasks
from study.paradigms.paradigm import Paradigm
from study.parts import loading

PROJECT = Path(__file__).parents[2]
EXAMPLE = PROJECT / "examples" / "my-attention" / "src" / "my_attention" / "parts.py"

HALF = '''
from study.paradigms.soft import Soft
from study.parts import register_paradigm

@register_paradigm
class Half(Soft):
    """Soft attention to scores of half their size."""

    name = "half"
    exact = "half"

    def attend(self, scores):
        return (scores / 2).softmax(dim=1)
'''
"""Registers a paradigm."""


def sparsemax() -> Paradigm:
    """The example's paradigm, which stands for all to come."""
    with forgotten():
        parts.load([str(EXAMPLE)])
        return paradigms.get("sparsemax")


@contextlib.contextmanager
def forgotten() -> Iterator[None]:
    """What is registered meanwhile is forgotten behind."""
    registries: tuple[dict[Any, Any], ...] = (
        paradigms.REGISTERED,
        models.ARCHITECTURES,
        tasks.TASKS,
        tasks.MEASURES,
        search_spaces.STUDIES,
        parts.ORIGINS,
        loading._LOADED,
    )
    with contextlib.ExitStack() as stack:
        for known in registries:
            stack.enter_context(patch.dict(known))
        yield
        paradigms._made.cache_clear()
