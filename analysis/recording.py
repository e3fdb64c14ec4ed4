"""Runs of another training loop: a table of plain numbers becomes a results directory.

All that `analysis` reads of a run is in its table, so whoever trains elsewhere gets equal compute,
choice, intervals, verdicts and the report. Nothing else in `analysis` writes results.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.reading import opened
from study.results import (
    CELLS_SCHEMA,
    CONFIRM,
    EVALUATIONS_SCHEMA,
    RECORDED,
    SPLITS,
    Results,
    ResultsError,
    unknown,
)

COSTS = {"compute": "compute_flops", "seconds": "train_seconds", "examples": "mosaics_seen"}
"""What a run has spent: column of the table -> column of the results. Training FLOPs, seconds of
training, examples trained on; each is an axis at which runs can be compared."""

SETTING = ("task", "m", "num_classes", "n", "architecture")
"""Columns of the setting: runs that differ in one of them are never compared."""

_KNOWN = ("accuracy", "saif", "loss")
_OF_A_RUN = {"status": ("done", "diverged"), "stage": ("tune", CONFIRM)}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_STUDY = re.compile(r"[A-Za-z0-9][\w.-]*")
_DERIVED = re.compile(r"(last|validation|mean)_|.*_(low|high|se|share)$")
_TAKEN = {*CELLS_SCHEMA.names, *EVALUATIONS_SCHEMA.names, "axis", "cut", "cut_at", "diverged"}
_VERSION = {"recorded": 1}


def record(
    results_dir: str | os.PathLike[str] | Results,
    runs: pd.DataFrame | Iterable[Mapping[str, Any]],
    *,
    options: Sequence[str] = (),
    measures: Sequence[str] = (),
    study: str = RECORDED,
) -> list[str]:
    """Records runs that another training loop trained.

    A row is one evaluation. The rows of one setting, paradigm, seed and option are a run, which is
    recorded when it has ended; what was recorded before is left as it is. All runs of a call are
    checked before the first is written.

    Args:
        results_dir: local path, fsspec URL or an open `Results`; made if missing.
        runs: one row an evaluation, with the columns

            - `paradigm`, what is compared; `seed`, a whole number: paradigms are paired by it;
            - `compute`, training FLOPs spent until the evaluation, or `seconds` of training, or
              `examples` trained on, or several of them;
            - `accuracy`, `saif` or a measure of its own, fractions in [0, 1], the larger the
              better; NaN: not measured there;

            and perhaps `split` (train, validation or test; without the column all rows are of the
            test split), `loss` (nats), `status` (done or diverged), `stage` (tune: options are
            tried on this seed; confirm: it is a fresh one), and those of the setting: `task` (by
            default ``runs``), `m` (segments), `num_classes`, `n` (training examples),
            `architecture`.
        options: columns of what was tried for each paradigm, such as ``lr``. One option a paradigm
            is chosen on the validation split, which is needed where there are several; NaN: the
            option is not for this paradigm.
        measures: columns of measures with names of their own.
        study: name under which the runs are found again.

    Returns:
        Ids of the runs, in the order of the table.

    Raises:
        ResultsError: a column is missing or neither named nor known, a value is out of range, a
            run has two rows of one evaluation, it was recorded with other numbers, or the
            directory cannot be written; the message names the row.
    """
    table = pd.DataFrame(runs if isinstance(runs, pd.DataFrame) else list(runs))
    options, measures = (
        [names] if isinstance(names, str) else list(dict.fromkeys(names))
        for names in (options, measures)
    )
    measures = [name for name in measures if name not in _KNOWN]
    if not _STUDY.fullmatch(study):
        raise ResultsError(f"a study is called by letters, digits, _, . and -, got {study!r}.")
    _refuse_columns(table, options, measures)
    table = _checked(table, [*measures, *(name for name in _KNOWN if name in table)], options)
    cells = _cells(table, options, measures, study)
    results = opened(results_dir)
    _refuse_changed(results, cells)
    results.prepare()
    with results.lock():
        for cell, evaluations in cells:
            results.write_cell(cell, evaluations)
    return [str(cell["cell_id"]) for cell, _ in cells]


# --- what a table may hold


def _refuse_columns(table: pd.DataFrame, options: Sequence[str], measures: Sequence[str]) -> None:
    if table.empty:
        raise ResultsError("there is no run to record: the table has no rows.")
    if table.columns.has_duplicates:
        twice = table.columns[table.columns.duplicated()][0]
        raise ResultsError(f"the table has two columns {twice!r}. Leave one out.")
    lacking = [name for name in ("paradigm", "seed", *options, *measures) if name not in table]
    if not any(name in table for name in COSTS):
        lacking.append("compute (training FLOPs, or else seconds or examples)")
    if not measures and not {"accuracy", "saif"} & set(table):
        lacking.append("accuracy or saif, or one that measures=[...] names")
    if lacking:
        raise ResultsError(
            f"the table has no column {', nor '.join(lacking)}. It has: "
            f"{', '.join(map(str, table.columns))}."
        )
    known = ("paradigm", "seed", "split", *COSTS, *SETTING, *_OF_A_RUN, *_KNOWN)
    for name in (name for name in table.columns if name not in (*known, *options, *measures)):
        raise ResultsError(
            f"column {name!r} is none that record knows. Name it in options=[...] or "
            "measures=[...], or leave it out."
        )
    for name in (*options, *measures):
        if name in known or (name in _TAKEN and name in measures):
            raise ResultsError(
                f"{name!r} can be no option or measure: it has another meaning in results."
            )
    for name in measures:
        if not _NAME.fullmatch(name) or _DERIVED.match(name):
            raise ResultsError(
                f"a measure cannot be called {name!r}: names have letters, digits and _, begin "
                "with a letter, and do not end as those of intervals do (_low, _high, _se)."
            )


def _checked(table: pd.DataFrame, shares: Sequence[str], options: Sequence[str]) -> pd.DataFrame:
    """The table with all columns but those of costs and measures, and every value in range."""
    table = table.reset_index(drop=True)
    usual: dict[str, Any] = {
        "task": "runs",
        "m": 0,
        "split": "test",
        "status": "done",
        "stage": None,
    }
    for name, value in usual.items():
        if name not in table:
            table[name] = value
    whole = {"seed": 0, "compute": 0, "examples": 0, "m": 0, "num_classes": 2, "n": 1}
    for name, least in whole.items():
        rule = f"a whole number >= {least}"
        _refuse(table, name, rule, least, of_whole=True, missing=name in SETTING)
    _refuse(table, "seconds", "a number >= 0")
    _refuse(table, "lr", "a number > 0, or missing", sys.float_info.min, missing=True)
    for name in shares:
        if name == "loss":
            _refuse(table, name, "nats, or missing", -np.inf, np.inf, missing=True)
        else:
            rule = "a fraction in [0, 1], or missing (87 % is .87)"
            _refuse(table, name, rule, 0, 1, missing=True)
    table["status"] = table["status"].fillna("done")
    for name, valid in {"split": SPLITS, **_OF_A_RUN}.items():
        for value in table[name].unique():
            if value not in valid and not (name == "stage" and pd.isna(value)):
                raise ResultsError(str(unknown(name, value, valid)))
    for name in options:  # a list, say, is a value like any other
        table[name] = table[name].map(lambda v: v if pd.api.types.is_scalar(v) else str(v))
    for name in ("paradigm", "task"):
        named = table[name].map(lambda value: isinstance(value, str) and bool(value.strip()))
        if not named.all():
            row = int(np.flatnonzero(~named)[0])
            raise ResultsError(
                f"{_row(table, row)}: {name} must be a name, got {table[name][row]!r}."
            )
    return table


def _refuse(
    table: pd.DataFrame,
    name: str,
    rule: str,
    least: float = 0,
    most: float = sys.float_info.max,
    of_whole: bool = False,
    missing: bool = False,
) -> None:
    """Makes a column numbers, if it is there, and refuses a value out of range."""
    if name not in table:
        return
    values = pd.to_numeric(table[name], errors="coerce").astype(float)
    fits = (values >= least) & (values <= most) & ((values % 1 == 0) | (not of_whole))
    fits |= missing & table[name].isna()
    if not fits.all():
        row = int(np.flatnonzero(~fits)[0])
        raise ResultsError(f"{_row(table, row)}: {name} must be {rule}, got {table[name][row]}.")
    table[name] = values.astype("Int64") if of_whole else values


def _row(table: pd.DataFrame, row: int) -> str:
    return f"row {row} ({table['paradigm'][row]}, seed {table['seed'][row]})"


# --- what is recorded


def _cells(
    table: pd.DataFrame, options: Sequence[str], measures: Sequence[str], study: str
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The row of `cells` and the rows of `evaluations` of each run, in the order of the table."""
    setting = [name for name in SETTING if name in table]
    _refuse_untold_choice(table, setting, options, measures)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    runs = table.groupby([*setting, "paradigm", *options, "seed"], sort=False, dropna=False)
    found = []
    for _, rows in runs:
        _refuse_rows(rows)
        first = {name: _plain(value) for name, value in rows.iloc[0].items()}
        own = {name: first[name] for name in setting if first[name]}  # m is 0 where unknown
        option = {name: first[name] for name in options if first[name] is not None}
        comparison = {"kind": RECORDED, **own}
        schedule: dict[str, Any] = {"paradigm": first["paradigm"], "options": option}
        run = {**comparison, "schedule": schedule, "seed": first["seed"]}
        run_id = _hash(run)
        evaluations = _evaluations(rows, measures, run_id)
        # What follows is no part of the id: a run has one result.
        points = {row["budget_fraction"] for row in evaluations}
        numbers = _hash({"evaluations": evaluations, "status": first["status"]})
        schedule |= {"evaluation_points": sorted(points), "numbers": numbers}
        cell = {
            **own,
            "study": study,
            "kind": RECORDED,
            "cell_id": run_id,
            "comparison_id": _hash(comparison),
            "m": first["m"] or 0,
            "paradigm": first["paradigm"],
            "schedule": ", ".join(f"{name} {value}" for name, value in option.items()),
            "lr": option.get("lr"),
            "last_lr": option.get("lr"),
            "seed": first["seed"],
            "stage": first["stage"],
            "cell": json.dumps(run, sort_keys=True),
            "status": first["status"],
            "pack": 1,
            "shared_prefix": False,
            "finished_at": now,
        }
        found.append((cell, evaluations))
    return found


def _evaluations(rows: pd.DataFrame, measures: Sequence[str], run_id: str) -> list[dict[str, Any]]:
    """Rows of `evaluations`: one for each amount spent and each split, as whole cells have.

    Without a budget, the k-th evaluation of any run is at k / (k + 1) of it: a key by which curves
    of several runs go together, whatever each has spent there.
    """
    costs = [name for name in COSTS if name in rows]
    place = rows[costs[0]].rank(method="dense").astype(float)
    fractions = place / (place + 1)
    keys = zip(fractions, rows["split"], strict=True)
    at = dict(zip(keys, rows.to_dict("records"), strict=True))
    found = []
    for fraction, point in rows[costs].groupby(fractions):
        shared = {COSTS[name]: _plain(point[name].max()) for name in costs}
        for split in SPLITS:
            values = {name: _plain(value) for name, value in at.get((fraction, split), {}).items()}
            own = {name: values[name] for name in measures if values.get(name) is not None}
            row = {"cell_id": run_id, "budget_fraction": fraction, "split": split, **shared}
            row |= {name: values.get(name) for name in _KNOWN}
            row["measures"] = json.dumps(own, sort_keys=True) if own else None
            found.append(row)
    return found


def _refuse_rows(rows: pd.DataFrame) -> None:
    """Refuses the rows of a run that contradict each other or say nothing."""
    run = _row(rows, rows.index[0])
    for name in _OF_A_RUN:
        if rows[name].nunique(dropna=False) > 1:
            raise ResultsError(f"{run}: the rows of this run differ in {name}.")
    cost = next(name for name in COSTS if name in rows)
    if not rows[cost].gt(0).any():
        raise ResultsError(f"{run}: {cost} is 0 in all rows of this run, which has spent nothing.")
    twice = rows.duplicated([cost, "split"])
    if twice.any():
        row = rows[twice].iloc[0]
        raise ResultsError(
            f"{_row(rows, rows.index[twice][0])}: a second row at {cost} {row[cost]:g} on the "
            f"{row['split']} split. What tells the two apart? Name it in options=[...]."
        )
    lost = rows["status"].eq("diverged").any() and "accuracy" in rows
    if lost and ("num_classes" not in rows or rows["num_classes"].isna().any()):
        raise ResultsError(f"{run}: it diverged and counts as accuracy 1/C: give num_classes.")


def _refuse_untold_choice(
    table: pd.DataFrame, setting: Sequence[str], options: Sequence[str], measures: Sequence[str]
) -> None:
    """Refuses several options of a paradigm where no validation split can choose among them."""
    shares = [name for name in (*measures, "accuracy", "saif") if name in table]
    validated = table["split"].eq("validation") & table[shares].notna().any(axis=1)
    group = [*setting, "paradigm"]
    for _, rows in table[~table["stage"].eq(CONFIRM)].groupby(group, sort=False, dropna=False):
        several = bool(options) and len(rows[[*options]].drop_duplicates()) > 1
        if several and not validated[rows.index].any():
            raise ResultsError(
                f"{rows['paradigm'].iloc[0]} has several options and no validation split to "
                "choose by: record one, in rows whose split is validation."
            )


def _refuse_changed(results: Results, cells: Sequence[tuple[dict[str, Any], Any]]) -> None:
    """Refuses runs that the directory has with other numbers."""
    if not results.storage.exists("cells"):
        return
    new = {str(cell["cell_id"]): cell for cell, _ in cells}
    there = results.cells(new, ["cell_id", "cell"])
    for run_id, text in zip(there["cell_id"], there["cell"], strict=True):
        if text != new[run_id]["cell"]:
            cell = new[run_id]
            which = ", ".join(filter(None, [cell["paradigm"], cell["schedule"]]))
            raise ResultsError(
                f"{which}, seed {cell['seed']} is in {results.url} with other numbers (run "
                f"{run_id}). Nothing was recorded: record into another directory, or move this "
                "run's files away."
            )


def _plain(value: Any) -> Any:
    """A value as JSON has it: whole numbers as such, None where it is missing."""
    if pd.isna(value):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | float | np.number):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**62 else number
    return str(value)


def _hash(values: Mapping[str, Any]) -> str:
    text = json.dumps({**_VERSION, **values}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
