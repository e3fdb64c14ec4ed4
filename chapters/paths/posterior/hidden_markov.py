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

`chapters.paths.posterior.network` says how networks are declared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from chapters.paths.attention_paths import path_features
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.posterior.network import Head, Network
from study.cell.seeds import stream_seed

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

DIRECTIONS: Floats = np.sqrt(2) * np.kron(np.eye(2), np.ones(VISIBLE // 2))
"""v_+ and v_-, (2, 200)."""


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
    """
    labels = np.where(np.arange(n) % 2 == 0, 1, -1)
    stay = np.where(labels == 1, STAY[1], STAY[-1])[:, None].repeat(tokens, axis=1)
    stay[:, 0] = 0.5  # the start
    states = np.where(_stream(seed, split, "states").random((n, tokens)) < stay, 1, -1)
    states = states.cumprod(axis=1)

    noise = _stream(seed, split, "noise").standard_normal((n, tokens, VISIBLE))
    unit = DIRECTIONS / np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
    inside = noise @ unit.T @ unit
    shown = DIRECTIONS[(states == -1).astype(int)] + inside + sigma_perp * (noise - inside)
    inputs = np.zeros((n, VISIBLE + tokens + 1, tokens + 1))
    inputs[:, :VISIBLE, 1:] = shown.transpose(0, 2, 1)
    inputs[:, VISIBLE:] = np.eye(tokens + 1)
    return Sequences(inputs, labels.astype(float), states)


def attention(inputs: Floats, network: Network, seed: int) -> list[Floats]:
    """What every head attends to.

    Args:
        inputs: (n, N_0, T + 1), of `sample`.
        network: its heads.
        seed: of the random heads.

    Returns:
        One (H_l, n, T + 1, T + 1) a layer, [s, t]; columns sum to 1. See
        `chapters.paths.attention_paths.path_features`.
    """
    return [
        np.stack([softmax(_logits(inputs, head, number, seed), axis=1) for head in layer])
        for number, layer in enumerate(network, start=1)
    ]


def features(inputs: Floats, network: Network, seed: int) -> Floats:
    """Features of all paths of a network, read at the last token.

    The attention of a few samples at a time is held in memory, not of all.

    Args:
        inputs: (n, N_0, T + 1), of `sample`.
        network: its heads.
        seed: of the random heads.

    Returns:
        (n, D, N_0), of `chapters.paths.attention_paths.path_features`; D counts the paths of this
        network, also where it is a part of another.
    """
    per_sample = 8 * inputs.shape[2] ** 2 * (2 + sum(map(len, network)))
    rows = max(1, _CHUNK_BYTES // per_sample)
    chunks = np.split(inputs, range(rows, len(inputs), rows))
    return np.concatenate([path_features(x, attention(x, network, seed)) for x in chunks])


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
    contrast = np.subtract(*DIRECTIONS) / VISIBLE
    weights[:VISIBLE, :VISIBLE] = np.outer(contrast, contrast)
    between = weights[VISIBLE:, VISIBLE:]
    between += np.eye(positions, k=1)  # key = query - 1
    between[0, 1:] += 1.5
    return weights


def _random(positions: int, layer: int, head: Head, seed: int) -> Floats:
    """W of a random head; each block has its own stream: that of features is one for every T."""
    sizes = {"features": VISIBLE, "positions": positions}
    squares = {"features": VISIBLE, "positions": 1}

    def block(key: str, query: str) -> Floats:
        name = key if key == query else f"{key} to {query}"
        normal = _stream(seed, "head", layer, head.number, name).standard_normal
        return normal((sizes[key], sizes[query])) / np.sqrt(squares[key] * squares[query])

    return np.block([[block(key, query) for query in sizes] for key in sizes])


def _stream(*names: object) -> np.random.Generator:
    return np.random.default_rng(stream_seed("hidden-markov", *names))
