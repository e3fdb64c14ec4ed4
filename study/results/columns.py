"""The columns of results, each declared once: its type and what it means.

A file has one row an (evaluation, split), with the columns of the cell repeated. What a cell is
set up with is declared where its field is, see `study.cell.declared`. docs/results.md shows them,
as `as_markdown` gives them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import pyarrow as pa

from study import tasks
from study.cell import AnyCell, Cell
from study.cell.declared import Axis, Name, Number, Text, Whole, axes_of
from study.posterior.posterior_cell import PosteriorCell

_TEXT, _WHOLE, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TEXTS, _WHOLES, _NUMBERS = pa.list_(_TEXT), pa.list_(pa.int32()), pa.list_(_NUMBER)
_BITS = pa.binary()
_IN_WORDS = {
    _TEXT: "text", _WHOLE: "whole number", _NUMBER: "number", _FLAG: "yes or no",
    _TEXTS: "texts", _WHOLES: "whole numbers", _NUMBERS: "numbers",
    _BITS: "bits",
}  # fmt: skip

Columns = Mapping[str, tuple[pa.DataType, str]]
"""Name -> type, and meaning in Markdown."""


def _declared(axes: Mapping[str, Axis]) -> Columns:
    """The columns that axes declare."""
    of = {Whole: _WHOLE, Number: _NUMBER, Name: _TEXT, Text: _TEXT}
    return {
        axis.named or name: (of[type(axis.takes)], axis.column)
        for name, axis in axes.items()
        if axis.column
    }


TRAINED: Columns = _declared(axes_of(Cell))
"""What cells that train declare."""

OF_DATA: Columns = {
    name: column
    for task in tasks.OWN
    for name, column in _declared(tasks.TASKS[task].options).items()
}
"""What the project's tasks declare of their data, see `study.tasks.task.Declaration`. Options of
tasks from outside are in the JSON of cells alone, as not all that read results know them."""

NETWORK: Columns = {
    **_declared(axes_of(PosteriorCell)),
    "network_width": (_NUMBER, axes_of(PosteriorCell)["width"].column),  # it may be infinite
    "variant": (_TEXT, "of the theory"),
}
"""Of a cell that solves or samples, see `study.posterior.posterior_cell.PosteriorCell`; some also
of one that scores heads (`study.heads.heads_cell.HeadsCell`)."""

CAPTIONING: Columns = {
    "optimiser": (_TEXT, "of the first phase"),
    "encoder_lr": (_NUMBER, "the encoder's learning rate in the first phase; missing: frozen"),
    "teacher_forcing": (_NUMBER, "the least of all phases"),
}
"""Of a cell that writes captions."""

SOLUTION: Columns = {
    "path_names": (_TEXTS, "names of the rows and columns of U"),
    "order_parameter": (_NUMBERS, "U, row by row"),
    "order_parameter_error": (_NUMBERS, "its Monte Carlo standard error"),
    "overlaps": (
        _NUMBERS,
        "absolute cosines between the training labels and the principal components of the "
        "kernel, by falling eigenvalue",
    ),
    "residual": (_NUMBER, "how far the solution is from a stationary point"),
    "r_hat": (_NUMBER, "how well the chains agree: the largest over all sampled numbers"),
    "effective_sample_size": (_NUMBER, "the smallest over all sampled numbers"),
}
"""Of a cell that solves or samples: what it found."""

HEADS: Columns = {
    "network": (_TEXT, "id of the cell that trained the network, `networks/<id>.safetensors`"),
    "network_digest": (_TEXT, "of its weights; also of a cell whose own network was kept"),
    "temperature_choice": (_TEXT, "how the temperature was chosen"),
    "temperatures": (_NUMBERS, "the candidates"),
    "head_scores": (_NUMBERS, "layer by layer; the higher, the more a head matters"),
    "removal_order": (
        _WHOLES,
        "the heads, numbered from 0 through all layers, in the order of their removal; missing, "
        "like the scores, where a rule gives none",
    ),
}
"""Of a cell that scores the heads of a trained network, see `study.heads.heads_cell.HeadsCell`."""

_FOCUS_AND_PREDICTION = (
    _NUMBER,
    "share with the focus (the argmax of the attention) true (`ft`) or false (`ff`) and the "
    "prediction true (`pt`) or false (`pf`)",
)
METRICS: Columns = {
    "loss": (_NUMBER, "nats; of one-shot images the squared error, of captions of all words"),
    "accuracy": (_NUMBER, "share of the instances classified right; of captions `bleu_4`"),
    "saif": (_NUMBER, "share with attention and prediction in the right place"),
    "foreground_attention_mean": (_NUMBER, "mean attention on the foreground"),
    **dict.fromkeys(("ftpt", "ffpt", "ftpf", "ffpf"), _FOCUS_AND_PREDICTION),
}
"""Of an evaluation. All but `loss` are fractions in [0, 1]."""

_KNOWN: Columns = {
    "foreground_share": (
        _NUMBER,
        "share whose foreground is known; SAIF, heat map, `foreground_attention_mean` and `ftpt` "
        "to `ffpf` cover these alone, and are missing if there are none",
    ),
}
_PLAUSIBILITY = (
    _NUMBER,
    "of texts: [plausibility](hatexplain.md#what-is-measured); `iou_f1` may exceed 1",
)
_RATIONALES: Columns = dict.fromkeys(("token_f1", "iou_f1", "auprc"), _PLAUSIBILITY)
_BLEU = (_NUMBER, "[Bleu-1 to Bleu-4](captions.md#what-is-measured)")
_CAPTIONS: Columns = {
    **dict.fromkeys([f"bleu_{n}" for n in (1, 2, 3, 4)], _BLEU),
    "cider": (_NUMBER, "CIDEr, on its own scale"),
    "caption_length": (_NUMBER, "mean number of words"),
}
FURTHER: Columns = {**_KNOWN, **_RATIONALES, **_CAPTIONS}
"""Measures of an evaluation that some modalities have."""

_IN_THEORY = (
    _NUMBER,
    "of linear models: place and time in the [theory](dynamics.md#the-setting-solved)",
)
DYNAMICS: Columns = {
    "incentive": (_NUMBER, "where alpha is held: what a better focus would gain"),
    "incentive_slope": (_NUMBER, "its slope"),
    **dict.fromkeys(("mu", "nu", "flow_time"), _IN_THEORY),
}
"""Of an evaluation of cells whose attention is held (`study.paradigms.held`), or that are linear
(`study.models.linear`)."""

INSTANCES: Columns = {
    "instances": (
        _TEXT,
        "name of a file in `instances/`, which says what base images each holds; missing for "
        "mosaics with several foreground images",
    ),
    "instance_right": (_BITS, "those classified right; not of captions, whose score is no share"),
    "instance_known": (_BITS, "those whose foreground is known"),
    "instance_saif": (_BITS, "those in SAIF"),
}
"""Of the last evaluation on the test split of a cell that ended: a bit an instance, as
`numpy.packbits` gives them, in the order of the file."""

PREDICTOR: Columns = {
    "accuracy_error": (_NUMBER, "Monte Carlo standard error"),
    "accuracy_diagonal": (_NUMBER, "accuracy without the terms between different paths"),
    "predictor_mean": (_NUMBERS, "mean of the output for each input"),
    "predictor_variance": (_NUMBERS, "variance of the output for each input"),
    "predictor_mean_error": (_NUMBERS, "Monte Carlo standard error of the mean"),
}
"""Of an evaluation of cells that solve and sample (`study.posterior`)."""

_EXAMPLES: Columns = {
    "examples": (
        _TEXT,
        "JSON: some inputs and the attention on their segments, for captions at each word; in "
        "the last row of the test split",
    ),
}
"""Of the last evaluation on the test split, see `study.evaluate.examples`."""

PRUNED: Columns = {
    "accuracy_without_head": (_NUMBERS, "accuracy without each head alone, layer by layer"),
    "accuracy_pruned": (
        _NUMBERS,
        "accuracy without the first k heads of `removal_order`, k = 0, 1, ..., until each layer "
        "has one left; without an order the mean of many, or the best of all subsets",
    ),
    "accuracy_pruned_reverse": (_NUMBERS, "the same in reverse order"),
}
"""Of an evaluation of a trained network whose heads are removed (`study.heads`)."""

_RECORDED: Columns = {
    "measures": (_TEXT, "of recorded runs, JSON: name of a further measure -> fraction in [0, 1]"),
}

GIVEN_UP: Columns = {
    "given_up_at": (
        _TEXT,
        "when an earlier command had given it up; a verdict that was due then does not count it",
    ),
}
"""Of a cell that failed before it was run to its end."""

_OF_CELLS: Mapping[str, Columns] = {
    "The cell": {
        "study": (_TEXT, "the study that recorded it"),
        "kind": (
            _TEXT,
            "`training`, `posterior` (solves or samples), `heads` (takes a trained network apart) "
            "or `recorded` (trained by [another loop](your-own.md#your-own-training-loop))",
        ),
        "cell_id": (_TEXT, "hash of everything that determines its result"),
        "comparison_id": (_TEXT, "hash of the same without schedule and seed, which are compared"),
    },
    "Its data": {
        "task": (_TEXT, "name of the task"),
        "data_digest": (_TEXT, "digest of the data"),
        "n": (_WHOLE, "training examples"),
        "num_classes": (_WHOLE, "classes of the task"),
        "precision": (_TEXT, "of the arithmetic"),
        "data_notes": (_TEXT, "remarks on the data, one a line"),
        **OF_DATA,
    },
    "How it was set up": TRAINED,
    "How attention was trained": {
        "paradigm": (_TEXT, "its name, such as `soft` or `hybrid`"),
        "schedule": (_TEXT, "all phases in words"),
        "lr": (_NUMBER, "learning rate of the first phase"),
        "last_lr": (_NUMBER, "learning rate of the last phase"),
        "switch_point": (_NUMBER, "fraction of the budget at which a hybrid switches"),
        "seed": (_WHOLE, "draws training mosaics, initial weights and order"),
        "stage": (
            _TEXT,
            "`tune` (options are tried) or `confirm` (the chosen one on fresh seeds); missing "
            "where a study has one stage",
        ),
        "budget_amount": (_WHOLE, "the budget it was given"),
        "budget_unit": (_TEXT, "`flops` or `mosaics`"),
    },
    "Of `attention-paths` and `one-shot`: network and method": NETWORK,
    "Of captions": CAPTIONING,
    "Its end": {
        "cell": (_TEXT, "JSON of all that is hashed; in the metadata of the file"),
        "status": (
            _TEXT,
            "`done`, `diverged`, `censored` (stopped early by a scheduler) or `failed` (a "
            "confirming cell that was given up: no result, and the same command tries again)",
        ),
        "status_reason": (_TEXT, "why"),
        "steps": (_WHOLE, "steps taken"),
        "total_train_seconds": (_NUMBER, "wall time of the steps; in a pack, of the whole pack"),
        "total_evaluate_seconds": (_NUMBER, "the same of the evaluations"),
        "total_seconds": (_NUMBER, "the same from its start to its record"),
    },
    "How it was run": {
        "device": (_TEXT, "that trained it"),
        "threads": (_WHOLE, "CPU threads"),
        "pack": (_WHOLE, "cells that were trained together"),
        "micro_batch": (_WHOLE, "examples in a pass"),
        "shared_prefix": (_FLAG, "whether it forked from another cell"),
        "planned_seeds": (
            _WHOLE,
            "of a confirming cell: how many seeds were to confirm when it ran; before so many "
            "have ended there is no verdict, and any further ones were added after a look",
        ),
        **GIVEN_UP,
    },
    "Of a theory: what was found": SOLUTION,
    "Of the heads of a trained network": HEADS,
    "With what, and when": {
        "code_version": (_TEXT, "of this project"),
        "package_versions": (_TEXT, "JSON: package -> version"),
        "finished_at": (_TEXT, "time of the record"),
    },
}
_OF_EVALUATIONS: Mapping[str, Columns] = {
    "The evaluation": {
        "step": (_WHOLE, "steps taken"),
        "mosaics_seen": (_WHOLE, "training examples seen"),
        "budget_fraction": (_NUMBER, "the target, a fraction of the budget"),
        "compute_flops": (_WHOLE, "training FLOPs spent, exactly"),
        "train_seconds": (_NUMBER, "of training; in a pack, of the whole pack"),
        "split": (_TEXT, "`train`, `validation` or `test`; missing if the cell has no evaluation"),
        "inference": (_TEXT, "paradigm whose formula made the predictions"),
        "num_evaluated": (_WHOLE, "instances"),
    },
    "Its measures": {**METRICS, **_KNOWN},
    "Further measures, of some cells": {
        **_RATIONALES,
        **DYNAMICS,
        "heatmap": (
            _NUMBERS,
            "5 x 5 row by row, axis 0 the attention on the foreground; of captions 3 x 3 (edges "
            "0, .2, .3, 1)",
        ),
    },
    "Of each instance, at the last evaluation on the test split": INSTANCES,
    "Of a predictor": PREDICTOR,
    "Of written captions": _CAPTIONS,
    "Of single inputs, pruned networks and recorded runs": {**_EXAMPLES, **PRUNED, **_RECORDED},
}
"""Heading -> columns, in the order of the schema."""

FAMILIES = (
    {"data_notes", *OF_DATA}, {"alpha"}, NETWORK, CAPTIONING, SOLUTION, HEADS, _RATIONALES,
    DYNAMICS, PREDICTOR, _CAPTIONS, _EXAMPLES, PRUNED, _RECORDED, GIVEN_UP,
)  # fmt: skip
"""Columns that a file without any value of the family leaves out: so files of one kind of study
have the same, and a folder of them is read as one table."""


def _fields(groups: Mapping[str, Columns]) -> list[tuple[str, pa.DataType]]:
    return [(name, kind) for columns in groups.values() for name, (kind, _) in columns.items()]


CELLS_SCHEMA = pa.schema(_fields(_OF_CELLS))
EVALUATIONS_SCHEMA = pa.schema([("cell_id", _TEXT), *_fields(_OF_EVALUATIONS)])
ROWS_SCHEMA = pa.schema(
    [field for field in CELLS_SCHEMA if field.name != "cell"] + [*EVALUATIONS_SCHEMA][1:]
)
"""Of a file: those of the evaluations, and of their cells."""

SPLITS = ("train", "validation", "test")
"""An evaluation has a row for each split."""


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
        **{name: value for name, value in cell.options.items() if name in OF_DATA},
    }


def selected(schema: pa.Schema, columns: Any) -> pa.Schema:
    """Some columns of a schema, in its order; None: all."""
    if columns is None:
        return schema
    wanted = set(columns)
    return pa.schema([field for field in schema if field.name in wanted])


def as_markdown() -> str:
    """The table of all columns for docs/results.md; neighbours that mean the same share a row."""
    lines = ["| column | type | meaning |", "|---|---|---|"]
    for heading, columns in {**_OF_CELLS, **_OF_EVALUATIONS}.items():
        lines.append(f"| **{heading}** | | |")
        for (kind, meaning), names in groupby(columns, columns.__getitem__):
            several = ", ".join(f"`{name}`" for name in names)
            lines.append(f"| {several} | {_IN_WORDS[kind]} | {meaning} |")
    return "\n".join(lines)
