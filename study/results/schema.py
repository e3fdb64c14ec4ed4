"""The columns of the two tables of a results directory."""

from __future__ import annotations

import json
from typing import Any, Literal

import pyarrow as pa

from study.cell.any_cell import AnyCell

SCHEMA_VERSION = 9
"""Of the files that are written and read."""

_METRICS = {
    "loss": pa.float64(),
    "accuracy": pa.float64(),
    "saif": pa.float64(),
    "foreground_attention_mean": pa.float64(),
    "ftpt": pa.float64(),
    "ffpt": pa.float64(),
    "ftpf": pa.float64(),
    "ffpf": pa.float64(),
}
METRICS = tuple(_METRICS)
"""Metric columns of an evaluation. All but `loss` (nats) are fractions in [0, 1]; the last four
are shares of (argmax focus true/false) x (prediction true/false)."""

_DYNAMICS = {
    "incentive": pa.float64(),
    "incentive_slope": pa.float64(),
    "mu": pa.float64(),
    "nu": pa.float64(),
    "flow_time": pa.float64(),
}
DYNAMICS = tuple(_DYNAMICS)
"""Columns of an evaluation that only some cells have; missing for the others.

`incentive` and `incentive_slope`: of train splits if alpha is held, see `study.paradigms.held`.
`mu`, `nu`, `flow_time`: of linear models, see `study.models.linear`."""

_RATIONALES = {
    "foreground_share": pa.float64(),
    "token_f1": pa.float64(),
    "iou_f1": pa.float64(),
    "auprc": pa.float64(),
}
_CAPTIONS = {
    "bleu_1": pa.float64(),
    "bleu_2": pa.float64(),
    "bleu_3": pa.float64(),
    "bleu_4": pa.float64(),
    "cider": pa.float64(),
    "caption_length": pa.float64(),
}
FURTHER = tuple(_RATIONALES | _CAPTIONS)
"""Columns of an evaluation that only some modalities have.

`foreground_share` is the share of the instances whose foreground is known, 1 for mosaics. SAIF,
heat map, `foreground_attention_mean` and `ftpt` to `ffpf` are of these instances, and missing if
there are none. `token_f1`, `iou_f1` (which may exceed 1) and `auprc` are of posts, see
`study.evaluate.plausibility`; the others of captions: `bleu_1` to `bleu_4`, fractions, `cider`,
with its own scale, and the mean number of words."""

_IMAGES = dict.fromkeys(
    ("image_count", "image_right", "image_known", "image_saif"), pa.list_(pa.int32())
)
IMAGES = tuple(_IMAGES)
"""Columns of the last evaluation on the test split: counts of each base image of the foreground.

An image is a base image of mosaics, a post, or a captioned image. A list has an entry for each
image that occurs, in the order of the split's images, which is that of all cells of a comparison.
`image_count`: its instances; `image_right`: those classified right, missing of captions, whose
score is no share; `image_known`: those whose foreground is known; `image_saif`: those in SAIF. So
accuracy is sum(image_right) / sum(image_count), and SAIF is sum(image_saif) / sum(image_known).
All are missing if the cell was stopped before the end of its budget."""

_PREDICTOR = {
    "accuracy_error": pa.float64(),
    "accuracy_diagonal": pa.float64(),
    "predictor_mean": pa.list_(pa.float64()),
    "predictor_variance": pa.list_(pa.float64()),
    "predictor_mean_error": pa.list_(pa.float64()),
}
"""Columns of an evaluation of cells that solve and sample (`study.posterior`).

`predictor_mean` and `predictor_variance` have a number for each input of the split.
`accuracy_diagonal` is the accuracy without the terms between different paths. The errors are
standard errors of Monte Carlo, missing where nothing was sampled."""

_PRUNED = dict.fromkeys(
    ("accuracy_without_head", "accuracy_pruned", "accuracy_pruned_reverse"),
    pa.list_(pa.float64()),
)
PRUNED = tuple(_PRUNED)
"""Columns of an evaluation of a trained network whose heads are removed (`study.heads`).

`accuracy_without_head` has an entry for each head, layer by layer: the accuracy without that head
alone. `accuracy_pruned` has the accuracy without the first k heads of the cell's `removal_order`,
for k = 0, 1, ... until each layer has one head left; `accuracy_pruned_reverse` that of the reverse
order. Where a rule names no order, they are means of many orders, or the best of all subsets."""

_NETWORK = {
    "method": pa.string(),
    "variant": pa.string(),
    "heads": pa.string(),
    "paths": pa.string(),
    "network_width": pa.float64(),
    "temperature": pa.float64(),
    "sigma_perp": pa.float64(),
    "tokens": pa.int64(),
    "draws": pa.int64(),
    "warmup": pa.int64(),
    "thin": pa.int64(),
    "chains": pa.int64(),
}
NETWORK = tuple(_NETWORK)
"""Columns of a cell that solves or samples, see `study.posterior.cell.PosteriorCell`; some also of
one that scores heads (`study.heads.cell.HeadsCell`)."""

_HEADS = {
    "network": pa.string(),
    "network_digest": pa.string(),
    "temperature_choice": pa.string(),
    "temperatures": pa.list_(pa.float64()),
    "head_scores": pa.list_(pa.float64()),
    "removal_order": pa.list_(pa.int32()),
}
HEADS = tuple(_HEADS)
"""Columns of a cell that scores the heads of a trained network, see `study.heads.cell.HeadsCell`.

`network` is the id of the cell that trained it; `network_digest` stands for its weights, and is
also of that cell. `temperatures` are those that were tried. `head_scores` has a score for each
head, layer by layer, the higher the more it matters; `removal_order` has the heads, counted
through all layers, in the order in which they are removed. Both are missing where a rule gives
none."""

_CAPTIONING = {
    "encoder": pa.string(),
    "optimiser": pa.string(),
    "encoder_lr": pa.float64(),
    "teacher_forcing": pa.float64(),
}

CAPTIONING = tuple(_CAPTIONING)
"""Columns of a cell that writes captions. The optimiser and the encoder's learning rate (missing:
it is frozen) are the first phase's; teacher forcing is the least of all phases."""

_SOLUTION = {
    "path_names": pa.list_(pa.string()),
    "order_parameter": pa.list_(pa.float64()),
    "order_parameter_error": pa.list_(pa.float64()),
    "overlaps": pa.list_(pa.float64()),
    "residual": pa.float64(),
    "r_hat": pa.float64(),
    "effective_sample_size": pa.float64(),
}
SOLUTION = tuple(_SOLUTION)
"""Columns of a cell that solves or samples: what it found.

`order_parameter` is U, row by row, with rows and columns of `path_names`; its error is the
standard error of Monte Carlo. `overlaps` are cosines between the training labels and the principal
components of the kernel, by falling eigenvalue, without sign. `residual` says how far the solution
is from a stationary point. Of sampled numbers, `r_hat` is the largest and `effective_sample_size`
the smallest."""

CELLS_SCHEMA = pa.schema(
    {
        "study": pa.string(),
        "kind": pa.string(),
        "cell_id": pa.string(),
        "comparison_id": pa.string(),
        "task": pa.string(),
        "data_digest": pa.string(),
        "num_classes": pa.int64(),
        "split_scheme": pa.string(),
        "label_rule": pa.string(),
        "rationale_rule": pa.string(),
        "min_count": pa.int64(),
        "data_notes": pa.string(),
        "m": pa.int64(),
        "n": pa.int64(),
        "architecture": pa.string(),
        "batch_size": pa.int64(),
        "precision": pa.string(),
        "alpha": pa.float64(),
        "paradigm": pa.string(),
        "schedule": pa.string(),
        "lr": pa.float64(),
        "last_lr": pa.float64(),
        "switch_point": pa.float64(),
        "seed": pa.int64(),
        "stage": pa.string(),
        "budget_amount": pa.int64(),
        "budget_unit": pa.string(),
        **_NETWORK,
        **_CAPTIONING,
        "cell": pa.string(),
        "status": pa.string(),
        "status_reason": pa.string(),
        "steps": pa.int64(),
        "total_train_seconds": pa.float64(),
        "total_evaluate_seconds": pa.float64(),
        "total_seconds": pa.float64(),
        "device": pa.string(),
        "threads": pa.int64(),
        "pack": pa.int64(),
        "micro_batch": pa.int64(),
        "shared_prefix": pa.bool_(),
        **_SOLUTION,
        **_HEADS,
        "code_version": pa.string(),
        "package_versions": pa.string(),
        "finished_at": pa.string(),
    }
)
"""`kind` is a name of `study.kinds.KINDS`, or `RECORDED`; columns of other kinds are missing.
`schedule` is text for people, `cell` the JSON of the cell. `alpha` is the attention held on the
foreground, missing if the focus was trained. `last_lr` is the last phase's learning rate. `status`
is done, diverged or censored (stopped early by a scheduler). `label_rule` and `rationale_rule` are
of posts, `min_count` also of captions (`study.cell.Cell`). `stage` is tune (options are tried) or
confirm (the chosen option is tried on fresh seeds), missing where a study has one stage.
`data_notes` are sentences about the data for people, one a line, missing for mosaics.
`total_seconds` is the wall time from the cell's start to its record, `total_train_seconds` that of
its training steps; of a packed cell, both are those of the whole pack."""

EVALUATIONS_SCHEMA = pa.schema(
    {
        "cell_id": pa.string(),
        "step": pa.int64(),
        "mosaics_seen": pa.int64(),
        "budget_fraction": pa.float64(),
        "compute_flops": pa.int64(),
        "train_seconds": pa.float64(),
        "split": pa.string(),
        "inference": pa.string(),
        "num_evaluated": pa.int64(),
        **_METRICS,
        **_RATIONALES,
        **_DYNAMICS,
        "heatmap": pa.list_(pa.float64()),
        **_IMAGES,
        **_PREDICTOR,
        **_CAPTIONS,
        "examples": pa.string(),
        **_PRUNED,
        "measures": pa.string(),
    }
)
"""`budget_fraction` is the target, `compute_flops` the exact training FLOPs spent. `train_seconds`
are those of the whole pack. `heatmap` is the heat map row by row, axis 0 the foreground attention,
5 x 5, of captions 3 x 3. `inference` names the paradigm whose formula made the predictions.
`examples` are some captions of the test split at the end, as
`study.evaluate.caption_image.examples_of` reads them. `measures` is of recorded runs alone: the
JSON of their measures of other names, name -> fraction in [0, 1]."""

SPLITS = ("train", "validation", "test")
"""An evaluation has a row for each split."""

Table = Literal["cells", "evaluations"]
SCHEMAS: dict[Table, pa.Schema] = {"cells": CELLS_SCHEMA, "evaluations": EVALUATIONS_SCHEMA}


def cell_columns(cell: AnyCell) -> dict[str, Any]:
    """The columns of `CELLS_SCHEMA` that follow from the cell alone."""
    return {
        "cell_id": cell.id,
        "comparison_id": cell.comparison_id,
        "task": cell.task,
        "data_digest": cell.data_digest,
        "n": cell.n,
        "precision": cell.precision,
        "seed": cell.seed,
        "cell": json.dumps(cell.to_dict(), sort_keys=True),
        **cell.columns,
    }
