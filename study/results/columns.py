"""The columns of results, each declared once: its type and what it means.

A file has one row an (evaluation, split), with the columns of the cell repeated. What a cell is
set up with is declared where its field is, see `study.cell.declared`. docs/results.md shows them,
as `as_markdown` gives them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import pyarrow as pa

from study import tasks
from study.cell import AnyCell, Cell
from study.cell.column_groups import GROUPS, TYPES, Column, Of, of_axes
from study.cell.declared import axes_of
from study.errors import RequestError
from study.parts import ORIGINS, load

load(())  # the columns of installed packages are read here, once

_TEXT, _WHOLE, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TEXTS, _WHOLES, _NUMBERS = pa.list_(_TEXT), pa.list_(pa.int32()), pa.list_(_NUMBER)
_BITS = pa.binary()
_BITS_BY_NAME, _NUMBERS_BY_NAME = pa.map_(_TEXT, _BITS), pa.map_(_TEXT, _NUMBERS)
_OF_WORD = dict(zip(TYPES, (_TEXT, _WHOLE, _NUMBER, _TEXTS, _WHOLES, _NUMBERS), strict=True))
_IN_WORDS = {kind: word for word, kind in _OF_WORD.items()} | {
    _FLAG: "yes or no",
    _BITS: "bits",
    _BITS_BY_NAME: "bits by name",
    _NUMBERS_BY_NAME: "numbers by name",
}

Columns = Mapping[str, tuple[pa.DataType, str]]
"""Name -> type, and meaning in Markdown."""


def _typed(columns: Mapping[str, Column]) -> Columns:
    return {name: (_OF_WORD[word], meaning) for name, (word, meaning) in columns.items()}


def _brought(of: Of) -> Mapping[str, Columns]:
    """Heading -> columns, of those that chapters and packages brought."""
    return {name: _typed(group.columns) for name, group in GROUPS.items() if group.of == of}


def _joined(*of: Of) -> Columns:
    """The columns of all these."""
    groups = [group for each in of for group in _brought(each).values()]
    return {name: column for group in groups for name, column in group.items()}


TRAINED: Columns = _typed(of_axes(axes_of(Cell)))
"""What cells that train declare."""

OF_DATA: Columns = {
    name: column
    for task in sorted(tasks.TASKS)
    if ("task", task) not in ORIGINS
    for name, column in _typed(of_axes(tasks.TASKS[task].options)).items()
}
"""What the project's tasks declare of their data, see `study.tasks.task.Declaration`. Options of
tasks from outside are in the JSON of cells alone, as not all that read results know them."""

SET_UP: Columns = _joined("set up")
"""What cells of some sorts declare besides."""

FOUND: Columns = _joined("found")
"""What cells of some sorts found."""

FOUND_NUMBERS = [name for name, (kind, _) in FOUND.items() if kind == _NUMBER]

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
_MEASURED = _joined("measured", "evaluated")
_OF_MODALITIES = {m.column for task in tasks.TASKS.values() for m in task.modality.measures}
FURTHER: Columns = {
    **_KNOWN,
    **{name: column for name, column in _MEASURED.items() if name in _OF_MODALITIES},
}
"""Measures of an evaluation that some modalities have."""

OTHERS: Columns = {name: each for name, each in _MEASURED.items() if name not in FURTHER}
"""What evaluations of some cells have besides: numbers, and lists of them."""

OTHER_NUMBERS = [name for name, (kind, _) in OTHERS.items() if kind == _NUMBER]

HELD: Columns = {
    "incentive": (_NUMBER, "what a better focus would gain"),
    "incentive_slope": (_NUMBER, "its slope"),
}
"""Of an evaluation of cells whose attention is held (`study.paradigms.held`)."""

NETWORK: Columns = {"network_digest": (_TEXT, "of its weights")}
"""Of a cell whose network is in `networks/`."""

INSTANCES: Columns = {
    "instances": (
        _TEXT,
        "name of a file in `instances/`, which says what base images each holds, and its class; "
        "missing for mosaics with several foreground images",
    ),
    "instance_right": (_BITS, "those classified right; not of captions, whose score is no share"),
    "instance_known": (_BITS, "those whose foreground is known"),
    "instance_saif": (_BITS, "those in SAIF"),
    "instance_bits": (
        _BITS_BY_NAME,
        "`focus`: those whose focus is on the foreground; and, by their names, measures that are "
        "true or false of an instance",
    ),
    "instance_numbers": (
        _NUMBERS_BY_NAME,
        "of recorded runs, what each got in a measure that is more than true or false of it",
    ),
    "class_heatmaps": (
        _NUMBERS,
        "the heat map of each class, if they are few, in the order of their names",
    ),
}
"""Of the last evaluation on the test split of a cell that ended: a bit an instance, as
`numpy.packbits` gives them, in the order of the file. Recorded runs may have them at each."""

_EXAMPLES: Columns = {
    "examples": (
        _TEXT,
        "JSON: some inputs and the attention on their segments, for captions at each word; in "
        "the last row of the test split",
    ),
}
"""Of the last evaluation on the test split, see `study.evaluate.examples`."""

_FURTHER_MEASURES: Columns = {
    "measures": (
        _TEXT,
        "JSON: name -> number, of what every task, a file of yours or a recorded run measures",
    ),
}

GIVEN_UP: Columns = {
    "given_up_at": (
        _TEXT,
        "when an earlier command had given it up; a verdict that was due then does not count it",
    ),
}
"""Of a cell that failed before it was run to its end."""

_ON_GPU: Columns = {
    "kernels": (
        _TEXT,
        "of its steps on a GPU: `pytorch`, `compiled`, or those of ours that were used",
    ),
}

DECLARED: Columns = {
    "declared": (
        _TEXT,
        "JSON: what was said of its `measures` (name -> `words`, `larger_is_better`, `chance`, "
        "`is_share`), and what people call that to which its `instances` belong",
    ),
}

_OF_CELLS: Mapping[str, Columns] = {
    "The cell": {
        "study": (_TEXT, "the study that recorded it"),
        "kind": (
            _TEXT,
            "`training`, `posterior` (solves or samples), `heads` (takes a trained network apart) "
            "or `recorded` (trained by [another loop](your-own/training-loop.md))",
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
    **_brought("set up"),
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
        **_ON_GPU,
        "shared_prefix": (_FLAG, "whether it forked from another cell"),
        "planned_seeds": (
            _WHOLE,
            "of a confirming cell: how many seeds were to confirm when it ran; before so many "
            "have ended there is no verdict, and any further ones were added after a look",
        ),
        **GIVEN_UP,
    },
    "Of a recorded run": DECLARED,
    **_brought("found"),
    "Of a trained network that was kept": NETWORK,
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
    **_brought("measured"),
    "Where attention is held": HELD,
    "The heat map": {
        "heatmap": (
            _NUMBERS,
            "5 x 5 row by row, axis 0 the attention on the foreground; of captions 3 x 3 (edges "
            "0, .2, .3, 1)",
        ),
    },
    "Of each instance, at the last evaluation on the test split": INSTANCES,
    **_brought("evaluated"),
    "Of single inputs, and further measures": {**_EXAMPLES, **_FURTHER_MEASURES},
}
"""Heading -> columns, in the order of the schema."""

FAMILIES = (
    {"data_notes", *OF_DATA}, {"alpha"}, *(group.columns for group in GROUPS.values()), _EXAMPLES,
    _FURTHER_MEASURES, GIVEN_UP, _ON_GPU, NETWORK, HELD, DECLARED, {"instance_bits"},
    {"instance_numbers"}, {"class_heatmaps"},
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

if _TAKEN := {name for name in ROWS_SCHEMA.names if ROWS_SCHEMA.names.count(name) > 1}:
    raise RequestError(
        f"a package brings columns that results have already, {', '.join(sorted(_TAKEN))}: rename "
        "them there, or uninstall it."
    )

_DERIVED = re.compile(
    r"(between|given|last|later|learned|mean|needed|num|seen|validation)_"
    r"|.*_(above|given|high|learned|low|of_one_image|p|se|share)$"
)
_OF_TABLES = {
    "above", "axis", "base_images", "can_be_chosen", "chosen", "class", "code", "confidence",
    "counted_as_diverged", "cut", "cut_at", "difference", "differs", "diverged", "ended_seeds",
    "first", "high", "labels", "low", "mean", "metric", "most_seeds", "next_fraction", "p",
    "p_holm", "p_signs", "part", "reason", "rest", "right_unseen", "second", "select", "setting",
    "threshold", "verdict", "weight",
}  # fmt: skip
"""Columns of the tables that comparisons make; those of numbers are in `_DERIVED`."""


def is_taken(name: str) -> bool:
    """Whether results or tables of comparisons have a column of this name, or make it of one."""
    taken = name in _OF_TABLES or name in CELLS_SCHEMA.names or name in EVALUATIONS_SCHEMA.names
    return taken or bool(_DERIVED.match(name))


if _TAKEN := {name for name in tasks.MEASURES if is_taken(name)}:
    raise RequestError(f"measures are named as columns of results: rename {', '.join(_TAKEN)}.")

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
