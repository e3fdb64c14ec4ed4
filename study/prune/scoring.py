"""Every score that a brought network has the arrays for, and the orders of removal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from study.errors import RequestError
from study.prune.arrays import Stored
from study.prune.checks import parts, rows
from study.prune.names import PREFERRED, SCORES
from study.prune.network import GRADIENTS, INPUTS, LABELS, OUTPUTS, Network
from study.prune.theory import Impossible, Theory, theory
from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.features import Readout
from study.theory.heads import pruning, scores

TAKES = {
    "theory": (INPUTS, LABELS),
    "norm": (OUTPUTS,),
    "sensitivity": (OUTPUTS, GRADIENTS),
    "entropy": (),
}
"""Score -> what it takes besides attention."""


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of a network, and the orders of removal.

    Heads are counted through all layers from 0, those of the first layer come first.

    Attributes:
        heads: (H_1, ..., H_L).
        scores: score -> (sum of H_l,), in the order of `SCORES`.
        orders: score -> the heads it removes, in order; sum of H_l - L of them.
        missing: score -> why it is not given.
        by: the score whose order comes first.
        theory: None if it is not given.
        readout: of the theory's network.
        ignored: arrays of the file that have no role.
    """

    heads: tuple[int, ...]
    scores: Mapping[str, Floats]
    orders: Mapping[str, list[int]]
    missing: Mapping[str, str]
    by: str
    theory: Theory | None
    readout: Readout
    ignored: list[str]

    @property
    def places(self) -> list[tuple[int, int]]:
        """Layer and head of every head, both counted from 1."""
        return [
            (layer, head)
            for layer, count in enumerate(self.heads, start=1)
            for head in range(1, count + 1)
        ]


def scored(
    network: Network, width: int, temperature: float | None, readout: Readout, by: str | None
) -> Scored:
    """Scores the heads of a network.

    Args:
        network: as it was brought.
        width, temperature, readout: of the theory, see `study.prune.theory.theory`.
        by: the score whose order comes first; None: the first of `PREFERRED` that is there.

    Raises:
        RequestError: the score `by` cannot be had.
    """
    missing = {name: reason for name in SCORES if (reason := _lacks(network, name))}
    _require(by, missing)
    found: dict[str, Floats] = {}
    solved: Theory | None = None
    if "theory" not in missing:
        try:
            solved = theory(network, width, temperature, readout)
            found["theory"] = solved.scores
        except Impossible as reason:
            missing["theory"] = str(reason)
            _require(by, missing)
    if network.outputs is not None:
        found["norm"] = np.concatenate([_root_mean_square(each) for each in network.outputs])
        if network.gradients is not None:
            pairs = zip(network.outputs, network.gradients, strict=True)
            found["sensitivity"] = scores.by_layer([_slopes(*pair) for pair in pairs])
    entropies = np.concatenate([_entropies(layer) for layer in network.attention])
    found["entropy"] = scores.focus(entropies, network.tokens)
    return Scored(
        heads=network.heads,
        scores=found,
        orders={
            name: pruning.by_score(values.tolist(), network.heads)
            for name, values in found.items()
        },
        missing=missing,
        by=by or next(name for name in PREFERRED if name in found),
        theory=solved,
        readout=readout,
        ignored=network.ignored,
    )


def _lacks(network: Network, score: str) -> str | None:
    """Why a score is not given for want of arrays; None if they are there."""
    absent = [name for name in TAKES[score] if network.lacks(name)]
    if not absent:
        return None
    layers = len(network.heads)
    named = {name: name for name in (INPUTS, LABELS)}
    named |= {name: f"{name}.1 to {name}.{layers}" for name in (OUTPUTS, GRADIENTS)}
    takes = " and ".join(named[name] for name in TAKES[score])
    return f"it takes {takes}; the file has no {' and no '.join(absent)}"


def _require(by: str | None, missing: Mapping[str, str]) -> None:
    if by is not None and by in missing:
        raise RequestError(f"--by {by} is not possible: {missing[by]}.")


def _root_mean_square(outputs: Stored) -> Floats:
    """Of each head's output: (H,)."""
    squares = sum(
        (values**2).reshape(*values.shape[:2], -1).mean(axis=2).sum(axis=0)
        for values in _blocks(outputs)
    )
    return np.sqrt(squares / len(outputs.values))


def _slopes(outputs: Stored, gradients: Stored) -> Floats:
    """E |d loss / d xi_h| at xi = 1, where xi_h multiplies the output of head h: (H,)."""
    pairs = zip(_blocks(outputs), _blocks(gradients), strict=True)
    slopes = sum(
        np.abs((output * gradient).reshape(*output.shape[:2], -1).sum(axis=2)).sum(axis=0)
        for output, gradient in pairs
    )
    return slopes / len(outputs.values)


def _entropies(layer: Stored) -> Floats:
    """The mean entropy of each head's attention, in nats: (H,)."""
    samples = len(layer.values)
    return (
        sum(
            scores.mean_entropies(rows(layer, part).transpose(1, 0, 2, 3))
            * (part.stop - part.start)
            for part in parts(samples, layer.values[0].size)
        )
        / samples
    )


def _blocks(stored: Stored) -> Iterator[Floats]:
    """The values of some samples at a time, in float64."""
    for part in parts(len(stored.values), stored.values[0].size):
        yield stored.values[part].astype(np.float64)
