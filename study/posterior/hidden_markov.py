"""Hidden Markov classification: does a chain of states rather stay, or change?

A chain s_1, ..., s_T of states +-1 starts uniformly and stays with probability .7 (label +1) or .3
(label -1). Token t shows v_{s_t} in R^200 (v_+ is sqrt 2 on the first half, v_- on the second),
with unit noise inside span(v_+, v_-) and noise sigma_perp outside. A token without features (BOS)
stands in front, and every token carries its position as a one-hot vector (arXiv 2405.15926,
section 4.1, with the constants of the published code).

Heads are fixed: they attend by softmax over s of 10 x_s' W x_t, where W is one of three kinds.

- good: to the previous token if it shows the same state, else to BOS. What it gathers tells which
  sequences stay.
- uniform: to all tokens alike.
- random: W is random.

`study.posterior.network` says how networks are declared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from study.cell.seeds import stream_seed
from study.posterior.network import Head, Network, parse
from study.theory.attention_paths import path_features

Floats = NDArray[np.float64]

DIGEST = "hidden-markov-1"
"""Of the generator: to be raised when it draws others."""

VISIBLE = 200
"""Features of a token that show its state."""

STAY = {1: 0.7, -1: 0.3}
"""Label -> the probability that a state stays."""

SHARPNESS = 10.0
"""What logits are multiplied by."""

_CHUNK_BYTES = 2**26
"""Memory for the attention of the samples whose features are computed at once."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences with their labels.

    Attributes:
        inputs: (n, N_0, T + 1), tokens in columns, BOS first; N_0 = 200 + T + 1.
        labels: (n,), +-1, alternating.
        states: (n, T), +-1, hidden.
    """

    inputs: Floats
    labels: Floats
    states: NDArray[np.int64]


def sample(seed: int, n: int, tokens: int, sigma_perp: float, split: str) -> Sequences:
    """Sequences of a split; the first ones are the same for every n.

    Args:
        seed: of the data set.
        n: how many, >= 1.
        tokens: T, >= 2, without BOS.
        sigma_perp: standard deviation of the noise outside span(v_+, v_-), >= 0.
        split: names the random stream, e.g. "train".

    Raises:
        ValueError: an argument is out of range.
    """
    if n < 1 or tokens < 2 or not sigma_perp >= 0:
        raise ValueError(
            f"sequences need n >= 1, tokens >= 2 and sigma_perp >= 0, got {n}, {tokens} and "
            f"{sigma_perp}."
        )
    labels = np.where(np.arange(n) % 2 == 0, 1, -1)
    uniform = _stream(seed, split, "states").random((n, tokens))
    stay = np.where(labels == 1, STAY[1], STAY[-1])
    turns = np.where(uniform < stay[:, None], 1, -1)
    turns[:, 0] = np.where(uniform[:, 0] < 0.5, 1, -1)  # the start
    states = np.cumprod(turns, axis=1)

    directions = _directions()  # (2, 200)
    noise = _stream(seed, split, "noise").standard_normal((n, tokens, VISIBLE))
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    inside = noise @ unit.T @ unit
    shown = directions[(states == -1).astype(int)] + inside + sigma_perp * (noise - inside)
    inputs = np.zeros((n, VISIBLE + tokens + 1, tokens + 1))
    inputs[:, :VISIBLE, 1:] = shown.transpose(0, 2, 1)
    inputs[:, VISIBLE:] = np.eye(tokens + 1)
    return Sequences(inputs, labels.astype(float), states)


def attention(inputs: ArrayLike, heads: str | Network, seed: int) -> list[Floats]:
    """What every head attends to.

    Args:
        inputs: (n, N_0, T + 1), of `sample`.
        heads: a network, or the text that declares one.
        seed: of the random heads.

    Returns:
        One (H_l, n, T + 1, T + 1) a layer, [s, t]; columns sum to 1. See
        `study.theory.attention_paths.path_features`.

    Raises:
        ValueError: the text declares no network, or the inputs are not as above.
    """
    x = np.asarray(inputs, dtype=np.float64)
    if x.ndim != 3 or x.shape[1] != VISIBLE + x.shape[2]:
        raise ValueError(f"inputs must be (n, {VISIBLE} + T + 1, T + 1), got {x.shape}.")
    layers = []
    for number, layer in enumerate(_network(heads), start=1):
        maps = [softmax(_logits(x, head, number, seed), axis=1) for head in layer]
        layers.append(np.stack(maps))
    return layers


def features(inputs: Floats, heads: str | Network, seed: int) -> Floats:
    """Features of all paths of a network, read at the last token.

    The attention of a few samples at a time is held in memory, not of all.

    Args:
        inputs: (n, N_0, T + 1), of `sample`.
        heads: a network, or the text that declares one.
        seed: of the random heads.

    Returns:
        (n, D, N_0), of `study.theory.attention_paths.path_features`; D counts the paths of this
        network, also where it is a part of another.

    Raises:
        ValueError: as `attention`.
    """
    network = _network(heads)
    per_sample = 8 * inputs.shape[2] ** 2 * (2 + sum(map(len, network)))
    rows = max(1, _CHUNK_BYTES // per_sample)
    return np.concatenate(
        [
            path_features(some, attention(some, network, seed))
            for some in np.split(inputs, range(rows, len(inputs), rows))
        ]
    )


def _network(heads: str | Network) -> Network:
    return parse(heads) if isinstance(heads, str) else heads


def _logits(x: Floats, head: Head, layer: int, seed: int) -> Floats:
    """10 x_s' W x_t, (n, T + 1, T + 1) as [s, t]."""
    if head.kind == "uniform":
        return np.zeros((len(x), x.shape[2], x.shape[2]))
    weights = _good(x.shape[2]) if head.kind == "good" else _random(x.shape[2], layer, head, seed)
    return SHARPNESS * (x.transpose(0, 2, 1) @ (weights @ x))


def _good(positions: int) -> Floats:
    """W of a good head: key x query.

    A previous token of the same state has the logit 2 (times 10), BOS 1.5, any other token 1 at
    most.
    """
    weights = np.zeros((VISIBLE + positions,) * 2)
    contrast = np.subtract(*_directions()) / VISIBLE
    weights[:VISIBLE, :VISIBLE] = np.outer(contrast, contrast)
    between = weights[VISIBLE:, VISIBLE:]
    between += np.eye(positions, k=1)  # key = query - 1
    between[0, 1:] += 1.5
    return weights


def _random(positions: int, layer: int, head: Head, seed: int) -> Floats:
    """W of a random head; each block has its own stream, so that none depends on T alone."""

    def normal(block: str, *shape: int) -> Floats:
        return _stream(seed, "head", layer, head.number, block).standard_normal(shape)

    return np.block(
        [
            [
                normal("features", VISIBLE, VISIBLE) / VISIBLE,
                normal("features to positions", VISIBLE, positions) / np.sqrt(VISIBLE),
            ],
            [
                normal("positions to features", positions, VISIBLE) / np.sqrt(VISIBLE),
                normal("positions", positions, positions),
            ],
        ]
    )


def _directions() -> Floats:
    """v_+ and v_-, (2, 200)."""
    return np.sqrt(2) * np.kron(np.eye(2), np.ones(VISIBLE // 2))


def _stream(*names: object) -> np.random.Generator:
    return np.random.default_rng(stream_seed("hidden-markov", *names))
