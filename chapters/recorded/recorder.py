"""Writes runs of another training loop as a results directory.

All that `analysis` reads of a run is in its table, so whoever trains elsewhere gets equal compute,
choice, intervals, verdicts and the report. Nothing else in `analysis` writes results.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from analysis.digest.measures import measures_of
from analysis.digest.read import opened
from chapters.recorded.each_instance import columns_of, graded, instances_of
from chapters.recorded.exports import as_recorded
from chapters.recorded.own_measures import Measures, as_text, told_of
from chapters.recorded.table import COSTS, KNOWN, SETTING, Checked, by_run, checked_table
from chapters.recorded.taken import taken
from study.results import RECORDED, SPLITS, Results, ResultsError, as_seen

_STUDY = re.compile(r"[A-Za-z0-9][\w.-]*")
_VERSION = {"recorded": 1}


def record(
    results_dir: str | os.PathLike[str] | Results,
    runs: Any,
    *,
    columns: Mapping[str, str] = MappingProxyType({}),
    options: Sequence[str] = (),
    measures: Measures = (),
    instances: Mapping[str, Sequence[Any]] | None = None,
    study: str = RECORDED,
) -> list[str]:
    """Records runs that another training loop trained.

    A row is one evaluation. The rows of one setting, paradigm, seed and option are a run, which is
    recorded when it has ended; what was recorded before is left as it is. All runs of a call are
    checked before the first is written. Of several commands that record, each waits for the last.

    Args:
        results_dir: local path, fsspec URL or an open `Results`; made if missing.
        runs: a data frame of pandas, Polars, PyArrow or DuckDB, dictionaries, or paths of CSV or
            Parquet files: runs as W&B, MLflow or TensorBoard export them, of which it says what
            was taken for what (docs/your-own/runs.md), or one row an evaluation, with the columns

            - `paradigm`, what is compared; `seed`, any number or text: paradigms are paired by it;
            - `compute`, training FLOPs spent until the evaluation, or `seconds` of training (or
              durations), or `examples` trained on, or several of them;
            - `accuracy` or `saif`, fractions in [0, 1], or a measure of its own; NaN: not measured
              there; of the test split perhaps a list of what each instance got, whose mean it is:
              then test instances are a sample, as seeds are;

            and perhaps `split` (train, validation or test; without the column all rows are of the
            test split), `loss` (nats; a measure where it is named as one, or the only one),
            `status` (done or diverged: its last evaluation is where
            that was seen, and from there on it counts as 0, in accuracy as 1 / num_classes),
            `stage` (tune: options are tried on this seed; confirm: it is a fresh one), `run` (its
            name elsewhere: rows of two are never taken for one), and those
            of the setting: `task` (by default ``runs``), `m` (segments), `num_classes`, `n`
            (training examples), `architecture`.
        columns: where a column has another name, the one above -> theirs, such as
            ``{"paradigm": "config.optimizer", "test/accuracy": "best_acc"}``.
        options: columns of what was tried for each paradigm, such as ``lr``. One option a paradigm
            is chosen on the validation split, which is needed where there are several; NaN: the
            option is not for this paradigm. Durations become seconds, moments and complex
            numbers text.
        measures: columns of measures with names of their own: fractions, of which more is better;
            or what is said of each, by the names of `study.parts.register_measure`, such as
            ``{"perplexity": {"is_share": False, "larger_is_better": False, "chance": 50257}}``.
        instances: what each test instance belongs to, in the order of the lists, by what people
            call these: ``{"users": [...]}``; None: each stands for itself.
        study: name under which the runs are found again.

    Returns:
        Ids of the runs, in the order of the table.

    Raises:
        ResultsError: a column is missing or neither named nor known, a value is out of range, a
            run has two rows of one evaluation, it was recorded with other numbers or other words
            on its measures, or the directory cannot be written; the message names the row.
    """
    if not isinstance(results_dir, Results) and not str(results_dir):
        raise ResultsError("results_dir is empty. Name a directory, such as 'results'.")
    names = [options] if isinstance(options, str) else options or ()
    if not isinstance(columns or {}, Mapping) or not isinstance(names, Collection):
        raise ResultsError(
            "columns is a mapping, {'paradigm': 'theirs'}, and options are names of columns, got "
            f"{columns!r:.60} and {options!r:.60}."
        )
    options = list(dict.fromkeys(as_seen(str(name)) for name in names))
    if not _STUDY.fullmatch(str(study)):
        raise ResultsError(
            f"the name of a study has letters, digits, _, . and - only, got {study!r}."
        )
    table = as_recorded(taken(runs), columns or {}, options, [*told_of(measures)])
    found = checked_table(table, options, measures)
    held, known = instances_of(found.lists, instances)
    cells = _cells(found, options, study, as_text(found.told, known))
    results = opened(results_dir)
    results.prepare()
    with results.recording():
        there = _unchanged(results, cells)
        for cell, evaluations in cells:
            if cell["cell_id"] not in there:
                results.write_cell(cell, evaluations, held)
    return [str(cell["cell_id"]) for cell, _ in cells]


def _cells(
    found: Checked, options: Sequence[str], study: str, declared: str | None
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The row of `cells` and the rows of `evaluations` of each run, in the order of the table."""
    table, many = found.table, graded(found.lists)
    setting = [name for name in SETTING if name in table]
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    cells = []
    alike: dict[str, dict[str, Any]] = {}
    for _, rows in by_run(table, options):
        first = {name: _plain(value) for name, value in rows.iloc[0].items()}
        own = {name: first[name] for name in setting if first[name]}  # m is 0 where unknown
        option = {name: first[name] for name in options if first[name] is not None}
        text = ", ".join(f"{name} {value}" for name, value in option.items())
        if json.dumps(alike.setdefault(text, option)) != json.dumps(option):
            raise ResultsError(
                f"the options {alike[text]} and {option} look alike. Give them other values."
            )
        comparison = {"kind": RECORDED, **own}
        schedule: dict[str, Any] = {"paradigm": first["paradigm"], "options": option}
        run = {**comparison, "schedule": schedule, "seed": first["seed_name"]}
        run_id = _hash(run)
        lists = found.lists.loc[rows.index]
        evaluations = _evaluations(rows, [*found.told], lists, many, run_id)
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
            **{name: first[name] for name in ("paradigm", "seed", "stage", "status")},
            "m": first["m"] or 0,
            "schedule": text,
            "lr": option.get("lr"),
            "last_lr": option.get("lr"),
            "cell": json.dumps(run, sort_keys=True),
            "pack": 1,
            "shared_prefix": False,
            "finished_at": now,
            "declared": declared,
        }
        cells.append((cell, evaluations))
    return cells


def _evaluations(
    rows: pd.DataFrame,
    measures: Sequence[str],
    lists: pd.DataFrame,
    many: Sequence[str],
    run_id: str,
) -> list[dict[str, Any]]:
    """Rows of `evaluations`: one for each amount spent and each split, as whole cells have.

    Where a run diverged, its last evaluation is where that was seen, and has no values.

    Without a budget, the k-th evaluation of any run is at k / (k + 1) of it: a key by which curves
    of several runs go together, whatever each has spent there.
    """
    costs = [name for name in COSTS if name in rows]
    place = rows[costs[0]].rank(method="dense").astype(float)
    fractions = place / (place + 1)
    lost_at = fractions.max() if rows["status"].eq("diverged").any() else None
    keys = zip(fractions, rows["split"], strict=True)
    of_each: Any = [columns_of(each, many) for each in lists.to_dict("records")]
    at = dict(zip(keys, rows.assign(of_each=of_each).to_dict("records"), strict=True))
    found = []
    for fraction, point in rows[costs].groupby(fractions):
        shared = {COSTS[name]: _plain(point[name].max()) for name in costs}
        for split in SPLITS:
            given = {} if fraction == lost_at else at.get((fraction, split), {})
            own = {name: _plain(given[name]) for name in measures if pd.notna(given.get(name))}
            found.append(
                {
                    "cell_id": run_id,
                    "budget_fraction": fraction,
                    "split": split,
                    **shared,
                    **{name: _plain(given.get(name)) for name in KNOWN},
                    "measures": json.dumps(own, sort_keys=True) if own else None,
                    **given.get("of_each", {}),
                }
            )
    return found


def _unchanged(results: Results, cells: Sequence[tuple[dict[str, Any], Any]]) -> set[str]:
    """Ids of the runs that the directory has.

    Refuses those that it has with other numbers, and words on measures other than those there.
    """
    new = {str(cell["cell_id"]): cell for cell, _ in cells}
    columns = ["task", "comparison_id", "declared"]
    told = pd.DataFrame([*new.values()])[columns].dropna()
    if len(told):
        every = pd.concat([results.cells(None, columns).dropna(), told]).drop_duplicates()
        for _, mine in every.groupby("comparison_id"):
            measures_of(mine)
            if mine["declared"].map(_instances).dropna().nunique() > 1:
                raise ResultsError(
                    f"these runs were tested on other instances than those in {results.url}, or "
                    "theirs belong to others. Record them into another directory."
                )
    there = results.cells(new, ["cell_id", "cell"])
    for run_id, text in zip(there["cell_id"], there["cell"], strict=True):
        if text != new[run_id]["cell"]:
            cell = new[run_id]
            which = ", ".join(filter(None, [cell["paradigm"], cell["schedule"]]))
            seed = json.loads(cell["cell"])["seed"]
            raise ResultsError(
                f"{which}, seed {seed} is in {results.url} with other numbers (run {run_id}). "
                "Nothing was recorded: record these runs into another directory."
            )
    return set(there["cell_id"])


def _instances(declared: str) -> str | None:
    """What a run says of its instances."""
    said = json.loads(declared).get("instances")
    return said and json.dumps(said, sort_keys=True)


def _plain(value: Any) -> Any:
    """A value as JSON has it: whole numbers as such, None where it is missing."""
    if pd.isna(value):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**62 else value
    return value if isinstance(value, int) else str(value)


def _of_instances(each: Any) -> Any:
    """Bits, or numbers, as JSON."""
    return each.hex() if isinstance(each, bytes) else each.tolist()


def _hash(values: Mapping[str, Any]) -> str:
    text = json.dumps({**_VERSION, **values}, sort_keys=True, default=_of_instances)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
