"""The axes of cells that take trained networks apart: those of the networks, and their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from study.cell.axis import Axis, number, whole
from study.heads.cell import METHODS, SOLVED
from study.heads.temperatures import CHOICES, FIXED, PUBLISHED, VALIDATION
from study.posterior.cell import THEORY
from study.train import axes as training


def _choice_or_number(text: str) -> str | float:
    return text if text in CHOICES and text != FIXED else number(text)


AXES: Mapping[str, Axis] = {
    **{name: axis for name, axis in training.AXES.items() if name != "confirm"},
    "seed": Axis(
        "seeds of networks, which draw characters, episodes and weights; 0-5 is a range", whole
    ),
    "examples": Axis("P, training episodes on which theory solves and rules score", whole, (600,)),
    "temperature": Axis(
        f"of the theory: {VALIDATION} (the best of ten on validation episodes), {PUBLISHED} (the "
        "best of ten on the test episodes, and of five for the limit, as the paper does), or a "
        "number",
        _choice_or_number,
        (VALIDATION,),
        f"{VALIDATION}, {PUBLISHED} or a number",
        only=("method", SOLVED),
    ),
    "method": Axis(
        "theory, gp (its limit), or a rule that scores heads: weight-norm, entropy, sensitivity, "
        "random, greedy, bound (the best of all subsets)",
        str,
        expects="a name",
    ),
    "network_width": Axis(
        "N, of every layer of the theory's network",
        whole,
        only=("method", (THEORY,)),
    ),
}


def choices(axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
    """The valid names of an axis; None if it takes numbers or a text."""
    return METHODS if axis == "method" else training.choices(axis, of_tasks)
