"""Named architectures of focus and classifier. Their names are known without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from study.cell import Cell, NetworkSettings
from study.door import Registry, imported
from study.errors import unknown

if TYPE_CHECKING:
    from study.models.model import Model
    from study.tasks.task import Task

_IMAGES = "study.models.images"

ARCHITECTURES: Registry[Mapping[str, str]] = Registry(
    {
        "scripts": {
            "cifar10": f"{_IMAGES}:scripts_cifar10",
            "cifar100": f"{_IMAGES}:scripts_cifar100",
            "images": f"{_IMAGES}:scripts_cifar10",
        },
        "paper": {
            "cifar10": f"{_IMAGES}:paper_cifar10",
            "cifar100": f"{_IMAGES}:paper_cifar100",
        },
        "small": dict.fromkeys(("cifar10", "cifar100", "images"), f"{_IMAGES}:small"),
        "perceptron": dict.fromkeys(("digits", "images"), f"{_IMAGES}:perceptron"),
    }
)
"""Name -> task -> module and builder (`study.models.model.Builder`)."""

_AS_NAMED = NetworkSettings()

ADJUSTABLE = set(ARCHITECTURES.core)
"""Names of those that `study.cell.NetworkSettings` can change."""


def takes_network(name: str, task: str) -> bool:
    """Whether `study.cell.NetworkSettings` can change an architecture of a task."""
    return name in ADJUSTABLE and task in ARCHITECTURES[name]


def further_of(cell: Cell) -> tuple[Any, ...]:
    """What the builder of a cell's model takes besides; empty for most."""
    if cell.network != _AS_NAMED:
        return (cell.network,)
    return () if cell.settings is None else cell.settings.further(cell)


def names(task: str) -> list[str]:
    """The architectures that are defined for a task."""
    return [name for name, by_task in ARCHITECTURES.items() if task in by_task]


def model_of(cell: Cell, task: Task) -> Model:
    """The freshly initialised model of a cell on its task."""
    return network_of(cell, task.facts.input_shape, task.num_classes)


def network_of(cell: Cell, input_shape: tuple[int, ...], num_classes: int) -> Model:
    """As `model_of`, of a task whose data is not at hand; arguments as of `build`."""
    return build(
        cell.architecture,
        cell.task,
        input_shape,
        num_classes,
        width=cell.width,
        seed=cell.seed,
        precision=cell.precision,
        further=further_of(cell),
    )


def build(
    name: str,
    task: str,
    input_shape: tuple[int, ...],
    num_classes: int,
    *,
    width: float = 1.0,
    seed: int = 0,
    precision: str = "float32",
    further: tuple[Any, ...] = (),
) -> Model:
    """A freshly initialised model.

    Args:
        name: architecture, one of `names(task)`.
        task: name in `study.tasks`; `scripts` and `paper` differ between data sets.
        input_shape: of one segment, without the batch axis: (channels, height, width), or of
            text (number of words,).
        num_classes: C.
        width: factor on every hidden width, > 0.
        seed: draws the initial weights. Encoder, focus and classifier have separate streams, so
            that a focus starts equal with any classifier.
        precision: of the products, one of `study.cell.PRECISIONS`.
        further: as `further_of` gives it.

    Raises:
        RequestError: no such architecture for this task.
    """
    if name not in names(task):
        raise unknown(f"architecture for {task}", name, names(task))
    builder = imported(ARCHITECTURES[name][task])
    return builder(input_shape, num_classes, width, seed, precision, *further)
