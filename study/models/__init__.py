"""Named architectures of focus and classifier. Their names are known without PyTorch."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any, NamedTuple

from study.cell import Cell, DecoderSettings, NetworkSettings
from study.errors import unknown

if TYPE_CHECKING:
    from study.models.model import Model
    from study.tasks.task import Task

_OWN: dict[str, dict[str, str]] = {
    "scripts": {
        "cifar10": "images:scripts_cifar10",
        "cifar100": "images:scripts_cifar100",
        "images": "images:scripts_cifar10",
    },
    "paper": {"cifar10": "images:paper_cifar10", "cifar100": "images:paper_cifar100"},
    "small": {"cifar10": "images:small", "cifar100": "images:small", "images": "images:small"},
    "perceptron": {"digits": "images:perceptron", "images": "images:perceptron"},
    "conv1d": {"series": "images:conv1d"},
    "linear": {"linear-orthogonal": "linear:linear"},
    # The first and the second model of HateXplain.
    "embedding": {"hatexplain": "text:embedding", "texts": "text:embedding"},
    "self-attention": {"hatexplain": "text:self_attention", "texts": "text:self_attention"},
    "show-attend-tell": {"mscoco": "captioner:show_attend_tell"},
    "attention-paths": {
        "omniglot": "attention_paths:attention_paths",
        "digits-one-shot": "attention_paths:attention_paths",
    },
}
"""Name -> task -> module of this package and its builder."""

ARCHITECTURES: dict[str, dict[str, str]] = {
    name: {task: f"{__name__}.{place}" for task, place in by_task.items()}
    for name, by_task in _OWN.items()
}
"""Name -> task -> module and builder (`study.models.model.Builder`)."""


class Captions(NamedTuple):
    """What a model of captions has besides.

    Attributes:
        encoder: name of `study.tasks.captions.encoders.ENCODERS`.
        trained: whether the encoder trains, too; else its features are inputs.
        decoder: sizes.
    """

    encoder: str
    trained: bool
    decoder: DecoderSettings


def takes_network(name: str, task: str) -> bool:
    """Whether `study.cell.NetworkSettings` can change an architecture of a task."""
    return _OWN.get(name, {}).get(task, "").startswith("images:")


def further_of(cell: Cell) -> tuple[Any, ...]:
    """What the builder of a cell's model takes besides; empty for most."""
    if cell.network != NetworkSettings():
        return (cell.network,)
    if cell.transformer is not None:
        return (cell.transformer,)
    if cell.decoder is None:
        return ()
    trained = cell.schedule.phases[0].encoder_lr is not None
    return Captions(cell.options["encoder"], trained, cell.decoder)


def names(task: str) -> list[str]:
    """The architectures that are defined for a task."""
    return [name for name, by_task in ARCHITECTURES.items() if task in by_task]


def model_of(cell: Cell, task: Task) -> Model:
    """The freshly initialised model of a cell on its task."""
    return build(
        cell.architecture,
        task.name,
        task.facts.input_shape,
        task.num_classes,
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
    builder = pkgutil.resolve_name(ARCHITECTURES[name][task])
    return builder(input_shape, num_classes, width, seed, precision, *further)
