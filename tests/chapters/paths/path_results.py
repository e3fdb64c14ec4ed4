"""Cells of attention paths with chosen numbers, written as a study writes them.

All is made up by simple laws: accuracy falls and the mean predictor tends to the limit's as 1/N. A
seed shifts every network of its own alike, and each a little by itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, Results, cell_file

Recorded = tuple[dict[str, Any], list[dict[str, Any]]]
"""The rows of a cell and of its evaluations."""

WIDTHS = (10.0, 100.0, 1_000.0)
TEST = 40
"""Test inputs."""

SPLITS = {"train": 20, "validation": 10, "test": TEST}
PATHS: Mapping[str, Sequence[str]] = {
    "plain": ("good", "good, random", "denoising", "random, random"),
    "noisy": ("good", "denoising"),
    "own": ("first", "second"),
}
_HEADS = {
    "plain": "good+random/uniform+random",
    "noisy": "good+uniform/uniform",
    "own": "good+own/uniform",
}


@dataclass(frozen=True)
class Law:
    """What is true of a made-up study.

    Attributes:
        variant: plain, noisy or own.
        limit: accuracy of the limit with all paths.
        good: accuracy of the limit with the good path alone.
        gain: accuracy at N = 10 minus the limit's; it falls as 1 / log10 N.
        interplay: accuracy that is lost without the off-diagonal of U.
        exponent: of the distance of the mean predictor from the limit's.
        alignment: largest overlap at N = 10 minus the limit's, .3.
        sampling: by how much the sampled mean predictor is larger than theory's, a share.
        accuracy_shift: accuracy of sampled networks minus theory's.
        noise: standard deviation of everything between networks of a seed.
        n: P.
    """

    variant: str = "plain"
    limit: float = 0.82
    good: float = 0.94
    gain: float = 0.14
    interplay: float = 0.01
    exponent: float = -1.0
    alignment: float = 0.5
    sampling: float = 0.01
    accuracy_shift: float = 0.0
    noise: float = 0.001
    n: int = 100


NO_SADDLE = "the saddle's residual is 0.02"
NOISY = Law(variant="noisy", limit=0.84, good=0.56, gain=0.11, interplay=0.1)


def write(results: Results, *of: Any, **given: Any) -> str:
    """Records a network, see `solved`; returns the id of its cell."""
    return put(results, solved(*of, **given))


def put(results: Results, made: Recorded) -> str:
    """Records a cell in a file of its own; returns its id."""
    results.write_cell(*made)
    return str(made[0]["cell_id"])


def put_all(results: Results, made: Sequence[Recorded]) -> None:
    """Records cells in one file."""
    rows, evaluations = [row for row, _ in made], [each for _, mine in made for each in mine]
    cells = pa.Table.from_pylist(rows, CELLS_SCHEMA)
    held = cell_file.rows_of(cells, pa.Table.from_pylist(evaluations, EVALUATIONS_SCHEMA))
    results.write(cell_file.MERGED, held, {row["cell_id"]: row["cell"] for row in rows})


def solved(
    law: Law,
    method: str = "theory",
    width: float = 10.0,
    seed: int = 0,
    *,
    paths: str = "all",
    status: str = "done",
    r_hat: float = 1.001,
    draws: int = 1_000,
    cell: Mapping[str, Any] | None = None,
    test: Mapping[str, Any] | None = None,
) -> Recorded:
    """A network of a study, solved or sampled; `cell` and `test` are other columns of its rows.

    Args:
        law: what is true of it.
        method: theory, gp or slice.
        width: N; of gp always infinite.
        seed: of data, heads and noise.
        paths: the subnetwork.
        status: done or diverged.
        r_hat: of sampled networks.
        draws: of sampled networks.
        cell: columns of `cells` that are other than made up here.
        test: columns of the test split likewise.
    """
    width = math.inf if method == "gp" else width
    setting = {
        "kind": "posterior",
        "task": "hidden-markov",
        "variant": law.variant,
        "heads": _HEADS[law.variant],
        "n": law.n,
        "tokens": 30,
        "temperature": 0.01,
        "sigma_perp": 5.0 if law.variant == "noisy" else 1.0,
    }
    own = {"method": method, "network_width": str(width), "paths": paths, "draws": draws}
    whole = {**setting, **own, "seed": seed}
    sampled = method == "slice"
    names = PATHS[law.variant] if paths == "all" else PATHS[law.variant][: 1 + ("+" in paths)]
    made = _numbers(law, method, width, seed, paths, len(names))
    row = {
        **shared_columns("attention-paths", whole, setting, status, NO_SADDLE),
        **whole,
        "network_width": width,
        "cell": json.dumps({**whole, "evaluation_points": [1.0]}, sort_keys=True),
        "steps": draws if sampled else 50,
        "order_parameter": made.pop("order_parameter").ravel().tolist(),
        "order_parameter_error": [0.01] * len(names) ** 2 if sampled else None,
        "path_names": list(names),
        "overlaps": made.pop("overlaps").tolist(),
        "residual": None if sampled else 1e-12,
        "r_hat": r_hat if sampled else None,
        "effective_sample_size": draws / 2 if sampled else None,
        **(cell or {}),
    }
    del row["draws"]
    evaluations = [
        {
            **progress(row, split, count),
            "loss": 0.4,
            "accuracy_error": 0.002 if sampled else None,
            **made,
            "predictor_mean": made["predictor_mean"][:count].tolist(),
            "predictor_variance": [0.1] * count,
            "predictor_mean_error": [0.002] * count if sampled else None,
            **((test or {}) if split == "test" else {}),
        }
        for split, count in SPLITS.items()
    ]
    return row, evaluations if status == "done" else []


def write_study(
    results: Results,
    law: Law,
    seeds: int = 6,
    sampled: Sequence[float] = (10.0,),
    limits: Sequence[str] = ("all", "good", "good+denoising"),
    widths: Sequence[float] = WIDTHS,
) -> None:
    """A study of one variant in one file: theory at all widths, the limits, and samples.

    Args:
        results: the directory.
        law: what is true of it.
        seeds: number of seeds.
        sampled: widths of samples.
        limits: sets of paths of the limit; the noisy variant has no good+denoising.
        widths: of theory.
    """
    asked: list[tuple[str, float, str]] = [("theory", width, "all") for width in widths]
    asked += [("slice", width, "all") for width in sampled]
    asked += [
        ("gp", math.inf, paths)
        for paths in limits
        if paths != "good+denoising" or law.variant == "plain"
    ]
    made = [
        solved(law, method, width, seed, paths=paths)
        for seed in range(seeds)
        for method, width, paths in asked
    ]
    put_all(results, made)


def _numbers(
    law: Law, method: str, width: float, seed: int, paths: str, size: int
) -> dict[str, Any]:
    """Accuracies, predictor (TEST,), order parameter (size, size) and overlaps (P,)."""
    shared = np.random.default_rng(seed)
    own = np.random.default_rng([seed, round(min(width, 1e6)), size, *method.encode()])
    shift, limit = shared.normal(0, 0.01), shared.standard_normal(TEST)
    away = shared.standard_normal(TEST)
    ends = {"all": law.limit, "good": law.good}
    accuracy = ends.get(paths, law.limit + 0.13)
    near = 1 / width if math.isfinite(width) else 0.0
    sampled = method == "slice"
    if near:
        accuracy += law.gain / math.log10(width)
        limit = limit + 5 * near ** (-law.exponent) * away
    limit = limit * (1 + law.sampling * (1 + own.normal(0, 0.1))) if sampled else limit
    accuracy += shift + own.normal(0, law.noise) + law.accuracy_shift * sampled
    identity = np.eye(size)
    order: NDArray[np.float64] = identity + 30 * near * (identity - 0.5 * np.eye(size)[::-1])
    overlaps = 0.3 / np.arange(1, law.n + 1)
    overlaps[0] += law.alignment * 10 * near + own.normal(0, law.noise)
    return {
        "accuracy": accuracy,
        "accuracy_diagonal": accuracy - (law.interplay + own.normal(0, law.noise)) * bool(near),
        "predictor_mean": limit,
        "order_parameter": order,
        "overlaps": overlaps,
    }


def shared_columns(
    study: str, whole: Mapping[str, Any], setting: Mapping[str, Any], status: str, reason: str
) -> dict[str, Any]:
    """The columns of `cells` that all have; ids are digests of all that is of a cell."""
    return {
        "study": study,
        "cell_id": digest(whole)[:16],
        "comparison_id": digest(setting),
        "data_digest": "0123456789abcdef",
        "status": status,
        "status_reason": "" if status == "done" else reason,
        "total_train_seconds": 0.5,
        "total_evaluate_seconds": 0.1,
        "total_seconds": 0.7,
        "device": "cpu",
        "threads": 1,
        "code_version": "1a2b3c4",
        "package_versions": '{"numpy": "2.4.6"}',
        "finished_at": "2026-01-01T00:00:00+00:00",
    }


def progress(
    row: Mapping[str, Any], split: str, count: int, fraction: float = 1.0
) -> dict[str, Any]:
    """The columns of an evaluation that all have."""
    return {
        "cell_id": row["cell_id"],
        "step": round(fraction * row["steps"]),
        "mosaics_seen": 0,
        "budget_fraction": fraction,
        "compute_flops": round(fraction * 10**9),
        "train_seconds": 0.5,
        "split": split,
        "num_evaluated": count,
    }


def digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()
