"""Runs of W&B, MLflow and TensorBoard: which of their columns is which of `record`'s.

A column is known by its name; what no name tells, what is compared above all, is asked for.
"""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
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

_STATES = ("finished", "running", "crashed", "failed", "killed", "preempted", "pending")
_CLOCKS: Mapping[str, Any] = {
    "timestamp": "ms",
    "wall_time": "s",
    "_timestamp": "s",
    "end_time": None,
}
"""Column of moments -> its unit, if they are numbers."""

_SINCE = "time since start"
_OF_A_VALUE = {"key", "tag", "value", *_CLOCKS, "model_id", "dataset_name", "dataset_digest"}
"""Columns of a table of single values that do not say of which run and step one is."""

_SETTINGS = ("config.", "params.")
_NO_SETTINGS = ("_", "step", "metrics.", "tags.")
_OF_RUNS = ("split", "status", "stage", "task", "num_classes", "architecture")
"""Further columns of `record` that are known by its own names; m and n may be anything."""

_SPLITS = {
    "train": "train",
    **dict.fromkeys(("val", "valid", "validation", "dev", "eval"), "validation"),
    "test": "test",
}
_WORD = "|".join(_SPLITS)
_METRIC = re.compile(rf"(?:metrics\.)?(?:({_WORD})[/_.])?(.*?)(?:[/_.]({_WORD}))?", re.I)
_OF = ", "  # between a measure and its split
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
        ResultsError: a column that is told is not there, it has to be told which one is what, or
            two runs would be one; the message lists what there is.
    """
    begins = {str(name).split(".")[0] for name in table} - {*options, *measures}
    tool = next((tool for mark, tool in _TOOLS.items() if mark in begins), None)
    if not (tool or columns):
        return table
    table, lost = _ended(_moments(_flat(table)) if tool else table)
    if table.empty or table.columns.has_duplicates:
        return table
    for theirs in columns.values():
        if theirs not in table:
            raise ResultsError(str(unknown("column", theirs, table.columns)))
    names = _names([str(name) for name in table], columns, options, measures)
    left = [name for name in map(str, table) if name not in names]
    _refuse_untold(f"these are runs of {tool or 'another tool'}", table, names, left, measures)
    if tool:
        _refuse_alike(table, names, left, {*COSTS, *KNOWN, *measures})
    _say(table, names, left, lost)
    return _by_split(table[[*names]].set_axis([*names.values()], axis=1))


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
    table = table.rename(columns={"Wall time": "wall_time", "Step": "step", "Value": "value"})
    for name in [name for name in _CLOCKS if name in table][:1]:
        at = pd.to_datetime(table[name], unit=_CLOCKS[name], utc=True)
        begin = pd.to_datetime(table.get("start_time", at), utc=True)
        spent = at - begin.groupby(_run(table)).transform("min")
        table[_SINCE] = spent.dt.total_seconds()
    label = next((name for name in ("key", "tag") if name in table), "")
    if not {"value", label} <= {*table}:
        if {"value", "wall_time"} <= {*table}:
            raise ResultsError("of what run and tag is this? Add the columns run and tag.")
        return table
    by = [n for n in map(str, table) if n not in {*_OF_A_VALUE, _SINCE} and "metrics." not in n]
    for name in {_SINCE} & {*table}:
        table[name] = table.groupby(by, dropna=False)[name].transform("max")
        by.append(name)
    values = table.groupby([*by, label], sort=False, dropna=False)["value"].last()
    return values.unstack().reset_index()


def _run(table: pd.DataFrame) -> pd.Series:
    """The run of each row: each is one in W&B's table of runs; else all are, if none is named."""
    for name in _RUNS:
        if name in table:
            return table[name].astype(str)
    return pd.Series(table.index if "Name" in table else "", table.index).astype(str)


def _ended(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The runs that have ended as they should, and how many of which other state there are."""
    for name in ("State", "state", "status"):
        if name in table and (states := table[name].astype(str).str.lower()).isin(_STATES).all():
            ended = states.eq("finished")
            gone = states[~ended].groupby(_run(table)).first().value_counts()
            lost = ", ".join(f"{count} {state}" for state, count in gone.items())
            if not ended.any():
                raise ResultsError(f"none of these runs has finished: {lost}.")
            return table[ended].drop(columns=name), lost
    return table, ""


def _names(
    there: Sequence[str],
    columns: Mapping[str, str],
    options: Sequence[str],
    measures: Sequence[str],
) -> dict[str, str]:
    """Their column -> that of `record`, of a measure with its split."""
    known = {name.lower(): name for name in (*KNOWN, *measures)} | {"acc": "accuracy"}
    told = {theirs: ours for ours, theirs in columns.items()}
    plain = {"paradigm", "seed", *options, *COSTS, *_OF_RUNS, *columns}
    splits = {split for word, split in map(_parts, there) if word in known}
    names: dict[str, str] = {}
    # What is told comes first; a learning rate may be logged beside the one that was set.
    for theirs in [*told, *sorted(there, key=lambda name: not name.startswith(_SETTINGS))]:
        name = re.sub(r"^(config|params|metrics)\.", "", told.get(theirs, theirs))
        word, split = _parts(name)
        if word in known:
            # Where others name a split, one without is that of training, as Keras has it.
            usual = "train" if splits - {""} and theirs not in told else "test"
            name = f"{known[word]}{_OF}{split or usual}"
        elif name not in plain:
            continue
        if name not in names.values():
            names.setdefault(theirs, name)
    for theirs in ("_runtime", "Runtime", _SINCE):
        if theirs in there and not {*COSTS} & {*names.values()}:
            names[theirs] = "seconds"
    if "split" in names.values():
        return {theirs: name.split(_OF)[0] for theirs, name in names.items()}
    return names


def _parts(name: str) -> tuple[str, str]:
    """The word for a measure, and the split that the name of a metric begins or ends with."""
    match = _METRIC.fullmatch(name)
    before, word, after = match.groups("") if match else ("", name, "")
    return word.lower(), _SPLITS.get((before or after).lower(), "")


def _refuse_untold(
    whose: str,
    table: pd.DataFrame,
    names: Mapping[str, str],
    left: Sequence[str],
    measures: Sequence[str],
) -> None:
    """Asks for what no name says, with what there is to choose from."""
    ours = {name: theirs for theirs, name in names.items()}
    if not {"paradigm", "seed"} <= {*ours}:
        told = {name: ours.get(name, "...") for name in ("paradigm", "seed")}
        raise ResultsError(
            f"{whose}. Say what is compared and the seed: columns={told}; what varies is "
            f"{_varying(table, left)}."
        )
    measured = {name.split(_OF)[0] for name in ours} & {"accuracy", "saif", *measures}
    others = [*left, *(["loss"] if any(name.startswith("loss") for name in ours) else [])]
    if {*measures} - measured or not measured:
        raise ResultsError(
            f"{whose}, and no column is {' or '.join(measures) or 'accuracy or saif'}. Say which, "
            "columns={'test/accuracy': ...}, or name others, measures=[...]: "
            f"{', '.join(others)}."
        )


def _refuse_alike(
    table: pd.DataFrame, names: Mapping[str, str], left: Sequence[str], numbers: Collection[str]
) -> None:
    """Refuses two of their runs that would be one, as they are where an option is forgotten."""
    run = _run(table)
    same = [table[n].astype(str) for n, o in names.items() if _OF not in o and o not in numbers]
    alike: Any = run.groupby(same, sort=False).unique()
    for key, runs in alike[alike.str.len() > 1].items():
        raise ResultsError(
            f"the runs {' and '.join(runs[:2])} are both {', '.join(key)}. What tells them apart? "
            f"Name it in options=[...]; what varies is {_varying(table[run.isin(runs)], left)}."
        )


def _varying(table: pd.DataFrame, left: Sequence[str]) -> str:
    """Settings that differ between runs; a number that hardly a row shares is a result."""
    most = max(len(table) / 2, 2)
    found = [name for name in left if 1 < table[name].astype(str).nunique() <= most]
    settings = [name for name in found if name.startswith(_SETTINGS)]
    others = [name for name in found if not name.startswith(_NO_SETTINGS)]
    return ", ".join(settings or others) or "nothing"


def _say(table: pd.DataFrame, names: Mapping[str, str], left: Sequence[str], lost: str) -> None:
    """Prints what was taken for what, and what was left out."""
    said = table[[*names]].astype(object).bfill().iloc[0].map(_text).str[:40].reset_index()
    said = said.set_axis(["taken from", "for example"], axis=1)
    said.insert(0, "column", [*names.values()])
    print(said.to_markdown(index=False, tablefmt="simple", disable_numparse=True))
    line = f"Columns left out: {', '.join(left) or 'none'}"
    print(textwrap.shorten(line, _WIDTH, placeholder=" and more"))
    if lost:
        print(f"Runs left out: {lost}. A crash is no divergence.")
    if {*COSTS} & {*names.values()} == {"seconds"}:
        print("No column is compute or examples, so runs are compared at equal seconds.")


def _by_split(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per split, in the order of the table; numbers in text as numbers."""
    for name in {*rows} - {"paradigm", *_OF_RUNS}:
        with contextlib.suppress(TypeError, ValueError):
            rows[name] = pd.to_numeric(rows[name].replace(["NaN", "nan"], None))
    rows["paradigm"] = rows["paradigm"].map(_text, na_action="ignore")
    if "split" in rows:
        return rows
    measures = sorted({name.split(_OF)[0] for name in map(str, rows) if _OF in name})
    rows = rows.reset_index(names="row")
    rows = pd.wide_to_long(rows, measures, "row", "split", _OF, r"\w+").reset_index()
    if "status" not in rows:  # else a run may have diverged where nothing was measured
        rows = rows.dropna(how="all", subset=measures)
    return rows.sort_values("row", kind="stable", ignore_index=True).drop(columns="row")


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
