"""A network as a file brings it: its arrays by their roles, of fitting shapes.

`python -m study.prune --help` says what a file holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from study.errors import RequestError
from study.prune import checks
from study.prune.arrays import Arrays, Stored, opened
from study.prune.checks import Bools
from study.theory.attention_paths.checks import Floats

ATTENTION, OUTPUTS, GRADIENTS = BY_LAYER = ("attention", "outputs", "gradients")
INPUTS, LABELS, HELD_OUT = WHOLE = ("inputs", "labels", "held_out")


@dataclass(frozen=True, eq=False)
class Network:
    """What a file holds.

    Attributes:
        file: its name.
        attention: one (P, H_l, T, T) a layer, [query, key]; its rows sum to 1, those of half
            precision about.
        inputs: (P, T, F); None: not in the file, as the next.
        labels: (P,), -1 or +1.
        held_out: (P,), the samples that choose the temperature.
        outputs: one (P, H_l, ...) a layer.
        gradients: as outputs.
        ignored: arrays that have no role.
    """

    file: Path
    attention: list[Stored]
    inputs: Stored | None
    labels: Floats | None
    held_out: Bools
    outputs: list[Stored] | None
    gradients: list[Stored] | None
    ignored: list[str]

    @property
    def samples(self) -> int:
        """P."""
        return len(self.attention[0].values)

    @property
    def tokens(self) -> int:
        """T."""
        return self.attention[0].values.shape[-1]

    @property
    def heads(self) -> tuple[int, ...]:
        """(H_1, ..., H_L)."""
        return tuple(layer.values.shape[1] for layer in self.attention)

    def lacks(self, name: str) -> bool:
        """Whether the file has no array, or no arrays by layer, of a name."""
        return getattr(self, name) is None


def read(file: Path) -> Network:
    """Reads a file and checks all that has a role.

    Raises:
        RequestError: the file is damaged, or an array is missing, of a wrong shape or of wrong
            values; the message names it and says what to do.
    """
    with opened(file) as arrays:
        return _read(file, arrays)


def _read(file: Path, arrays: Arrays) -> Network:
    layers = _layers(arrays)
    attention: list[Stored] = []
    for name in _by_layer(ATTENTION, layers):
        attention.append(arrays.read(name))
        checks.attention(name, attention[-1], attention[0].values)
    first = attention[0].values
    samples, tokens = len(first), first.shape[-1]

    def whole(name: str) -> Stored | None:
        return arrays.read(name) if name in arrays.names else None

    inputs, labels, held_out = map(whole, WHOLE)
    if inputs is not None:
        checks.inputs(INPUTS, inputs.values, samples, tokens)
    of_heads: dict[str, list[Stored] | None] = {}
    for group in (OUTPUTS, GRADIENTS):
        names = _by_layer(group, layers)
        of_heads[group] = None
        if names[0] in arrays.names:
            of_heads[group] = stored = [arrays.read(name) for name in names]
            for name, each, maps in zip(names, stored, attention, strict=True):
                checks.of_heads(name, each.values, maps.values.shape)
    outputs, gradients = of_heads[OUTPUTS], of_heads[GRADIENTS]
    if outputs is not None and gradients is not None:
        for depth, (output, gradient) in enumerate(zip(outputs, gradients, strict=True), start=1):
            if output.values.shape != gradient.values.shape:
                raise RequestError(
                    f"{GRADIENTS}.{depth} must have the shape {output.values.shape} of "
                    f"{OUTPUTS}.{depth}, got {gradient.values.shape}."
                )
    known = {*WHOLE, *(name for group in BY_LAYER for name in _by_layer(group, layers))}
    return Network(
        file=file,
        attention=attention,
        inputs=inputs,
        labels=None if labels is None else checks.labels(LABELS, labels.values, samples),
        held_out=checks.held_out(HELD_OUT, None if held_out is None else held_out.values, samples),
        outputs=outputs,
        gradients=gradients,
        ignored=sorted(set(arrays.names) - known),
    )


def _by_layer(group: str, layers: int) -> list[str]:
    """Names of a group's arrays, the first layer first."""
    return [f"{group}.{layer}" for layer in range(1, layers + 1)]


def _layers(arrays: Arrays) -> int:
    """The number of layers; every group that is there has all of them.

    Raises:
        RequestError: attention is missing, or a group has other layers than attention has.
    """
    found = {group: _numbers(group, arrays) for group in BY_LAYER}
    if not found[ATTENTION]:
        there = ", ".join(arrays.names) or "no array"
        raise RequestError(
            f"attention.1 is missing: the file holds {there}. Save the attention of each layer as "
            "attention.1, attention.2, ..."
        )
    count = max(found[ATTENTION])
    for group, numbers in found.items():
        if extra := [number for number in numbers if number > count]:
            raise RequestError(
                f"{group}.{min(extra)} has no attention.{min(extra)}: attention has {count} "
                f"layers. Save that layer's attention, or leave its {group} out."
            )
        if numbers and len(numbers) < count:
            missing = next(layer for layer in range(1, count + 1) if layer not in numbers)
            raise RequestError(
                f"{group}.{missing} is missing: there is {group} of layers "
                f"{', '.join(map(str, sorted(numbers)))} of {count}. Save that of every layer"
                + ("." if group == ATTENTION else ", or of none.")
            )
    return count


def _numbers(group: str, arrays: Arrays) -> set[int]:
    """The layers of a group.

    Raises:
        RequestError: a name ends in no such number.
    """
    ends = [n.removeprefix(f"{group}.") for n in arrays.names if n.startswith(f"{group}.")]
    for text in ends:
        if not re.fullmatch(r"[1-9][0-9]*", text):
            raise RequestError(
                f"{group}.{text} must end in the number of a layer, which count from 1. Rename it."
            )
    return set(map(int, ends))
