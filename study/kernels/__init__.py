"""Kernels of our own for a training step on a GPU, each in place of PyTorch's, or beside them.

None is used on a CPU. Which of them a study uses is chosen by timing (`study.plan.estimate`).
Numbers are equal to PyTorch's but for rounding.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

PYTORCH, COMPILED = "pytorch", "compiled"

OWN = ("pooling", "aligned", "flat")
"""ReLU of pooling as one kernel; channels in the multiples that tensor cores take; weights as one
tensor, with one cast and one update a step."""

Kernels = tuple[str, ...]
"""Some of `OWN`, in their order, or `COMPILED` alone (`torch.compile`); empty: PyTorch's."""


def parsed(text: str) -> Kernels:
    """The kernels of a text such as `pytorch`, `compiled` or `pooling,flat`.

    Raises:
        argparse.ArgumentTypeError: there are none of these names.
    """
    if text == PYTORCH:
        return ()
    names = text.split(",")
    if names != [COMPILED] and not set(names) <= set(OWN):
        raise argparse.ArgumentTypeError(
            f"must be {PYTORCH}, {COMPILED} or some of {','.join(OWN)}, got {text!r}"
        )
    return tuple(name for name in (*OWN, COMPILED) if name in names)


def text_of(kernels: Kernels) -> str:
    """What `parsed` takes."""
    return ",".join(kernels) or PYTORCH


def has_triton() -> bool:
    """Whether Triton is installed, in which kernels are written."""
    return find_spec("triton") is not None
