"""Named architectures of focus and classifier."""

from __future__ import annotations

from study.errors import unknown
from study.models.base import Builder, Model
from study.models.images import IMAGE_ARCHITECTURES
from study.models.linear import linear
from study.models.text import TEXT_ARCHITECTURES

_ARCHITECTURES: dict[str, dict[str, Builder]] = {
    **IMAGE_ARCHITECTURES,
    "linear": {"linear-orthogonal": linear},
    **TEXT_ARCHITECTURES,
}
"""Name -> task -> builder."""


def names(task: str) -> list[str]:
    """The architectures that are defined for a task."""
    return [name for name, by_task in _ARCHITECTURES.items() if task in by_task]


def build(
    name: str,
    task: str,
    input_shape: tuple[int, ...],
    num_classes: int,
    *,
    width: float = 1.0,
    seed: int = 0,
    precision: str = "float32",
) -> Model:
    """A freshly initialised model.

    Args:
        name: architecture, one of `names(task)`.
        task: name in `study.tasks`; `scripts` and `paper` differ between data sets.
        input_shape: of one segment, without the batch axis: (channels, height, width), or of
            text (numbers of words,).
        num_classes: C.
        width: factor on every hidden width, > 0.
        seed: draws the initial weights; encoder, focus and classifier have separate streams, so
            that a focus starts equal beside any classifier.

    Raises:
        RequestError: no such architecture for this task.
    """
    if name not in names(task):
        raise unknown(f"architecture for {task}", name, names(task))
    return _ARCHITECTURES[name][task](input_shape, num_classes, width, seed, precision)
