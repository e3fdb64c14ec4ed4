"""The table that `analysis.record` takes: what it may hold, and what is refused.

Messages name the row, counted from 0.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from chapters.recorded.each_instance import apart
from chapters.recorded.own_measures import LOSS, Measures, Told, measured
from study.results import CONFIRM, SPLITS, ResultsError, is_taken, unknown

COSTS = {"compute": "compute_flops", "seconds": "train_seconds", "examples": "mosaics_seen"}
"""What a run has spent: column of the table -> column of the results. Training FLOPs, seconds of
training, examples trained on; each is an axis at which runs can be compared."""

SETTING = ("task", "m", "num_classes", "n", "architecture")
"""Columns of the setting: runs that differ in one of them are never compared."""

KNOWN = ("accuracy", "saif", "loss")
"""Columns of measures that results have by themselves."""

_OF_A_RUN = {"status": ("done", "diverged"), "stage": ("tune", CONFIRM)}
_ROUNDING = 1e-6
"""Of a cost, the share that may be lost where it is no whole number, such as 1e9 / 3 FLOPs."""

_LONGEST = 60  # characters of a name: longer ones fit into no table
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

_SMALLEST, _LARGEST = 1e-6, 1e100
"""Of a measure that is no fraction: differences of smaller values count as none, and squares of
larger ones are no numbers."""


class Checked(NamedTuple):
    """A table with plain values, every column that has a usual value, and nothing amiss.

    Attributes:
        table: one row an evaluation.
        told: what is said of its measures, accuracy and SAIF excepted.
        lists: what each test instance got, see `chapters.recorded.each_instance.apart`.
    """

    table: pd.DataFrame
    told: Mapping[str, Told]
    lists: pd.DataFrame


def checked_table(table: pd.DataFrame, options: Sequence[str], measures: Measures) -> Checked:
    """The rows of runs, checked.

    Args:
        table: as `chapters.recorded.taken.taken` gives it; it is changed.
        options, measures: as `chapters.recorded.recorder.record` takes them.

    Raises:
        ResultsError: as there; the message names the row.
    """
    told = measured(table.columns, measures)
    own = [name for name in told if name != LOSS]
    _refuse_columns(table, options, own, told)
    if "split" not in table:
        table["split"] = "test"
    every = [*own, *(name for name in KNOWN if name in table)]
    quantities = [n for n in every if n == LOSS or (n in told and not told[n].is_share)]
    lists = apart(table, [name for name in every if name not in quantities], quantities)
    table = _with_values_in_range(table, {name: told.get(name) for name in every}, options)
    counted = [name for name in every if name != LOSS or name in told]
    _refuse_unmeasured(table, counted)
    _refuse_lost(table, told)
    _refuse_untold_choice(table, options, counted)
    for _, rows in by_run(table, options):
        _refuse_rows(rows)
    return Checked(table, told, lists)


def by_run(table: pd.DataFrame, options: Sequence[str]) -> Any:
    """The rows of each run, in the order of the table."""
    setting = [name for name in SETTING if name in table]
    by = [*setting, "paradigm", *options, "seed"]
    return table.groupby(by, sort=False, dropna=False)


def _refuse_columns(
    table: pd.DataFrame, options: Sequence[str], measures: Sequence[str], told: Collection[str]
) -> None:
    if table.empty:
        raise ResultsError("there is no run to record: the table has no rows.")
    if table.columns.has_duplicates:
        twice = table.columns[table.columns.duplicated()][0]
        raise ResultsError(f"the table has two columns {twice!r}. Leave one out.")
    lacking = [name for name in ("paradigm", "seed", *options, *told) if name not in table]
    if not any(name in table for name in COSTS):
        lacking.append("compute (training FLOPs, or else seconds or examples)")
    if not told and not {"accuracy", "saif"} & set(table):
        lacking.append("accuracy or saif, or one that measures=[...] names")
    if lacking:
        raise ResultsError(
            f"the table has no column {', nor '.join(lacking)}. It has: "
            f"{', '.join(map(str, table.columns))}."
        )
    known = ("paradigm", "seed", "split", "run", *COSTS, *SETTING, *_OF_A_RUN, *KNOWN)
    for name in (name for name in table.columns if name not in (*known, *options, *measures)):
        raise ResultsError(
            f"record knows no column {name!r}. Name it in options=[...] or measures=[...], or "
            "leave it out."
        )
    for name in (*options, *measures):
        if name in known or (name in measures and is_taken(name)):
            raise ResultsError(
                f"{name!r} cannot be an option or a measure: it has another meaning in results."
            )
    for name in measures:
        if not _NAME.fullmatch(name):
            raise ResultsError(
                f"a measure cannot be called {name!r}: names have letters, digits and _, and "
                "begin with a letter."
            )


def _with_values_in_range(
    table: pd.DataFrame, measures: Mapping[str, Told | None], options: Sequence[str]
) -> pd.DataFrame:
    """The table with all columns but those of costs and measures, and every value in range."""
    usual: dict[str, Any] = {
        "task": "runs",
        "m": 0,
        "status": "done",
        "stage": None,
    }
    for name, value in usual.items():
        if name not in table:
            table[name] = value
    table["status"] = table["status"].fillna("done")
    table["seed_name"] = [_seed_name(value) for value in table["seed"]]
    table["seed"] = [_seed(name) for name in table["seed_name"]]
    whole = {"seed": 0, "m": 0, "num_classes": 2, "n": 1}
    for name, least in whole.items():
        rule = f"a whole number from {least} to 2**63 - 1"
        rule = "a number or text" if name == "seed" else rule
        _refuse(table, name, rule, least, 2**63 - 1, of_whole=True, missing=name in SETTING)
    for name in ("compute", "examples"):
        rule = "a whole number from 0 to 9e18 (of more, count billions)"
        _refuse(table, name, rule, 0, 9e18, of_whole=True, rounding=_ROUNDING)
    for name in ("seconds", *options):
        if name in table and table[name].dtype == object:
            simple = [_simple(value) for value in table[name]]
            table[name] = pd.Series(simple, table.index, dtype=object)
    _refuse(table, "seconds", "a number >= 0, or a duration")
    if "seconds" in table:  # 3 * .1 and .3 are one moment
        table["seconds"] = table["seconds"].round(9)
    _refuse(table, "lr", "a number > 0, or missing", sys.float_info.min, missing=True)
    lost = table["status"].eq("diverged")
    for name, told in measures.items():
        table[name] = table[name].mask(lost & table[name].isin([np.inf, -np.inf]))
        if told is None and name == LOSS:
            _refuse(table, name, "nats, or missing", -np.inf, np.inf, missing=True)
            table[name] = table[name].where(np.isfinite(table[name]))
        elif told and not told.is_share:
            _refuse_quantity(table, name)
        else:
            rule = "a fraction in [0, 1], or missing (87 % is .87)"
            _refuse(table, name, rule + (told.hint(name) if told else ""), 0, 1, missing=True)
    for name, valid in {"split": SPLITS, **_OF_A_RUN}.items():
        is_known = table[name].isin(valid) | ((name == "stage") & table[name].isna())
        for row in table.index[~is_known]:
            raise ResultsError(f"{_row(table, row)}: {unknown(name, table[name][row], valid)}")
    for name in ("paradigm", "task"):
        rule = f"a name of at most {_LONGEST} printable characters"
        _refuse_unfit(table, name, table[name].map(_is_name), rule)
    return table


def _refuse_unmeasured(table: pd.DataFrame, measures: Sequence[str]) -> None:
    for name in measures:
        if table[name].isna().all():
            raise ResultsError(f"{name} has no value in any row. Leave it out.")
    if not table.loc[table["split"].eq("test"), [*measures]].notna().any(axis=None):
        raise ResultsError(
            "no row of the test split has a value, and all numbers and verdicts are of that split."
        )


def _refuse_quantity(table: pd.DataFrame, name: str) -> None:
    """Makes a measure that is no fraction numbers; where a run diverged it may be none."""
    _refuse(table, name, "a number, or missing", -np.inf, np.inf, missing=True)
    beyond = table[name].abs() > _LARGEST
    _refuse_unfit(
        table,
        name,
        ~beyond | table["status"].eq("diverged"),
        "finite, unless the run diverged, which a column status says (done, diverged)",
    )
    table[name] = table[name].where(~beyond)
    largest = table[name].abs().max()
    if not (largest == 0 or largest >= _SMALLEST or np.isnan(largest)):
        raise ResultsError(
            f"{name} is at most {largest:g}, so small that differences count as rounding: record "
            "it in a smaller unit, as 1000 times as much."
        )


def _seed_name(value: Any) -> int | str | None:
    """A seed: the whole number that it is, or else its text; None: it is missing, or neither."""
    if not pd.api.types.is_scalar(value) or pd.isna(value):
        return None
    is_one: Any = value if isinstance(value, str | Real) else "a moment"
    number = pd.to_numeric(is_one, errors="coerce")
    is_whole = pd.notna(number) and 0 <= number < 2**63 and float(number).is_integer()
    return int(number) if is_whole else str(value)


def _seed(name: int | str | None) -> int | None:
    """Its number in results; text has one of its own."""
    return (
        int(hashlib.sha256(name.encode()).hexdigest()[:10], 16) if isinstance(name, str) else name
    )


def _simple(value: Any) -> Any:
    """A duration as its seconds; a list, say, as text."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return value if pd.api.types.is_scalar(value) else str(value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST


def _refuse(
    table: pd.DataFrame,
    name: str,
    rule: str,
    least: float = 0,
    most: float = sys.float_info.max,
    of_whole: bool = False,
    missing: bool = False,
    rounding: float = 0,
) -> None:
    """Makes a column numbers, if it is there, and refuses a value out of range."""
    if name not in table:
        return
    # Of this sort, whole numbers stay exact beyond 2**53, and beside missing ones.
    values = pd.to_numeric(table[name], errors="coerce", dtype_backend="numpy_nullable")
    if not (of_whole and pd.api.types.is_integer_dtype(values)):
        values = values.astype(float)
    whole = values.round()
    is_whole = (values - whole).abs() <= rounding * values
    fits = (values >= least) & (values <= most) & (is_whole | (not of_whole))
    fits = fits.fillna(False).astype(bool) | (missing & table[name].isna())
    _refuse_unfit(table, name, fits, rule)
    table[name] = whole.astype("Int64") if of_whole else values


def _refuse_unfit(table: pd.DataFrame, name: str, fits: pd.Series, rule: str) -> None:
    """Refuses the first value of a column that does not fit a rule."""
    for row in table.index[~fits]:
        value = table[name][row]
        got = repr(value) if isinstance(value, str) else value
        raise ResultsError(f"{_row(table, row)}: {name} must be {rule}, got {got}.")


def _refuse_lost(table: pd.DataFrame, told: Mapping[str, Told]) -> None:
    """Refuses runs that diverged where it is not said what they then count as."""
    lost = table["status"].eq("diverged")
    for name in (name for name, each in told.items() if each.chance is None and lost.any()):
        raise ResultsError(
            f"{_row(table, table.index[lost][0])}: it diverged. What does a guess give in {name}, "
            f"as which it counts? Say it, measures={{'{name}': {{..., 'chance': VALUE}}}}."
        )


def _refuse_rows(rows: pd.DataFrame) -> None:
    """Refuses the rows of a run that contradict each other or say nothing."""
    run = _row(rows, rows.index[0])
    if "run" in rows and rows["run"].nunique() > 1:
        raise ResultsError(
            f"{run}: the runs {' and '.join(map(str, rows['run'].unique()[:2]))} are both this. "
            "What tells them apart? Name it in options=[...]."
        )
    for name in _OF_A_RUN:
        if rows[name].nunique(dropna=False) > 1:
            raise ResultsError(f"{run}: the rows of this run differ in {name}.")
    cost, *others = [name for name in COSTS if name in rows]
    for other in others:
        if not rows.sort_values([cost, other])[other].is_monotonic_increasing:
            raise ResultsError(
                f"{run}: {other} fall where {cost} rises. Both count from the start of the run."
            )
    if not rows[cost].gt(0).any():
        raise ResultsError(f"{run}: {cost} is 0 in all rows of this run, which has spent nothing.")
    for row in rows.index[rows.duplicated([cost, "split"])]:
        raise ResultsError(
            f"{_row(rows, row)}: a second row at {cost} {rows[cost][row]:g} on the "
            f"{rows['split'][row]} split. What tells the two apart? Name it in options=[...]."
        )
    lost = rows["status"].eq("diverged").any() and "accuracy" in rows
    if lost and ("num_classes" not in rows or rows["num_classes"].isna().any()):
        raise ResultsError(f"{run}: it diverged and counts as accuracy 1/C: give num_classes.")


def _refuse_untold_choice(
    table: pd.DataFrame, options: Sequence[str], measures: Sequence[str]
) -> None:
    """Refuses several options of a paradigm where no validation split can choose among them."""
    validated = table["split"].eq("validation") & table[[*measures]].notna().any(axis=1)
    group = [*(name for name in SETTING if name in table), "paradigm"]
    for _, rows in table[~table["stage"].eq(CONFIRM)].groupby(group, sort=False, dropna=False):
        several = bool(options) and len(rows[[*options]].drop_duplicates()) > 1
        if several and not validated[rows.index].any():
            raise ResultsError(
                f"{rows['paradigm'].iloc[0]} has several options and no validation split to "
                "choose by: record one, in rows whose split is validation."
            )


def _row(table: pd.DataFrame, row: int) -> str:
    seed = table.get("seed_name", table["seed"])[row]
    return f"row {row} ({table['paradigm'][row]}, seed {seed})"
