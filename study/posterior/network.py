"""Networks of fixed heads, declared as text, and their paths. Known without NumPy.

Heads are joined by "+" and layers by "/": "good+random/uniform+random" has two heads in each of
two layers, so four paths. `study.posterior.hidden_markov` says what each kind of head attends to.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from study.errors import unknown

KINDS = ("good", "uniform", "random")

VARIANTS = {"plain": "good+random/uniform+random", "noisy": "good+uniform/uniform"}
"""The published networks, by the noise they are met with."""

SIGMA_PERP = {"plain": 1.0, "noisy": 5.0}
"""Noise outside span(v_+, v_-), by variant."""

OWN = "own"
"""Heads and noise of no published variant."""

PATHS = ("all", "good", "good+denoising")
"""The paths that a network is reduced to."""


class Head(NamedTuple):
    """A head of a network.

    Attributes:
        kind: one of `KINDS`.
        number: within its layer of the whole network, from 0; what names its random stream.
    """

    kind: str
    number: int


Network = tuple[tuple[Head, ...], ...]
"""The heads of each layer."""


def parse(heads: str) -> Network:
    """The network that a text declares.

    Raises:
        ValueError: a layer is empty, or a head of no known kind.
    """
    network = []
    for layer, part in enumerate(heads.split("/"), start=1):
        if not part:
            raise ValueError(f"layer {layer} of {heads!r} has no head. Valid: {', '.join(KINDS)}.")
        kinds = part.split("+")
        for kind in kinds:
            if kind not in KINDS:
                what = f"head in layer {layer} of {heads!r}:"
                raise ValueError(str(unknown(what, kind, KINDS)))
        network.append(tuple(Head(kind, number) for number, kind in enumerate(kinds)))
    return tuple(network)


def reduced(network: Network, paths: str) -> Network:
    """The network of these paths alone; its heads keep their numbers, and so their streams.

    The good path passes the good head of layer 1 and the uniform heads of all others; the
    denoising path differs in layer 1, where it passes the second head.

    Args:
        network: the whole.
        paths: one of `PATHS`.

    Raises:
        ValueError: the paths are unknown, or the network does not have them.
    """
    if paths not in PATHS:
        raise ValueError(str(unknown("paths:", paths, PATHS)))
    if paths == "all":
        return network
    first = [_of_kind(network[0], "good", 1)]
    if paths == "good+denoising":
        others = [head for head in network[0] if head.kind != "good"]
        if not others:
            raise ValueError(
                "the denoising path needs a head in layer 1 that is not good: give it one, or "
                "take paths=all."
            )
        first.append(others[0])
    rest = [
        (_of_kind(layer, "uniform", number),) for number, layer in enumerate(network[1:], start=2)
    ]
    return (tuple(first), *rest)


def path_names(network: Network) -> list[str]:
    """A name for each path, in C order: "good", "denoising", or the kinds of its heads."""
    names = []
    for path in itertools.product(*network):
        averaged = all(head.kind == "uniform" for head in path[1:])
        if averaged and path[0].kind == "good":
            names.append("good")
        elif averaged and path[0] == _denoising(network[0]):
            names.append("denoising")
        else:
            names.append(", ".join(head.kind for head in path))
    return names


def variant_of(heads: str, sigma_perp: float) -> str:
    """The published variant that has these heads and noise; `own` if none has."""
    names = (n for n in VARIANTS if (VARIANTS[n], SIGMA_PERP[n]) == (heads, sigma_perp))
    return next(names, OWN)


def _denoising(layer: Sequence[Head]) -> Head | None:
    """The head of the denoising path in the first layer: the first that is not good."""
    return next((head for head in layer if head.kind != "good"), None)


def _of_kind(layer: Sequence[Head], kind: str, number: int) -> Head:
    for head in layer:
        if head.kind == kind:
            return head
    found = "+".join(head.kind for head in layer)
    raise ValueError(
        f"the good path needs a {kind} head in layer {number}, which has {found}: give it one, or "
        "take paths=all."
    )
