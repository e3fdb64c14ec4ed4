"""Equal compute: of each cell and split, the last evaluation within a limit.

Evaluations come part by part, as `study.results` reads them, and of each part only what may count
is kept, so that tens of millions of them need no memory. Pure functions of tables; the order of
their rows never matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from analysis.groups import AXES, Axis
from study.results import (
    HEATMAP_EDGES,
    METRICS,
    RATIONALES,
    SAIF_THRESHOLD,
    SPLITS,
    ResultsError,
    coded,
)

T = TypeVar("T")

_BINS = len(HEATMAP_EDGES) - 1


@dataclass(frozen=True)
class Cut:
    """How cells are made comparable.

    Args:
        budget: where to cut, in units of `axis`, finite and > 0; None: at the largest value that
            every done cell of a comparison has reached.
        axis: `flops`, training compute; `seconds`, measured training time; `mosaics`, seen in
            training.
        interpolate: take values between the last evaluation within the cut and the first beyond
            it, in proportion, instead of those of the last.
        threshold: SAIF is the share of instances with attention on the foreground and score of
            the true class both at least this: an inner edge of the heat maps.

    Raises:
        ResultsError: a value that is none of these.
    """

    budget: float | None = None
    axis: Axis = "flops"
    interpolate: bool = False
    threshold: float = SAIF_THRESHOLD

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise ResultsError(f"an axis must be one of {', '.join(AXES)}, got {self.axis!r}.")
        budget = self.budget
        if budget is not None and not (is_number(budget) and math.isfinite(budget) and budget > 0):
            raise ResultsError(
                f"a budget must be a finite number of {self.unit} > 0, got {self.budget}."
            )
        if self.threshold not in HEATMAP_EDGES[1:-1]:
            edges = ", ".join(f"{edge:g}" for edge in HEATMAP_EDGES[1:-1])
            raise ResultsError(
                f"a threshold must be an inner edge of the heat maps ({edges}), got "
                f"{self.threshold}."
            )

    @property
    def unit(self) -> str:
        return "FLOPs" if self.axis == "flops" else self.axis

    @property
    def by_fraction(self) -> bool:
        """Whether cells are cut at a fraction of their budget, which is the same for all.

        The compute that a fraction comes to differs by less than a step.
        """
        return self.axis == "flops" and self.budget is None

    @property
    def column(self) -> str:
        """Of the evaluations, what is cut."""
        return "budget_fraction" if self.by_fraction else AXES[self.axis]

    @property
    def needs_heatmaps(self) -> bool:
        """Whether SAIF is not the one that was recorded."""
        return self.threshold != SAIF_THRESHOLD


def is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


class Source(Protocol):
    """Cells and their evaluations, in a table or in a directory."""

    def scan(
        self, consume: Callable[[pd.DataFrame, Iterator[pa.Table]], T], columns: Sequence[str]
    ) -> T:
        """Calls `consume` with one row a cell and with the evaluations in parts.

        The parts have `columns`, `cell_id` and `split` as dictionaries.
        """
        ...


@dataclass(frozen=True, eq=False)
class CutCells:
    """What is left of cells when they are cut.

    Attributes:
        cells: one row a cell.
        limits: (cells,) where each was cut, in units of the axis; infinite: nowhere.
        last: one row a (cell, split) with a finite evaluation within its limit: `cell` and
            `split`, numbers in `cells` and `SPLITS`, and the columns that were asked for. Where
            values are between two evaluations, `weight` is the share of the later one, which
            `next_fraction` names.
        farthest: (cells,) the largest value of the axis at a finite evaluation, NaN: none.
        farthest_fraction: (cells,) the same of the fraction of the budget.
        splits: names of the splits that occur.
    """

    cells: pd.DataFrame
    limits: NDArray[np.float64]
    last: pd.DataFrame
    farthest: NDArray[np.float64]
    farthest_fraction: NDArray[np.float64]
    splits: list[str]


def cut_cells(source: Source, cut: Cut, columns: Sequence[str]) -> CutCells:
    """Cuts every cell where its comparison is cut.

    Args:
        source: of which cells, with the columns `cell_id`, `comparison_id`, `task`, `m`,
            `status`, `pack` and `shared_prefix`.
        cut: how.
        columns: of the evaluations, to be kept; metrics are interpolated where `cut` says so.

    Raises:
        ResultsError: no cell; a budget below an evaluation that every cell starts with; cells
            that shared their training time, on the axis `seconds`.
    """
    columns = list(dict.fromkeys(["budget_fraction", cut.column, *columns]))
    needed = list(dict.fromkeys(["cell_id", "split", "loss", *columns]))
    if cut.needs_heatmaps:
        needed = list(dict.fromkeys([*needed, "heatmap"]))

    def first(cells: pd.DataFrame, parts: Iterator[pa.Table]) -> _Reduction:
        if cells.empty:
            raise ResultsError(
                "there is no finished cell to compare. Run or resume a study first."
            )
        _refuse_shared_time(cells, cut)
        everywhere = math.inf if cut.budget is None else cut.budget
        return _Reduction(cells, cut, np.full(len(cells), everywhere), columns).of(parts)

    found = source.scan(first, needed)
    if cut.budget is not None:
        found.refuse_early_budget()
        if cut.axis != "flops":  # of which all cells of a comparison are given the same
            _refuse_late_budget(found, cut)
        return found.result(np.full(len(found.cells), cut.budget))
    limits = _common_limits(found.cells, found.farthest)
    if (found.farthest > limits).any():  # which is known only now: from the start, with limits

        def again(_: pd.DataFrame, parts: Iterator[pa.Table]) -> _Reduction:
            return _Reduction(found.cells, cut, limits, columns).of(parts)

        found = source.scan(again, needed)
    return found.result(limits)


def saif_at(heatmaps: pa.ChunkedArray, threshold: float) -> NDArray[np.float64]:
    """SAIF at another threshold (section 2.4), from recorded heat maps.

    Args:
        heatmaps: (B,) lists of 25 fractions, axis 0 = a_z, axis 1 = s_y; or null.
        threshold: an inner edge of the heat maps.

    Returns:
        (B,) fractions; NaN where there is no heat map.
    """
    lists = heatmaps.combine_chunks()
    known = np.asarray(lists.is_valid())
    first = HEATMAP_EDGES.index(threshold)
    shares = lists.filter(lists.is_valid()).flatten().to_numpy().reshape(-1, _BINS, _BINS)
    values = np.full(len(lists), np.nan)
    values[known] = shares[:, first:, first:].sum(axis=(1, 2))
    return values


class _Reduction:
    """Keeps of each (cell, split) what the cut may need, while evaluations go by."""

    def __init__(
        self,
        cells: pd.DataFrame,
        cut: Cut,
        limits: NDArray[np.float64],
        columns: Sequence[str],
    ) -> None:
        self.cells = cells
        self._cut, self._limits, self._columns = cut, limits, list(columns)
        self._number = {cell_id: number for number, cell_id in enumerate(cells["cell_id"])}
        self._diverged = (cells["status"] == "diverged").to_numpy(bool)
        self._size = len(cells) * len(SPLITS)
        self._last: list[pa.Table] = []
        self._next: list[pa.Table] = []
        self._first = np.full(self._size, np.inf)
        self.farthest = np.full(len(cells), -np.inf)
        self._farthest_fraction = np.full(len(cells), -np.inf)

    def of(self, parts: Iterator[pa.Table]) -> _Reduction:
        for part in parts:
            self._add(part)
        if self._cut.by_fraction:
            self._farthest_fraction = self.farthest.copy()
        self.farthest[np.isinf(self.farthest)] = np.nan
        self._farthest_fraction[np.isinf(self._farthest_fraction)] = np.nan
        return self

    def _add(self, part: pa.Table) -> None:
        # Cells are numbered within the part, so that what is counted by cell fits into a cache.
        ids, cell = coded(part["cell_id"])
        names, split = coded(part["split"])
        number = np.array([self._number.get(str(name), -1) for name in ids], np.int64)
        # A dictionary may name splits that no row has: those of rows that were refused.
        known = [SPLITS.index(name) if name in SPLITS else -1 for name in names]
        split = np.array(known, np.int64)[split]
        lost = number < 0
        if lost.any() or self._diverged[number].any():
            finite = ~self._diverged[number][cell] | np.isfinite(part["loss"].to_numpy())
            finite &= ~lost[cell]
            part, cell, split = part.filter(pa.array(finite)), cell[finite], split[finite]
        x = part[self._cut.column].to_numpy()
        if not np.isfinite(x).all():
            row = part["cell_id"][int(np.flatnonzero(~np.isfinite(x))[0])]
            raise ResultsError(
                f"cell {row} has evaluations without {self._cut.column}. Compare on another "
                "axis, or move its files away and run its study again."
            )
        fraction = part["budget_fraction"].to_numpy()
        _raise_to(self.farthest, number, cell, x)
        if not self._cut.by_fraction:
            _raise_to(self._farthest_fraction, number, cell, fraction)
        code = cell * len(SPLITS) + split
        everywhere = number[cell] * len(SPLITS) + split
        if self._cut.budget is not None:
            np.minimum.at(self._first, everywhere, x)
        part = part.append_column("code", pa.array(everywhere))
        within = x <= self._limits[number][cell]
        self._last.append(self._kept(part, _latest(code, x, fraction, within)))
        if self._cut.interpolate:
            self._next.append(self._kept(part, _latest(code, -x, -fraction, ~within)))

    def _kept(self, part: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
        kept = part.take(rows)
        if self._cut.needs_heatmaps and "saif" in self._columns:
            saif = saif_at(kept["heatmap"], self._cut.threshold)
            at = kept.column_names.index("saif")
            kept = kept.set_column(at, "saif", pa.array(saif, pa.float64()))
        return kept.select(["code", *self._columns])

    def refuse_early_budget(self) -> None:
        early = np.where(np.isfinite(self._first), self._first, -np.inf)
        if (early > self._cut.budget).any():
            row = self.cells.iloc[int(early.argmax()) // len(SPLITS)]
            raise ResultsError(
                f"a budget of {self._cut.budget:g} {self._cut.unit} lies below the first "
                f"evaluation of {row['task']} m={row['m']}. The smallest usable budget is "
                f"{early.max():,.10g} {self._cut.unit}."
            )

    def result(self, limits: NDArray[np.float64]) -> CutCells:
        """What is left; nothing that was kept lies beyond `limits`."""
        last = self._one_a_code(self._last)
        last["weight"], last["next_fraction"] = 0.0, np.nan
        if self._cut.interpolate:
            self._move_on(last, self._one_a_code(self._next, -1))
        code = last["code"].to_numpy()
        last = last.assign(cell=code // len(SPLITS), split=code % len(SPLITS)).drop(columns="code")
        splits = set(last["split"])
        return CutCells(
            cells=self.cells,
            limits=limits,
            last=last,
            farthest=self.farthest,
            farthest_fraction=self._farthest_fraction,
            splits=[name for number, name in enumerate(SPLITS) if number in splits],
        )

    def _one_a_code(self, parts: list[pa.Table], sign: int = 1) -> pd.DataFrame:
        """What is kept of all parts, since a cell may lie in several; sign -1: the earliest."""
        if not parts:
            return pd.DataFrame(columns=["code", *self._columns])
        rows = pa.concat_tables(parts).to_pandas()
        x, fraction = (rows[name].to_numpy() for name in (self._cut.column, "budget_fraction"))
        code = rows["code"].to_numpy()
        among = np.ones(len(rows), bool)
        kept = _latest(code, sign * x, sign * fraction, among)
        return rows.iloc[kept].reset_index(drop=True)

    def _move_on(self, last: pd.DataFrame, after: pd.DataFrame) -> None:
        """Interpolates between the last evaluations within the limits and the next ones."""
        after = after.set_index("code").reindex(last["code"])
        limits = self._limits[last["code"] // len(SPLITS)]
        x = last[self._cut.column].to_numpy(float)
        following = after[self._cut.column].to_numpy(float)
        share = (limits - x) / (following - x)
        last["weight"] = np.where(np.isnan(following), 0.0, share)
        last["next_fraction"] = after["budget_fraction"].to_numpy()
        between = last["weight"].to_numpy() > 0  # 0 times what is not known is not known
        for name in {*METRICS, *RATIONALES} & set(self._columns):
            old, new = last[name].to_numpy(float), after[name].to_numpy(float)
            last[name] = np.where(between, old + share * (new - old), old)


def _latest(
    code: NDArray[np.int64],
    x: NDArray[np.float64],
    fraction: NDArray[np.float64],
    among: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Of each code, the row with the largest x, of equals the largest fraction, among some."""
    rows = np.flatnonzero(among)
    code, x = code[rows], x[rows]
    largest = np.full(code.max(initial=0) + 1, x.min(initial=0), x.dtype)
    np.maximum.at(largest, code, x)
    best = np.flatnonzero(x == largest[code])
    best = best[np.lexsort((fraction[rows[best]], code[best]))]
    is_last = np.append(code[best][1:] != code[best][:-1], True)[: len(best)]
    return rows[best[is_last]]


def _raise_to(
    largest: NDArray[np.float64],
    number: NDArray[np.int64],
    cell: NDArray[np.int64],
    x: NDArray[np.float64],
) -> None:
    """Raises the largest value of every cell to that of its rows.

    Args:
        largest: (cells,) changed in place.
        number: (cells of the part,) of each in `largest`, -1: it has no row.
        cell: (rows,) of each row in `number`.
        x: (rows,) values.
    """
    here = np.full(len(number), -np.inf)
    np.maximum.at(here, cell, x)
    there = number >= 0
    largest[number[there]] = np.maximum(largest[number[there]], here[there])


def _common_limits(cells: pd.DataFrame, farthest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each cell: the largest value that all done cells of its comparison have reached."""
    done = pd.Series(farthest).where((cells["status"] == "done").to_numpy())
    common = done.groupby(cells["comparison_id"].to_numpy()).transform("min")
    return common.fillna(np.inf).to_numpy()


def _refuse_late_budget(found: _Reduction, cut: Cut) -> None:
    """Nothing would be equal: some cells have ended, others have not."""
    limits = _common_limits(found.cells, found.farthest)
    if cut.budget is not None and (limits < cut.budget).any():
        row = found.cells.iloc[int(limits.argmin())]
        raise ResultsError(
            f"a budget of {cut.budget:g} {cut.unit} lies beyond what every cell of {row['task']} "
            f"m={row['m']} has reached. The largest usable budget is {limits.min():,.10g} "
            f"{cut.unit}; without --budget, comparisons are cut there."
        )


def _refuse_shared_time(cells: pd.DataFrame, cut: Cut) -> None:
    shared = (cells["pack"] > 1) | cells["shared_prefix"].astype(bool)
    if cut.axis == "seconds" and shared.any():
        raise ResultsError(
            f"{int(shared.sum())} of {len(cells)} cells have no training time of their own: they "
            "were trained in packs or share a prefix. Compare at equal flops or mosaics, or run "
            "the study with --pack none --no-share into another results directory."
        )
    for name in ("device", "threads"):
        kinds = cells.groupby("comparison_id")[name].unique()
        for values in kinds[kinds.map(len) > 1] if cut.axis == "seconds" else ():
            raise ResultsError(
                f"cells of one comparison were trained with {name} "
                f"{', '.join(map(str, values))}: their seconds are not comparable. Compare at "
                "equal flops or mosaics."
            )
