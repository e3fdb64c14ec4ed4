"""Networks of fixed heads, declared as text, and their paths. Known without NumPy.

Heads are joined by "+" and layers by "/": "good+random/uniform+random" has two heads in each of
two layers, so four paths. `chapters.paths.posterior.hidden_markov` says what each kind of head
attends to.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from study.errors import unknown

KINDS = ("good", "uniform", "random")
NOT_GOOD = KINDS[1:]

VARIANTS = {"plain": "good+random/uniform+random", "noisy": "good+uniform/uniform"}
"""The published networks, by the noise they are met with."""

SIGMA_PERP = {"plain": 1.0, "noisy": 5.0}
"""Noise outside span(v_+, v_-), by variant."""

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
        ValueError: a head is of no known kind.
    """
    layers = [part.split("+") for part in heads.split("/")]
    for number, kinds in enumerate(layers, start=1):
        for kind in kinds:
            if kind not in KINDS:
                raise ValueError(
                    str(unknown(f"head in layer {number} of {heads!r}:", kind, KINDS))
                )
    return tuple(tuple(Head(kind, n) for n, kind in enumerate(kinds)) for kinds in layers)


def reduced(network: Network, paths: str) -> Network:
    """The network of these paths alone; its heads keep their numbers, and so their streams.

    The good path passes the good head of layer 1 and the uniform heads of all others; the
    denoising path differs in layer 1, where it passes the first head that is not good.

    Args:
        network: the whole.
        paths: one of `PATHS`.

    Raises:
        ValueError: the network does not have the paths.
    """
    if paths == "all":
        return network
    first, *rest = network
    kept = [_first(first, ("good",), 1)]
    if paths == "good+denoising":
        kept.append(_first(first, NOT_GOOD, 1))
    others = [(_first(layer, ("uniform",), number),) for number, layer in enumerate(rest, start=2)]
    return (tuple(kept), *others)


def path_names(network: Network) -> list[str]:
    """A name for each path, in C order: "good", "denoising", or the kinds of its heads."""
    denoising = next((head for head in network[0] if head.kind in NOT_GOOD), None)
    names = []
    for first, *others in itertools.product(*network):
        name = ", ".join(head.kind for head in (first, *others))
        if all(head.kind == "uniform" for head in others):
            name = "denoising" if first == denoising else "good" if first.kind == "good" else name
        names.append(name)
    return names


def variant_of(heads: str, sigma_perp: float) -> str:
    """The published variant that has these heads and noise; `own` if none has."""
    of_variants = {(VARIANTS[name], SIGMA_PERP[name]): name for name in VARIANTS}
    return of_variants.get((heads, sigma_perp), "own")


def _first(layer: tuple[Head, ...], kinds: Sequence[str], number: int) -> Head:
    """The first head of some kinds in a layer."""
    for head in layer:
        if head.kind in kinds:
            return head
    raise ValueError(
        f"the paths need a {' or '.join(kinds)} head in layer {number}, which has "
        f"{'+'.join(head.kind for head in layer)}: give it one, or take paths=all."
    )
