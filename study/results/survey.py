"""Surveys a results directory: its complete cells, the files that hold them, damaged files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa

from study.results import parquet
from study.results.cell_copies import copies_of
from study.results.coverage import IDENTITY, Damage, fault_of
from study.results.listing import listed, of_each
from study.results.reader import Reader, joined
from study.storage.storage import Storage
from study.terminal.working import Part, working

PLACE = ["cell_id", "study", "comparison_id", "paradigm", "schedule", "seed", "stage"]
"""Columns of `CELLS_SCHEMA` that say where a cell belongs."""

TOGETHER = ["comparison_id", "paradigm", "schedule", "seed", "cell_id"]
"""Columns of `CELLS_SCHEMA` by which cells are ordered in merged files."""


@dataclass(frozen=True)
class Survey:
    """What a results directory holds.

    Attributes:
        statuses: id of each complete cell -> done, diverged or censored.
        damaged: files that are truncated, changed or foreign, or lack evaluations.
        cells: the columns `PLACE` of the complete cells.
        small: ids of those in files of their own and in no other, that will not go on.
    """

    statuses: Mapping[str, str]
    damaged: tuple[Damage, ...]
    cells: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=PLACE), compare=False)
    small: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Layout:
    """Which files hold the complete cells.

    A name stands for two files, `cells/NAME` and `evaluations/NAME`.

    Attributes:
        num_rows: id of each complete cell -> number of its evaluation rows. The cells are in the
            best order to store them: those of a comparison together, and in it the seeds of an
            option, which are read together.
        only_file: id -> name, of the cells that are stored under one name only.
        files: names, in the order in which they may be removed: of equal copies of a cell, the
            reader takes the one in the last file, so as long as that is left the result is the
            same.
        left_over: files `evaluations/NAME` without `cells/NAME` all of whose cells are stored
            elsewhere; a killed compaction leaves them.
    """

    num_rows: Mapping[str, int]
    only_file: Mapping[str, str]
    files: list[str]
    left_over: list[str]


def survey_of(storage: Storage) -> Survey:
    """Reads every file of a results directory.

    Raises:
        FileNotFoundError: a compaction removed files meanwhile.
        ResultsError: a file is of another schema.
    """
    files = listed(storage)
    damaged: list[Damage] = []
    schema = parquet.selected("cells", {*IDENTITY, *PLACE})
    none = schema.empty_table()

    def look_at_cells(file: str) -> pa.Table | Damage:
        try:
            parquet.verify(storage, "cells", file)
            return parquet.read(storage, "cells", file, columns=schema.names)
        except parquet.Damaged as error:
            return Damage(f"cells/{file}", str(error))

    def look_at_evaluations(file: str) -> Damage | None:
        try:
            parquet.verify(storage, "evaluations", file)
            parts = parquet.read_parts(storage, file, None, ["cell_id"])
            return fault_of(file, cells.get(file, none), parts)
        except parquet.Damaged as error:
            return Damage(f"evaluations/{file}", str(error))

    # Evaluations are written first, so read last: then every cell read has its evaluations.
    cells, complete = {}, {}
    with working("surveying results", sum(map(len, files.values())), "files") as part:
        for file, found in of_each(storage, look_at_cells, files["cells"], part).items():
            if isinstance(found, Damage):
                damaged.append(found)
            else:
                cells[file] = found
        looked_at = of_each(storage, look_at_evaluations, files["evaluations"], part)
        for file, fault in looked_at.items():
            if fault:
                damaged.append(fault)
            elif file in cells:
                complete[file] = cells[file]
    rows = joined(complete, schema)
    copies = copies_of(rows)
    taken = rows.take(copies.index[copies["taken"]].to_numpy())
    statuses = dict(zip(taken["cell_id"].to_pylist(), taken["status"].to_pylist(), strict=True))
    in_order = tuple(sorted(damaged, key=lambda each: each.name))
    own = copies.loc[copies["own"] & ~copies.duplicated("cell_id", keep=False), "cell_id"]
    small = (cell_id for cell_id in own if statuses[cell_id] != "censored")
    return Survey(statuses, in_order, taken.select(PLACE).to_pandas(), tuple(small))


def layout_of(storage: Storage) -> Layout:
    """Which files hold the complete cells.

    Raises:
        ResultsError: as `Results.cells`.
    """
    reader = Reader(storage)

    def look(cells: pa.Table, copies: pd.DataFrame, parts: Iterator[pa.Table]) -> Layout:
        own = set(copies.loc[copies["own"], "file"])
        files = sorted(set(copies["file"]), key=lambda file: (file not in own, file))
        counts: Counter[str] = Counter()
        for part in parts:
            for count in part["cell_id"].value_counts().to_pylist():
                counts[count["values"]] += count["counts"]
        ordered = cells.sort_by([(name, "ascending") for name in TOGETHER])
        num_rows = {cell_id: counts[cell_id] for cell_id in ordered["cell_id"].to_pylist()}
        single = copies[~copies.duplicated("cell_id", keep=False)]
        only_file = dict(zip(single["cell_id"], single["file"], strict=True))
        return Layout(num_rows, only_file, files[::-1], _left_over(storage, reader, cells))

    return reader.scan(look, ["cell_id"], cell_columns=TOGETHER)


def _left_over(storage: Storage, reader: Reader, cells: pa.Table) -> list[str]:
    """See `Layout.left_over`; `cells` are the rows of all complete cells."""
    files = listed(storage)
    alone = sorted(set(files["evaluations"]) - set(files["cells"]))
    parts = reader.rows("evaluations", alone, Part("reading results"), columns=["cell_id"])
    rows = joined(parts, parquet.selected("evaluations", ["cell_id"])).to_pandas()
    elsewhere = rows["cell_id"].isin(cells["cell_id"].to_pylist())
    needed = set(rows.loc[~elsewhere, "file"])
    return [f"evaluations/{file}" for file in alone if file not in needed]
