"""Results directories with chosen numbers, written as a study writes them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import analysis
from analysis.comparison.compare import Comparison, compare_results
from study.cell import Budget, Cell, Schedule
from study.results import Results, cell_columns
from study.tasks import modality
from tests.made_up.cells import cell_of

BUDGET = 1_000_000
POINTS = (0.25, 0.5, 0.75, 1.0)
SPLITS = ("train", "validation", "test")
NUM_CLASSES = 4
OF_KNOWN = (
    "saif", "foreground_attention_mean", "ftpt", "ffpt", "ftpf", "ffpf", "heatmap", "token_f1",
    "iou_f1", "auprc",
)  # fmt: skip
"""Columns that are missing where no foreground is known."""


def make_results(path: Path) -> Results:
    """An empty results directory."""
    results = Results(path)
    results.prepare()
    return results


SHARES = {"train": 0.0, "validation": 0.58, "test": 0.594}
"""Of posts with a rationale, as in the data at hand."""

NOTES = "A vocabulary of 9 words covers 90 % of the test tokens.\n12 posts were left out."


def compared(results: Results, **question: Any) -> Comparison:
    """The only comparison of a directory."""
    (found,) = compare_results(results, **question)
    return found


def at_the_cut(results: Results, *args: Any, **how: Any) -> pd.DataFrame:
    """What a directory holds, at equal compute."""
    return analysis.equal_compute(analysis.load(results), *args, **how)


def make_text_cell(
    paradigm: str = "soft", lr: float = 0.1, seed: int = 0, **settings: Any
) -> Cell:
    """A cell of the hatexplain task; `settings` as for `make_cell`."""
    defaults: dict[str, Any] = {
        "task": "hatexplain",
        "m": 64,
        "n": 15_000,
        "architecture": "embedding",
        "label_rule": "majority",
        "rationale_rule": "majority",
        "min_count": 2,
    }
    return make_cell(paradigm, lr, seed, **(defaults | settings))


def write_text(results: Results, cell: Cell, *args: float, **columns: Any) -> Cell:
    """As `write`, of posts of which not all have a rationale."""
    return write(
        results,
        cell,
        *args,
        **({"study": "hatexplain", "shares": SHARES, "data_notes": NOTES} | columns),
    )


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
    curves: Mapping[str, Sequence[float]] | None = None,
    shares: Mapping[str, float] | None = None,
    examples: str | None = None,
    heatmap: Sequence[float] | None = None,
    base_images: NDArray[np.int64] | None = None,
    bits: Mapping[str, bytes] | None = None,
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
        curves: columns of the evaluations on the train split, a number a point; `flow_time` is
            given to all splits.
        shares: of the instances of a split whose foreground is known, by default not recorded.
            Of posts, token F1 is SAIF, IOU F1 half and AUPRC a third of it.
        examples: of the last evaluation on the test split.
        heatmap: of every evaluation, row by row; by default it has two cells, SAIF and the rest.
        base_images: of the instances whose bits are given.
        bits: of the last evaluation on the test split.
        columns: other columns of the cell's row.
    """
    points = cell.evaluation_points if points is None else points
    evaluations = []
    for place, fraction in enumerate(points):
        at_point = {name: values[place] for name, values in (curves or {}).items()}
        for split in SPLITS:
            scores = {"accuracy": accuracy, "saif": saif, "loss": loss}
            scores |= (by_split or {}).get(split, {})
            scores["accuracy"] *= fraction
            scores["saif"] *= fraction
            progress = {
                "train_seconds": seconds * fraction,
                "mosaics_seen": int(mosaics * fraction),
            }
            of_split = at_point if split == "train" else {}
            if "flow_time" in at_point:
                of_split = of_split | {"flow_time": at_point["flow_time"]}
            if shares is not None:
                known = _known_foreground(cell, scores["saif"], shares[split])
                of_split = of_split | known
            if cell.settings is not None:
                of_split = of_split | _of_caption(scores["accuracy"])
            evaluations.append(_evaluation(cell, fraction, split, scores) | progress | of_split)
            if heatmap is not None:
                evaluations[-1]["heatmap"] = heatmap
            if split == "test" and fraction == 1:
                evaluations[-1] |= {"examples": examples, **(bits or {})}
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
    results.write_cell(row | columns, evaluations, base_images)
    return cell


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


def _evaluation(
    cell: Cell, fraction: float, split: str, scores: Mapping[str, float]
) -> dict[str, Any]:
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


def _known_foreground(cell: Cell, saif: float, share: float) -> dict[str, Any]:
    """Without any instance whose foreground is known, what is of them is missing."""
    known: dict[str, Any] = {"foreground_share": share}
    if share == 0:
        known |= dict.fromkeys(OF_KNOWN)
    elif "label_rule" in cell.options:
        known |= {"token_f1": saif, "iou_f1": saif / 2, "auprc": saif / 3}
    return known


def _of_caption(bleu: float) -> dict[str, float]:
    """Bleu-1 to Bleu-3 are 4, 3 and 2 times Bleu-4, CIDEr 5 times."""
    bleus = {f"bleu_{n}": (5 - n) * bleu for n in (1, 2, 3, 4)}
    return bleus | {"cider": 5 * bleu, "caption_length": 9.0}
