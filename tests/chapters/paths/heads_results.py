"""Trained networks of one-shot images and what scores their heads, with chosen numbers.

All is made up by simple laws. A head matters by an amount of its own network; what a score says of
it is that amount and noise, and the accuracy falls by the amounts of the heads that are removed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.results import Results
from tests.chapters.paths.path_results import (
    NO_SADDLE,
    SPLITS,
    WIDTHS,
    Recorded,
    digest,
    progress,
    put,
    put_all,
    shared_columns,
)

SIMPLE = ("weight-norm", "entropy", "sensitivity")
RULES = (*SIMPLE, "random", "greedy", "bound")
SEEDS = 6
OVER = {
    "weight-norm": 0.02, "entropy": 0.02, "sensitivity": 0.02, "random": 0.04, "reverse": 0.08,
    "greedy": -0.01, "bound": -0.03,
}  # fmt: skip
"""Method -> area of theory minus that of the method."""


@dataclass(frozen=True)
class Law:
    """What is true of a made-up study.

    Attributes:
        task: omniglot or digits-one-shot.
        heads: H of each of the layers.
        layers: L.
        accuracy: of the trained networks.
        limit: accuracy of the limit minus that of the networks.
        gain: accuracy at N = 10 minus the limit's; it falls as 1 / log10 N.
        score: how well theory's scores follow the drops: 1 as well as can be, 0 not at all, -1
            the wrong way round.
        over: see `OVER`; 0 for those that are not named.
        noise: standard deviation of everything between cells of a seed.
        n: P.
        choice: of the temperature.
        lr: learning rate of the networks.
    """

    task: str = "omniglot"
    heads: int = 4
    layers: int = 2
    accuracy: float = 0.84
    limit: float = -0.05
    gain: float = 0.03
    score: float = 1.0
    over: Mapping[str, float] = field(default_factory=lambda: OVER)
    noise: float = 0.001
    n: int = 600
    choice: str = "validation"
    lr: float = 3e-4

    @property
    def total(self) -> int:
        """Number of heads."""
        return self.heads * self.layers

    @property
    def most(self) -> int:
        """Largest number of removed heads, K."""
        return self.total - self.layers


def train(results: Results, *of: Any, **given: Any) -> str:
    """Records a network, see `training`; returns the id of its cell."""
    return put(results, training(*of, **given))


def write(results: Results, *of: Any, **given: Any) -> str:
    """Records a cell that scores heads, see `scoring`; returns its id."""
    return put(results, scoring(*of, **given))


def training(
    law: Law,
    seed: int = 0,
    *,
    status: str = "done",
    test: Mapping[str, Any] | None = None,
    **columns: Any,
) -> Recorded:
    """A trained network.

    Args:
        law: what is true of it.
        seed: of everything.
        status: done, diverged or censored.
        test: other columns of its last evaluation on the test split.
        columns: other columns of its cell.
    """
    setting = _network(law)
    own = {"seed": seed, "evaluation_points": [0.5, 1.0]}
    row = {
        **shared_columns(
            "one-shot",
            setting | {"lr": law.lr, "seed": seed},
            setting,
            status,
            "loss is not finite",
        ),
        "kind": "training",
        "task": law.task,
        "n": 5_000,
        "m": 3,
        "num_classes": 2,
        "architecture": "attention-paths",
        "batch_size": 128,
        "precision": "float32",
        "paradigm": "soft",
        "schedule": f"soft lr={law.lr:g}",
        "lr": law.lr,
        "seed": seed,
        "budget_amount": 10**9,
        "budget_unit": "flops",
        "cell": json.dumps(setting | own, sort_keys=True),
        "steps": 100,
        **columns,
    }
    drops, accuracy, higher = _drops(law, seed), _accuracy(law, seed), {"train": 0.1}
    evaluations = [
        {
            **progress(row, split, count, fraction),
            "inference": "soft",
            "loss": 0.6,
            "accuracy": accuracy - 0.4 * (1 - fraction) + higher.get(split, 0.0),
            "accuracy_without_head": (accuracy - drops).tolist() if fraction == 1 else None,
            **((test or {}) if (split, fraction) == ("test", 1.0) else {}),
        }
        for fraction in (0.5, 1.0)
        for split, count in SPLITS.items()
    ]
    return row, evaluations[: None if status == "done" else len(SPLITS)]


def scoring(
    law: Law,
    method: str = "theory",
    width: float = 10.0,
    seed: int = 0,
    *,
    status: str = "done",
    temperature: float = 0.1,
    test: Mapping[str, Any] | None = None,
    **columns: Any,
) -> Recorded:
    """A cell that scores the heads of the network of a seed.

    Args:
        law: what is true of it.
        method: theory, gp or one of `RULES`.
        width: N; of gp and rules always infinite.
        seed: of its network.
        status: done or diverged.
        temperature: of those that solve.
        test: other columns of its evaluation on the test split.
        columns: other columns of its cell.
    """
    solved = method not in RULES
    width = width if method == "theory" else math.inf
    network = _network(law) | {"lr": law.lr}
    setting = {"network": network, "examples": law.n}
    whole = setting | {"method": method, "width": str(width), "seed": seed}
    of_temperature: dict[str, Any] = {}
    if solved:
        whole["choice"] = law.choice
        few = law.choice == "published" and method == "gp"  # as published, the limit has fewer
        tried = [0.02, 0.1, 1.5] if few else [0.01, 0.02, 0.1, 1.0, 1.5]
        of_temperature = {
            "temperature": temperature,
            "temperature_choice": law.choice,
            "temperatures": [temperature] if law.choice == "fixed" else tried,
        }
    rng = np.random.default_rng([seed, round(min(width, 1e6)), *method.encode()])
    scores = _scores(law, seed, rng) if method in ("theory", *SIMPLE) else None
    row = {
        **shared_columns("one-shot", whole, setting, status, NO_SADDLE),
        "kind": "heads",
        "task": law.task,
        "n": law.n,
        "precision": "float64",
        "seed": seed,
        "network": digest(network | {"seed": seed})[:16],
        "method": method,
        "network_width": width,
        "heads": "/".join([str(law.heads)] * law.layers),
        "cell": json.dumps(whole | {"evaluation_points": [1.0]}, sort_keys=True),
        "steps": 50,
        "head_scores": None if scores is None else scores.tolist(),
        "removal_order": None if scores is None else np.argsort(scores)[: law.most].tolist(),
        **of_temperature,
        **(_solution(law, width, seed) if solved else {}),
        **columns,
    }
    accuracy = _accuracy(law, seed)
    if solved:
        accuracy += law.limit + (law.gain / math.log10(width) if width < math.inf else 0.0)
        accuracy += rng.normal(0, law.noise)
    orders = {"accuracy_pruned": method} if method != "gp" else {}
    if method not in ("gp", "random", "bound"):
        orders["accuracy_pruned_reverse"] = "reverse"
    curves = {
        name: _curve(law, seed, law.over.get(of, 0.0), rng).tolist() for name, of in orders.items()
    }
    evaluations = [
        {
            **progress(row, split, count),
            "loss": 0.6,
            "accuracy": accuracy,
            **(_predictor(seed, width, accuracy, count) if solved else {}),
            **curves,
            **((test or {}) if split == "test" else {}),
        }
        for split, count in SPLITS.items()
    ]
    return row, evaluations if status == "done" else []


def write_study(
    results: Results,
    law: Law,
    seeds: int = SEEDS,
    *,
    widths: Sequence[float] = WIDTHS,
    rules: Sequence[str] = RULES,
    limit: bool = True,
    trained: bool = True,
) -> None:
    """A whole study in one file: networks, theory at all widths, the limit and rules."""
    asked = [("theory", width) for width in widths]
    asked += [(method, math.inf) for method in (*(["gp"] if limit else []), *rules)]
    made = [training(law, seed) for seed in range(seeds if trained else 0)]
    made += [scoring(law, *each, seed) for seed in range(seeds) for each in asked]
    put_all(results, made)


def _accuracy(law: Law, seed: int) -> float:
    return float(law.accuracy + np.random.default_rng(seed).normal(0, 0.01))


def _drops(law: Law, seed: int) -> NDArray[np.float64]:
    """(heads,) what the accuracy loses without each head: 0 to 9 points in an order of its own."""
    return np.random.default_rng([seed, 1]).permutation(np.linspace(0, 0.09, law.total))


def _scores(law: Law, seed: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(heads,) in (0, 1], the largest is 1."""
    ranks = law.score * _drops(law, seed) / 0.09
    ranks = ranks + rng.normal(0, law.noise + 3 * (law.score == 0), law.total)
    positive = ranks - ranks.min() + 0.1
    return np.asarray(positive / positive.max())


def _curve(law: Law, seed: int, behind: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """(K + 1,) accuracies whose mean is `behind` below that of theory's order."""
    counts = np.arange(law.most + 1) / law.most
    falling = _accuracy(law, seed) - 0.25 * counts**2
    # Nothing is lost without heads removed; the mean over counts of 2 k / K is 1.
    return falling - 2 * (behind + rng.normal(0, law.noise)) * counts


def _predictor(seed: int, width: float, accuracy: float, count: int) -> dict[str, Any]:
    shared = np.random.default_rng([seed, 2])
    limit, away = shared.standard_normal((2, count))
    mean = limit + (5 / width if width < math.inf else 0.0) * away
    return {
        "accuracy_diagonal": accuracy - 0.01 * (width < math.inf),
        "predictor_mean": mean.tolist(),
        "predictor_variance": [0.1] * count,
    }


def _solution(law: Law, width: float, seed: int) -> dict[str, Any]:
    paths = [*np.ndindex(*[law.heads] * law.layers)]
    size, near = len(paths), 1 / width if width < math.inf else 0.0
    vectors = np.random.default_rng([seed, 3]).standard_normal((size, 3))
    order = np.eye(size) + 10 * near * vectors @ vectors.T
    overlaps = 0.3 / np.sqrt(np.arange(1, 61))
    overlaps[0] += 4 * near
    return {
        "path_names": [",".join(str(head + 1) for head in path) for path in paths],
        "order_parameter": order.ravel().tolist(),
        "overlaps": overlaps.tolist(),
        "residual": 1e-12,
    }


def _network(law: Law) -> dict[str, Any]:
    """What the networks of a study share, as the JSON of their cells has it."""
    sizes = {"d_model": 512, "layers": law.layers, "heads": law.heads, "qk": 128, "patch": 8}
    return {"task": law.task, "n": 5_000, "pixels": 32, "transformer": sizes}
