"""Runs of W&B, MLflow and TensorBoard: which of their columns is which of `record`'s.

A column is known by its name; what no name tells, what is compared above all, is asked for. What
the runs hold is checked where all tables are, in `chapters.recorded.table`.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import yaml

from chapters.recorded.table import COSTS, KNOWN
from study.results import ResultsError, unknown

_TOOLS = {
    **dict.fromkeys(("metrics", "params", "key"), "MLflow"),
    **dict.fromkeys(("tag", "Wall time"), "TensorBoard"),
    **dict.fromkeys(("_step", "_runtime", "_timestamp", "State", "config"), "W&B"),
}
"""What a column is called, or begins with before a dot -> who calls it so."""

_RUNS = ("run_id", "ID", "id", "run", "dir_name", "name")
"""Columns that name a run, the surest first."""

_STATES = ("finished", "running", "crashed", "failed", "killed")
"""Those of which one at least tells that a column is of states; there are more."""

_CLOCKS: Mapping[str, Any] = {
    "timestamp": "ms",
    "wall_time": "s",
    "_timestamp": "s",
    "end_time": None,
}
"""Column of moments -> its unit, if they are numbers."""

_SINCE = "time since start"
_OF_A_VALUE = {"tag", "value", *_CLOCKS, _SINCE, "model_id", "dataset_name", "dataset_digest"}
"""Columns of a table of single values that do not say of which run and step one is."""

_ALIASES = {"Wall time": "wall_time", "Step": "step", "Value": "value", "key": "tag"}

_SETTINGS = ("config.", "params.")
_OF_RUNS = ("split", "status", "stage", "task", "num_classes", "architecture")
"""Further columns of `record` that are known by its own names; m and n may be anything."""

_SPLITS = {
    "train": "train",
    **dict.fromkeys(("val", "valid", "validation", "dev", "eval"), "validation"),
    "test": "test",
}
_WORD = "|".join(_SPLITS)
_TOOLS_OWN = r"^(?:config|params|metrics)\."
_METRIC = rf"(?i)^(?:(?P<before>{_WORD})[/_.])?(?P<measure>.*?)(?:[/_.](?P<after>{_WORD}))?$"
_OF = ", "  # between a measure and its split
_ROW = "row, before splits"
_WIDTH = 99


def as_recorded(
    table: pd.DataFrame,
    columns: Mapping[str, str],
    options: Sequence[str],
    measures: Sequence[str],
) -> pd.DataFrame:
    """The table with the columns of `record`; says what was taken for what.

    A table that no tool has made is left as it is, unless `columns` are given.

    Args:
        table: as `chapters.recorded.taken.taken` gives it.
        columns, options, measures: as `chapters.recorded.recorder.record` takes them.

    Raises:
        ResultsError: a column that is told is not there, or it has to be told which one is what;
            the message lists what there is.
    """
    begins = {str(name).split(".")[0] for name in table} - {*options, *measures}
    tool = next((tool for mark, tool in _TOOLS.items() if mark in begins), None)
    if not (tool or columns):
        return table
    table = _ended(_moments(_flat(table)) if tool else table)
    if table.empty or table.columns.has_duplicates:
        return table
    for theirs in columns.values():
        if theirs not in table:
            raise ResultsError(str(unknown("column", theirs, table.columns)))
        if [*columns.values()].count(theirs) > 1:
            raise ResultsError(f"columns names {theirs} twice. Which one is it?")
    names = _names([*map(str, table)], columns, options, measures)
    if not (tool or names.str.endswith((f"{_OF}train", f"{_OF}validation")).any()):
        return table.rename(columns=dict(names.str.split(_OF).str[0]))  # all else stays
    left = table.drop(columns=names.index)
    _ask(tool or "another tool", names, left, measures)
    _say(table, names, left)
    rows = _by_split(table[names.index].set_axis([*names], axis=1).assign(run=_run(table)))
    _refuse_single(rows)
    return rows if tool else rows.drop(columns="run")


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """W&B's config and summary of each run, dictionaries or their text, as columns."""
    for name, begin in {"config": "config.", "summary": ""}.items():
        if name in table and table[name].astype(str).str.startswith("{").all():
            try:  # YAML holds JSON, and what Python prints, as the CSV of pandas has it
                cells: Any = [
                    cell if isinstance(cell, Mapping) else yaml.safe_load(cell)
                    for cell in table.pop(name)
                ]
            except yaml.YAMLError as error:
                raise ResultsError(f"{name} is no JSON: {error}".partition("\n")[0]) from error
            table = pd.concat([table, pd.json_normalize(cells).add_prefix(begin)], axis=1)
    return table


def _moments(table: pd.DataFrame) -> pd.DataFrame:
    """One row per moment of a run, with the seconds until then."""
    table = table.rename(columns=_ALIASES)
    for name in [name for name in _CLOCKS if name in table][:1]:
        at = pd.to_datetime(table[name], unit=_CLOCKS[name], utc=True)
        begin = pd.to_datetime(table.get("start_time", at), utc=True)
        spent = at - begin.groupby(_run(table)).transform("min")
        table[_SINCE] = spent.dt.total_seconds()
    if "value" not in table or "tag" not in table:
        if {"value", "wall_time"} <= {*table}:
            raise ResultsError("of what run and tag is this? Add the columns run and tag.")
        return table
    by = [name for name in map(str, table) if name not in _OF_A_VALUE and "metrics." not in name]
    values = table.groupby([*by, "tag"], sort=False, dropna=False)
    moments = values["value"].last().unstack()
    if _SINCE in table:
        moments[_SINCE] = values[_SINCE].max().unstack().max(axis=1)
    return moments.reset_index()


def _run(table: pd.DataFrame) -> pd.Series:
    """The run of each row: what names it, or else its settings; a row of W&B's table is one."""
    for name in _RUNS:
        if name in table:
            return table[name].astype(str)
    if settings := [name for name in map(str, table) if name.startswith(_SETTINGS)]:
        return table[settings].astype(str).agg(", ".join, axis=1)
    return pd.Series(table.index if "Name" in table else "", table.index).astype(str)


def _ended(table: pd.DataFrame) -> pd.DataFrame:
    """The runs that have ended as they should; says how many of which other state there are."""
    for name in ("State", "state", "status"):
        if name in table and (states := table[name].astype(str).str.lower()).isin(_STATES).any():
            ended = states.eq("finished")
            lost = states[~ended].groupby(_run(table)).first().value_counts()
            if counts := ", ".join(f"{count} {state}" for state, count in lost.items()):
                print(f"Runs left out: {counts}. A crash is no divergence.")
            return table[ended].drop(columns=name)
    return table


def _names(
    there: Sequence[str],
    columns: Mapping[str, str],
    options: Sequence[str],
    measures: Sequence[str],
) -> pd.Series:
    """Their column -> that of `record`, of a measure with its split."""
    # What is told comes first; a learning rate may be logged beside the one that was set.
    settings_first = sorted(there, key=lambda name: not name.startswith(_SETTINGS))
    theirs = pd.Series([*columns.values(), *settings_first], dtype=object).drop_duplicates()
    told = {theirs: ours for ours, theirs in columns.items()}
    known = {name.lower(): name for name in (*KNOWN, *measures)} | {"acc": "accuracy"}

    def parts(names: pd.Series) -> tuple[pd.Series, pd.Series]:
        """The measure of each, and the split that it begins or ends with."""
        found, whole = names.str.extract(_METRIC), names.str.lower().map(known)
        split = found["before"].fillna(found["after"]).str.lower().map(_SPLITS)
        measure = found["measure"].str.lower().map(known)
        return whole.where(whole.notna(), measure), split.where(whole.isna())

    # Where others name a split, one without is that of training, as Keras has it.
    measure, split = parts(theirs.str.replace(_TOOLS_OWN, "", n=1, regex=True))
    usual = "train" if split[measure.notna()].notna().any() else "test"
    plain = theirs.replace(told).str.replace(_TOOLS_OWN, "", n=1, regex=True)
    measure, split = parts(plain)
    split = split.where(split.notna(), theirs.isin([*told]).map({True: "test", False: usual}))
    others = plain.where(plain.isin(["paradigm", "seed", *options, *COSTS, *_OF_RUNS, *columns]))
    names = others.where(measure.isna(), measure + _OF + split).set_axis(theirs).dropna()
    for name, several in names[~names.isin(names[[*told]])].groupby(names).groups.items():
        if _OF in str(name) and len(several) > 1:
            raise ResultsError(
                f"{name} may be {' or '.join(several)}. Say which, "
                f"columns={{'{'/'.join(str(name).split(_OF)[::-1])}': ...}}."
            )
    names = names.drop_duplicates()
    for name in ("_runtime", "Runtime", _SINCE):
        if name in there and not names.isin([*COSTS]).any():
            names[name] = "seconds"
    return names.str.split(_OF).str[0] if names.eq("split").any() else names


def _ask(whose: str, names: pd.Series, left: pd.DataFrame, measures: Sequence[str]) -> None:
    """Asks for what no name says, with what there is to choose from."""
    known = {*names.str.split(_OF).str[0]}
    measured = measures or ["saif" if "saif" in known else "accuracy"]
    if lacking := [name for name in ("paradigm", "seed", *measured) if name not in known]:
        others = [*left.columns, *names.index[names.str.startswith("loss")]]
        raise ResultsError(
            f"these are runs of {whose}. Say which column is what, "
            f"columns={dict.fromkeys(lacking, '...')}, or name measures of yours, measures=[...]. "
            f"What varies between runs is {_varying(left)}; there are {', '.join(others)}."
        )


def _varying(left: pd.DataFrame) -> str:
    """Settings that differ between runs; a number that hardly a row shares is a result."""
    values = left.astype(str).nunique()
    found = values.index[values.between(2, max(len(left) / 2, 2))]
    settings = found[found.str.startswith(_SETTINGS)]
    return ", ".join(settings if len(settings) else found) or "nothing"


def _say(table: pd.DataFrame, names: pd.Series, left: pd.DataFrame) -> None:
    """Prints what was taken for what, and what was left out."""
    first = table[names.index].astype(object).bfill().iloc[0].map(_text).str[:40]
    said = pd.DataFrame({"column": names, "taken from": names.index, "for example": first})
    print(said.to_markdown(index=False, tablefmt="simple", disable_numparse=True))
    line = f"Columns left out: {', '.join(left.columns) or 'none'}"
    print(textwrap.shorten(line, _WIDTH, placeholder=" and more"))
    if names[names.isin([*COSTS])].eq("seconds").all():
        print("No column is compute or examples, so runs are compared at equal seconds.")


def _by_split(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per split, in the order of the table; numbers in text as numbers."""
    for name in {*rows} - {"paradigm", *_OF_RUNS}:
        with contextlib.suppress(TypeError, ValueError):  # W&B writes what is no number as text
            values = rows[name].replace(["NaN", "nan"], "inf" if _OF in name else None)
            rows[name] = pd.to_numeric(values)
    rows["paradigm"] = rows["paradigm"].map(_text, na_action="ignore")
    if "split" in rows:
        return rows
    measures = sorted({name.split(_OF)[0] for name in map(str, rows) if _OF in name})
    rows = rows.reset_index(names=_ROW)
    rows = pd.wide_to_long(rows, measures, _ROW, "split", _OF, r"\w+").reset_index()
    if "status" not in rows:  # else a run may have diverged where nothing was measured
        rows = rows.dropna(how="all", subset=measures)
    return rows.sort_values(_ROW, kind="stable", ignore_index=True).drop(columns=_ROW)


def _refuse_single(rows: pd.DataFrame) -> None:
    """Refuses runs that were tested once, and have no amount in common to be compared at."""
    tests = rows[rows["split"].eq("test")]
    costs = tests[[name for name in COSTS if name in tests]]
    if tests["run"].is_unique and len(tests) > 1 and costs.nunique().min() > 1:
        raise ResultsError(
            f"each run was tested once, at {' and '.join(costs.columns)} of its own, so that they "
            "have no amount in common to be compared at. Take their histories, or say what all "
            "were trained on, columns={'examples': ...}."
        )


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
