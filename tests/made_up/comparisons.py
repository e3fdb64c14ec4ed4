"""Results directories with chosen numbers, written as a study writes them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import analysis
from analysis.digest.compare import Comparison, compare_results
from study.cell import Budget, Cell, Schedule
from study.cell.events import Instances
from study.results import Results, cell_columns
from study.tasks import modality
from tests.made_up.cells import cell_of

Row = dict[str, Any]

BUDGET = 1_000_000
POINTS = (0.25, 0.5, 0.75, 1.0)
SPLITS = ("train", "validation", "test")
NUM_CLASSES = 4
OF_KNOWN = ("saif", "foreground_attention_mean", "ftpt", "ffpt", "ftpf", "ffpf", "heatmap")
"""Columns that are missing where no foreground is known."""


def make_results(path: Path) -> Results:
    """An empty results directory."""
    results = Results(path)
    results.prepare()
    return results


def compared(results: Results, **question: Any) -> Comparison:
    """The only comparison of a directory."""
    (found,) = compare_results(results, **question)
    return found


def at_the_cut(results: Results, *args: Any, **how: Any) -> pd.DataFrame:
    """What a directory holds, at equal compute."""
    return analysis.equal_compute(analysis.load(results), *args, **how)


def make_cell(
    paradigm: str = "soft",
    lr: float = 0.1,
    seed: int = 0,
    *,
    last_lr: float = 0.05,
    switch_point: float = 0.5,
    **settings: Any,
) -> Cell:
    """A cell of the digits task; `settings` are fields of `Cell`."""
    if paradigm == "hybrid":
        schedule = Schedule.hybrid(lr, last_lr, switch_point)
    else:
        schedule = Schedule.single(paradigm, lr)
    defaults: dict[str, Any] = {
        "task": "digits",
        "data_digest": "0123456789abcdef",
        "m": 10,
        "n": 2_000,
        "architecture": "mlp",
        "batch_size": 64,
        "budget": Budget(BUDGET),
        "evaluation_points": POINTS,
    }
    return cell_of(**(defaults | {"schedule": schedule} | settings), seed=seed)


def write(
    results: Results,
    cell: Cell,
    accuracy: float = 0.9,
    saif: float = 0.5,
    loss: float = 0.3,
    *,
    status: str = "done",
    points: Sequence[float] | None = None,
    by_split: Mapping[str, Mapping[str, float]] | None = None,
    study: str = "digits",
    seconds: float = 2.5,
    mosaics: int = 6_400,
    shares: Mapping[str, float] | None = None,
    examples: str | None = None,
    base_images: NDArray[np.int64] | None = None,
    labels: Sequence[str] | None = None,
    bits: Mapping[str, bytes] | None = None,
    further: Callable[[Row], Row] | None = None,
    **columns: Any,
) -> Cell:
    """Records a cell whose scores at the last point are those given; before, they grow linearly.

    Args:
        results: the directory.
        cell: what was run.
        accuracy: fraction, on every split.
        saif: fraction, on every split.
        loss: nats, on every split and at every point.
        status: done, diverged or censored.
        points: budget fractions that were evaluated, by default all of the cell's.
        by_split: other scores of single splits, e.g. ``{"test": {"saif": 0.7}}``.
        study: name of the study.
        seconds: measured training time of the whole cell.
        mosaics: seen in training by the whole cell.
        shares: of the instances of a split whose foreground is known, by default not recorded.
        examples: of the last evaluation on the test split.
        base_images, labels: of the instances whose bits are given.
        bits: of the last evaluation on the test split.
        further: an evaluation, with two cells in its heat map -> other columns of it.
        columns: other columns of the cell's row.
    """
    points = cell.evaluation_points if points is None else points
    evaluations = []
    for fraction in points:
        for split in SPLITS:
            scores = {"accuracy": accuracy, "saif": saif, "loss": loss}
            scores |= (by_split or {}).get(split, {})
            scores["accuracy"] *= fraction
            scores["saif"] *= fraction
            progress = {
                "train_seconds": seconds * fraction,
                "mosaics_seen": int(mosaics * fraction),
            }
            evaluation = _evaluation(cell, fraction, split, scores) | progress
            if shares is not None:
                evaluation |= _known_foreground(shares[split])
            if split == "test" and fraction == 1:
                evaluation |= {"examples": examples, **(bits or {})}
            evaluations.append(evaluation | (further(evaluation) if further else {}))
    row = {
        "study": study,
        "kind": "training",
        **cell_columns(cell),
        "num_classes": NUM_CLASSES,
        "status": status,
        "status_reason": "" if status == "done" else "loss is not finite",
        "steps": 100,
        "total_train_seconds": seconds,
        "total_evaluate_seconds": 0.5,
        "total_seconds": 3.5,
        "device": "cpu",
        "threads": 1,
        "pack": 1,
        "micro_batch": 64,
        "shared_prefix": False,
        "code_version": "1a2b3c4",
        "package_versions": '{"numpy": "2.4.6", "torch": "2.15.0"}',
        "finished_at": f"2026-01-01T00:00:{cell.seed:02d}+00:00",
    }
    held = None
    if base_images is not None:
        held = Instances(base_images, None if labels is None else np.array(labels))
    results.write_cell(row | columns, evaluations, held)
    return cell


def write_comparisons(results: Results) -> None:
    """Two settings; in one of them options, a diverged and a censored cell."""
    for paradigm in ("lvml", "soft", "hybrid"):
        for seed in range(2):
            score = 0.5 + len(paradigm) / 30 + seed / 7
            write(results, make_cell(paradigm, seed=seed), score, score / 3)
    write(results, make_cell(m=5))
    write(results, make_cell(lr=0.3), status="diverged", points=(0.25,))
    write(results, make_cell(lr=0.4), status="censored", points=(0.25,))


def write_seeds(
    results: Results, saif: Mapping[str, float], seeds: int = 2, **settings: Any
) -> None:
    """Records seeds of some paradigms, one option each; a seed has a hundredth more than the last.

    Args:
        results: the directory.
        saif: paradigm -> SAIF of its first seed.
        seeds: how many.
        settings: fields of their cells.
    """
    for (paradigm, score), seed in itertools.product(saif.items(), range(seeds)):
        write(results, make_cell(paradigm, seed=seed, **settings), 0.8, score + seed / 100)


def _evaluation(cell: Cell, fraction: float, split: str, scores: Mapping[str, float]) -> Row:
    saif, accuracy = scores["saif"], scores["accuracy"]
    bins = len(modality(cell.task).heatmap_edges) - 1
    heatmap = np.zeros((bins, bins))
    heatmap[-1, -1] = saif
    heatmap[0, bins // 2] = 1 - saif
    return {
        "cell_id": cell.id,
        "step": int(100 * fraction),
        "budget_fraction": fraction,
        # A training step never ends exactly on the target.
        "compute_flops": max(0, int(cell.budget.amount * fraction) - 1),
        "split": split,
        "inference": cell.schedule.phases[-1].paradigm,
        "num_evaluated": 1_000,
        "loss": scores["loss"],
        "accuracy": accuracy,
        "saif": saif,
        "foreground_attention_mean": saif,
        "ftpt": saif * accuracy,
        "ffpt": (1 - saif) * accuracy,
        "ftpf": saif * (1 - accuracy),
        "ffpf": (1 - saif) * (1 - accuracy),
        "heatmap": heatmap.ravel().tolist(),
    }


def _known_foreground(share: float) -> Row:
    """Without any instance whose foreground is known, what is of them is missing."""
    return {"foreground_share": share, **(dict.fromkeys(OF_KNOWN) if share == 0 else {})}
