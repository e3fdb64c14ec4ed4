"""Equal compute: finds the evaluation of each cell and split at which its comparison is cut.

If the budget is counted in units of the axis, it is the same for all cells of a comparison, and at
one fraction of it they are less than a step apart. They are then cut at a fraction: the largest
that every done cell has recorded within the cut. Along any other axis, cells differ at one
fraction (a costlier paradigm has seen fewer mosaics). Each split is then cut at one value of the
axis, where every done cell was measured on it, and values are interpolated between the evaluations
around it. Recorded runs are cut where all were measured, if there is such a moment.

Evaluations come part by part, as `study.results` reads them. Only what may count is kept of each
part, so tens of millions of them need little memory. Pure functions of tables; row order never
matters.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from analysis.comparison.moments import MEASURED, Moments
from analysis.groups import AXES, Axis, is_recorded
from analysis.reading import measures_of, with_measures
from study import tasks
from study.results import (
    FURTHER,
    HEATMAP_EDGES,
    METRICS,
    SPLITS,
    ResultsError,
)

T = TypeVar("T")

_RECORDED_AS = {"flops": "compute", "seconds": "seconds", "mosaics": "examples"}
"""Axis -> the column of `analysis.record`."""

_COUNTS = ("step", "mosaics_seen", "compute_flops")
_SPLITS = len(SPLITS)
_COMPARED = [SPLITS.index(name) for name in ("validation", "test")]


@dataclass(frozen=True)
class Cut:
    """How cells are made comparable.

    Args:
        budget: where to cut, in units of `axis`, finite and > 0; None: the largest value that
            every done cell of a comparison has reached.
        axis: `flops`, training compute; `seconds`, measured training time; `mosaics`, seen in
            training.
        interpolate: also where cells could be cut at a fraction or a moment that they share,
            interpolate linearly at the budget itself, between the last evaluation within it and
            the first beyond it.
        threshold: SAIF is the share of instances whose attention on the foreground and score of
            the true class are both at least this, an inner edge of the heat maps; None: that of
            each task, as recorded.

    Raises:
        ResultsError: a value is out of range.
    """

    budget: float | None = None
    axis: Axis = "flops"
    interpolate: bool = False
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise ResultsError(f"an axis must be one of {', '.join(AXES)}, got {self.axis!r}.")
        budget = self.budget
        if budget is not None and not (is_number(budget) and math.isfinite(budget) and budget > 0):
            raise ResultsError(
                f"a budget must be a finite number of {self.unit} > 0, got {self.budget}."
            )

    @property
    def unit(self) -> str:
        return "FLOPs" if self.axis == "flops" else self.axis

    @property
    def column(self) -> str:
        """The column of the evaluations that is made equal."""
        return AXES[self.axis]

    def threshold_of(self, task: str) -> float:
        """The threshold of SAIF of a task."""
        return tasks.modality(task).saif_threshold if self.threshold is None else self.threshold

    def saif_of(
        self, task_of: NDArray[np.object_], saif: NDArray[np.float64], heatmaps: pa.ChunkedArray
    ) -> NDArray[np.float64]:
        """SAIF at this cut's threshold: as recorded, or from heat maps where it is another.

        Args:
            task_of: (B,) names of tasks.
            saif: (B,) as recorded.
            heatmaps: (B,) see `saif_at`.
        """
        found = saif.copy()
        for task in np.unique(task_of):
            modality, mine = tasks.modality(task), task_of == task
            if self.threshold not in (None, modality.saif_threshold):
                maps = heatmaps.filter(pa.array(mine))
                found[mine] = saif_at(maps, self.threshold_of(task), modality.heatmap_edges)
        return found


def coded(column: pa.ChunkedArray) -> tuple[list[str | None], NDArray[np.int64]]:
    """The distinct values of a column, and the index of each row's value among them."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    column = column.unify_dictionaries().combine_chunks()
    if column.null_count:
        column = column.dictionary_decode().dictionary_encode(null_encoding="encode")
    return column.dictionary.to_pylist(), column.indices.to_numpy().astype(np.int64)


def is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


class Source(Protocol):
    """Cells and their evaluations, in a table or in a directory."""

    def scan(
        self, consume: Callable[[pd.DataFrame, Iterator[pa.Table]], T], columns: Sequence[str]
    ) -> T:
        """Calls `consume` with one row a cell and with the evaluations in parts.

        The parts have `columns`; `cell_id` and `split` are dictionary-encoded.
        """
        ...


@dataclass(frozen=True, eq=False)
class CutCells:
    """Cells and their values at the cut.

    Attributes:
        cells: one row a cell.
        fraction: (cells,) fraction of the budget at which every done cell of the comparison has
            its last evaluation within the cut, or a later one where values are interpolated; 1
            where none is done.
        value: (cells, splits) value of the axis at which values are interpolated; NaN: they are
            taken at `fraction`; infinite: no cell is done and each is at its last evaluation.
        reach: (cells,) value of the axis up to which all done cells were measured on any split.
        last: one row a (cell, split) with a finite evaluation within the cut: `cell` and `split`
            (positions in `cells` and `SPLITS`) and the columns that were asked for. Where values
            are interpolated, `weight` is the share of the later evaluation, at `next_fraction`,
            and `between_<metric>` how far a value may be off that rises or falls steadily.
        reached: (cells, splits) whether the cell has a finite evaluation at the cut or beyond.
        splits: names of the splits that occur.
        measures: columns of `last` for the measures of their own that recorded runs have, where
            the column `measures` was asked for.
    """

    cells: pd.DataFrame
    fraction: NDArray[np.float64]
    value: NDArray[np.float64]
    reach: NDArray[np.float64]
    last: pd.DataFrame
    reached: NDArray[np.bool_]
    splits: list[str]
    measures: list[str]


@dataclass(frozen=True, eq=False)
class _Limits:
    """Where cells are cut: an evaluation is within the cut if it exceeds neither limit.

    Attributes:
        fraction: (cells,) fraction of the budget, infinite: no limit.
        value: (cells, splits) in units of the axis, infinite: no limit.
    """

    fraction: NDArray[np.float64]
    value: NDArray[np.float64]


def cut_cells(source: Source, cut: Cut, columns: Sequence[str]) -> CutCells:
    """Cuts every cell where its comparison is cut.

    Args:
        source: the cells, with the columns `cell_id`, `comparison_id`, `task`, `m`, `status`,
            `budget_amount`, `budget_unit`, `pack` and `shared_prefix`; and their evaluations.
        cut: where and how to cut.
        columns: columns of the evaluations to keep. Between evaluations, metrics and costs (steps,
            mosaics, compute, time) are interpolated.

    Raises:
        ResultsError: no cell; a budget that no comparison has reached, or that lies before a done
            cell's first evaluation of a trained network; on the axis `seconds`, cells that shared
            their training time.
    """
    columns = list(dict.fromkeys(["budget_fraction", cut.column, *columns]))
    needed = list(dict.fromkeys(["cell_id", "split", "loss", *MEASURED, *columns]))
    if cut.threshold is not None:
        needed = list(dict.fromkeys([*needed, "heatmap"]))

    def first(cells: pd.DataFrame, parts: Iterator[pa.Table]) -> _Reduction:
        if cells.empty:
            raise ResultsError(
                "there is no finished cell to compare. Run or resume a study first."
            )
        _refuse_threshold(cells, cut)
        _refuse_shared_time(cells, cut)
        budget = math.inf if cut.budget is None else cut.budget
        limits = _Limits(np.full(len(cells), np.inf), np.full((len(cells), _SPLITS), budget))
        moments = None
        if is_recorded(cells).any():  # what counts of a run is known after reading all of it
            moments, parts = Moments(cells, parts, cut.column, budget), iter(())
            if not cut.interpolate:
                limits = _Limits(limits.fraction, np.minimum(limits.value, moments.shared))
        return _Reduction(cells, cut, limits, columns, moments).of(parts)

    def again(limits: _Limits) -> _Reduction:
        fresh = functools.partial(_Reduction, started.cells, cut, limits, columns, started.moments)
        return source.scan(lambda _, parts: fresh().of(parts), needed)

    started = found = source.scan(first, needed)
    if started.moments:
        found = started = again(started.limits)
    started.refuse_late_budget()
    # What all cells have in common is known only after reading all: read again with the limits.
    while not found.lies_within(limits := found.common_limits()):
        found = again(limits)
    found.refuse_untrained(again)
    return found.result(limits)


def saif_at(
    heatmaps: pa.ChunkedArray, threshold: float, edges: Sequence[float] = HEATMAP_EDGES
) -> NDArray[np.float64]:
    """SAIF at another threshold (section 2.4), from recorded heat maps.

    Args:
        heatmaps: (B,) lists of bins * bins fractions, axis 0 = a_z, axis 1 = s_y; or null.
        threshold: one of the inner edges.
        edges: (bins + 1,) of the heat maps.

    Returns:
        (B,) fractions; NaN where there is no heat map.
    """
    lists = heatmaps.combine_chunks()
    known = np.asarray(lists.is_valid())
    first, bins = edges.index(threshold), len(edges) - 1
    shares = lists.filter(lists.is_valid()).flatten().to_numpy().reshape(-1, bins, bins)
    values = np.full(len(lists), np.nan)
    values[known] = shares[:, first:, first:].sum(axis=(1, 2))
    return values


class _Reduction:
    """Keeps what the cut may need of each (cell, split), while evaluations stream by.

    The code is the number of a (cell, split).
    """

    def __init__(
        self,
        cells: pd.DataFrame,
        cut: Cut,
        limits: _Limits,
        columns: Sequence[str],
        moments: Moments | None = None,
    ) -> None:
        self.cells = cells
        self.moments = moments  # of recorded runs
        self._cut, self.limits, self._columns = cut, limits, list(columns)
        self._number = {cell_id: number for number, cell_id in enumerate(cells["cell_id"])}
        self._task = cells["task"].to_numpy(object)
        self._comparison = pd.factorize(cells["comparison_id"])[0]
        self._diverged = (cells["status"] == "diverged").to_numpy(bool)
        self._done = (cells["status"] == "done").to_numpy(bool)
        self._recorded = is_recorded(cells).to_numpy(bool)
        self._budgeted = (cells["budget_unit"] == cut.axis).to_numpy(bool)
        exactly = cut.interpolate and cut.budget is not None
        self._by_fraction = self._budgeted & (not exactly)
        self._kept: list[pa.Table] = []
        self._next: list[pa.Table] = []
        self._last = pd.DataFrame()
        # By code: how far it got, and minus the first fraction at which the network is trained.
        self._farthest = np.full(len(cells) * _SPLITS, -np.inf)
        self._farthest_fraction = np.full(len(cells) * _SPLITS, -np.inf)
        self._first = np.full(len(cells) * _SPLITS, -np.inf)

    def of(self, parts: Iterator[pa.Table]) -> _Reduction:
        for part in parts:
            self._add(part)
        self._last = self._one_a_code(self._kept)
        self._farthest[np.isinf(self._farthest)] = np.nan
        self._farthest_fraction[np.isinf(self._farthest_fraction)] = np.nan
        return self

    def _add(self, part: pa.Table) -> None:
        # Cells are numbered within the part, so that counts by cell fit into a cache.
        ids, cell = coded(part["cell_id"])
        names, split = coded(part["split"])
        number = np.array([self._number.get(str(name), -1) for name in ids], np.int64)
        # The dictionary may name splits that no row has: those of refused rows.
        known = [SPLITS.index(name) if name in SPLITS else -1 for name in names]
        split = np.array(known, np.int64)[split]
        lost = number < 0
        if lost.any() or (self._diverged | self._recorded)[number].any():
            finite = ~self._diverged[number][cell] | np.isfinite(part["loss"].to_numpy())
            finite &= ~lost[cell]
            of_run = self._recorded[number][cell] & ~lost[cell]
            if self.moments and of_run.any():
                places = number[cell][of_run], split[of_run]
                finite[of_run] = self.moments.counted(part.filter(pa.array(of_run)), *places)
            part, cell, split = part.filter(pa.array(finite)), cell[finite], split[finite]
        x, fraction = (self._known(part, name) for name in (self._cut.column, "budget_fraction"))
        code = cell * _SPLITS + split
        codes = np.add.outer(number * _SPLITS, np.arange(_SPLITS)).ravel()
        _raise_to(self._farthest, codes, code, x)
        _raise_to(self._farthest_fraction, codes, code, fraction)
        _raise_to(self._first, codes, code, np.where(x > 0, -fraction, -np.inf))
        within = fraction <= self.limits.fraction[number][cell]
        within &= x <= self.limits.value[number][cell, split]
        part = part.append_column("code", pa.array(codes[code]))
        self._kept.append(self._taken(part, _latest(code, fraction, within)))
        if not self._by_fraction.all():
            after = ~(within | self._by_fraction[number][cell])
            self._next.append(self._taken(part, _latest(code, -fraction, after)))

    def _known(self, part: pa.Table, column: str) -> NDArray[np.float64]:
        values = part[column].to_numpy()
        if not np.isfinite(values).all():
            row = part["cell_id"][int(np.flatnonzero(~np.isfinite(values))[0])]
            others = " or ".join(name for name in AXES if name != self._cut.axis)
            if self._recorded[self._number[str(row)]]:
                raise ResultsError(
                    f"run {row} was recorded without {_RECORDED_AS[self._cut.axis]}. Make equal "
                    f"what it has, with --axis {others}, or name a study with --study."
                )
            raise ResultsError(
                f"cell {row} has evaluations without {column}. Compare on another axis (--axis "
                f"{others}), or move its files away and run its study again."
            )
        return values

    def _taken(self, part: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
        kept = part.take(rows)
        if self._cut.threshold is not None and "saif" in self._columns:
            task = self._task[kept["code"].to_numpy() // _SPLITS]
            saif = self._cut.saif_of(task, kept["saif"].to_numpy(), kept["heatmap"])
            at = kept.column_names.index("saif")
            kept = kept.set_column(at, "saif", pa.array(saif, pa.float64()))
        return kept.select(["code", *self._columns])

    def _one_a_code(self, parts: list[pa.Table], sign: int = 1) -> pd.DataFrame:
        """The latest row of each code (a cell may be in several parts); sign -1: the earliest."""
        if not parts:
            return pd.DataFrame(columns=["code", *self._columns])
        rows = pa.concat_tables(parts).to_pandas()
        fraction, among = rows["budget_fraction"].to_numpy(), np.ones(len(rows), bool)
        kept = _latest(rows["code"].to_numpy(), sign * fraction, among)
        return with_measures(rows.iloc[kept].reset_index(drop=True))

    def lies_within(self, limits: _Limits) -> bool:
        """Whether all kept rows lie within the limits."""
        code, fraction, x = self._at_last()
        of_cell, of_code = limits.fraction[code // _SPLITS], limits.value.ravel()[code]
        return bool(np.all((fraction <= of_cell) & (x <= of_code)))

    def common_limits(self) -> _Limits:
        """Where cells are cut: as far as all cells of a comparison have kept rows.

        A cell that ended early (diverged or censored) limits the others only where its next
        evaluation lies beyond the budget, never by its end.
        """
        value = np.minimum(self.limits.value, self._common_reach())
        return _Limits(
            fraction=np.where(self._by_fraction, self._common_fraction(), np.inf),
            value=np.where(self._by_fraction[:, None], self.limits.value, value),
        )

    def _at_last(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Code, fraction of the budget and value of the axis of each kept row."""
        fraction, x = (self._last[name] for name in ("budget_fraction", self._cut.column))
        code = self._last["code"].to_numpy(np.int64)
        return code, fraction.to_numpy(float), x.to_numpy(float)

    def _common_fraction(self) -> NDArray[np.float64]:
        code, fraction, _ = self._at_last()
        budget = math.inf if self._cut.budget is None else self._cut.budget
        counted = self._done[code // _SPLITS] | (self._farthest[code] > budget)
        return self._least(code[counted] // _SPLITS, fraction[counted])

    def _common_reach(self) -> NDArray[np.float64]:
        done = np.flatnonzero(self._done)
        return self._least(done, self._reach()[done])

    def _reach(self) -> NDArray[np.float64]:
        """(cells, splits) how far each got on the axis; one more step would exceed its budget.

        Training ends at the last step within the budget, so a cell spends less than it was given.
        """
        budget = self.cells["budget_amount"].to_numpy(float)[:, None]
        shape = len(self.cells), _SPLITS
        spent = budget * self._farthest_fraction.reshape(shape)
        return np.where(self._budgeted[:, None], spent, self._farthest.reshape(shape))

    def _ended(self) -> NDArray[np.float64]:
        """(cells, splits) where each was last measured; a recorded run ends on all its splits."""
        reach = self._reach()
        return np.where(self._recorded[:, None], np.fmax.reduce(reach, 1, keepdims=True), reach)

    def _least(self, cell: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(cells, ...) the least values of each cell's comparison; infinite: there is none."""
        least = np.full((len(self.cells), *values.shape[1:]), np.inf)
        np.fmin.at(least, self._comparison[cell], values)
        return least[self._comparison]

    def refuse_late_budget(self) -> None:
        """Refuses a budget beyond every comparison; one that falls short is cut at its reach."""
        reach, budget = self._common_reach()[:, _COMPARED].min(axis=1), self._cut.budget
        if budget is not None and (reach < budget).all():
            row = self.cells.iloc[int(reach.argmax())]
            raise ResultsError(
                f"a budget of {budget:g} {self._cut.unit} lies beyond what every cell of "
                f"{row['task']} m={row['m']} has reached. The largest usable budget is "
                f"{reach.max():,.10g} {self._cut.unit}."
            )

    def refuse_untrained(self, again: Callable[[_Limits], _Reduction]) -> None:
        """Refuses a budget before the first evaluation of a trained network.

        Args:
            again: reads all evaluations once more, with limits.
        """
        code, _, x = self._at_last()
        cell = code // _SPLITS
        kept = np.zeros(self._first.shape, bool)
        kept[code] = True
        lacking = np.isfinite(self._first) & ~kept & np.repeat(self._done, _SPLITS)
        untrained = self._done[cell] & ~(x > 0)
        if not (lacking.any() or untrained.any()):
            return
        at = int(cell[untrained][0] if untrained.any() else lacking.argmax() // _SPLITS)
        row = self.cells.iloc[at]
        where = f"{row['task']} m={row['m']}" if row["m"] else str(row["task"])
        if self._recorded[at] and self._cut.budget is None:
            raise ResultsError(
                f"run {row['cell_id']} of {where} ({row['paradigm']}, seed {row['seed']}) has no "
                f"evaluation of a split within the {self._common_reach()[at].min():,.10g} "
                f"{self._cut.unit} that all runs have spent. Record several evaluations of each "
                "run, on each split."
            )
        if self._cut.budget is None:
            raise ResultsError(
                f"the cells of {where} have no evaluation in common after their first step. "
                "Compare all evaluations that they have."
            )
        raise ResultsError(
            f"a budget of {self._cut.budget:g} {self._cut.unit} lies below the first evaluation "
            f"of a trained network of {where}. The smallest usable budget is "
            f"{self._smallest_budget(again):,.10g} {self._cut.unit}."
        )

    def _smallest_budget(self, again: Callable[[_Limits], _Reduction]) -> float:
        """Cost of the first fraction at which the networks of all cells are trained."""
        first = np.where(np.isfinite(self._first), self._first, np.inf)
        first = first.reshape(-1, _SPLITS).min(axis=1)
        done = np.flatnonzero(self._done)
        common = self._least(done, first[done])
        limits = -np.where(self._by_fraction, common, first)
        code, _, x = again(_Limits(limits, np.full((len(limits), _SPLITS), np.inf)))._at_last()
        counted = self._done | self._by_fraction  # a lost cell, too, where it limits others
        return float(x[counted[code // _SPLITS]].max())

    def result(self, limits: _Limits) -> CutCells:
        """Cells at the cut; all kept rows must lie within `limits`."""
        last = self._last
        last["weight"], last["next_fraction"] = 0.0, np.nan
        if not self._by_fraction.all():
            self._move_on(last, self._one_a_code(self._next, -1), limits)
        code = last["code"].to_numpy(np.int64)
        last = last.assign(cell=code // _SPLITS, split=code % _SPLITS).drop(columns="code")
        splits, done = set(last["split"]), np.flatnonzero(self._done)
        fraction = self._common_fraction()
        fraction[np.isinf(fraction)] = 1.0
        return CutCells(
            cells=self.cells,
            fraction=fraction,
            value=np.where(self._by_fraction[:, None], np.nan, limits.value),
            reach=self._least(done, np.fmax.reduce(self._reach()[done], axis=1)),
            last=last,
            reached=np.where(
                self._by_fraction[:, None],
                self._farthest_fraction.reshape(limits.value.shape) >= fraction[:, None],
                self._ended() >= limits.value,
            ),
            splits=[name for number, name in enumerate(SPLITS) if number in splits],
            measures=measures_of(last),
        )

    def _move_on(self, last: pd.DataFrame, after: pd.DataFrame, limits: _Limits) -> None:
        """Interpolates between the last evaluations within the limits and the next ones."""
        after = after.set_index("code").reindex(last["code"])
        code, _, x = self._at_last()
        following = after[self._cut.column].to_numpy(float)
        share = (limits.value.ravel()[code] - x) / (following - x)
        last["weight"] = np.where(np.isnan(following), 0.0, share)
        last["next_fraction"] = after["budget_fraction"].to_numpy()
        between = last["weight"].to_numpy() > 0  # 0 times NaN is NaN
        measured = {*METRICS, *FURTHER, *_COUNTS, "train_seconds", *measures_of(last)}
        for name in measured & set(last) & set(after):
            old, new = last[name].to_numpy(float), after[name].to_numpy(float)
            values = old + share * (new - old)
            if name in _COUNTS:
                values = values.round()
            last.loc[between, name] = values[between]
            if name not in _COUNTS:
                last[f"between_{name}"] = np.where(
                    between, np.maximum(share, 1 - share) * (new - old), 0
                )


def _latest(
    code: NDArray[np.int64], fraction: NDArray[np.float64], among: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The row with the largest fraction of each code, among the rows where `among` holds."""
    rows = np.flatnonzero(among)
    code, fraction = code[rows], fraction[rows]
    largest = np.full(code.max(initial=0) + 1, -np.inf)
    np.maximum.at(largest, code, fraction)
    best = np.flatnonzero(fraction == largest[code])
    return rows[best[np.unique(code[best], return_index=True)[1]]]


def _raise_to(
    largest: NDArray[np.float64],
    number: NDArray[np.int64],
    place: NDArray[np.int64],
    values: NDArray[np.float64],
) -> None:
    """Raises the largest value of each cell (or code) to the largest of its rows.

    Args:
        largest: one value a cell (or code), changed in place.
        number: (k,) position in `largest` of each cell of the part; negative: skipped.
        place: (rows,) position of each row's cell in `number`.
        values: (rows,) one value a row.
    """
    here = np.full(len(number), -np.inf)
    np.maximum.at(here, place, values)
    there = number >= 0
    largest[number[there]] = np.maximum(largest[number[there]], here[there])


def _refuse_threshold(cells: pd.DataFrame, cut: Cut) -> None:
    if cut.threshold is not None and is_recorded(cells).any():
        raise ResultsError(
            "recorded runs have no heat maps from which SAIF at another threshold follows. Leave "
            "the threshold out, or name a study of other cells."
        )
    for task in cells["task"].unique():
        inner = tasks.modality(task).heatmap_edges[1:-1]
        if cut.threshold is not None and cut.threshold not in inner:
            raise ResultsError(
                "a threshold must be an inner edge of the heat maps "
                f"({', '.join(f'{edge:g}' for edge in inner)}{_of(task, cells)}), got "
                f"{cut.threshold}."
            )


def _of(task: str, cells: pd.DataFrame) -> str:
    """Names a task where others have other edges."""
    every = {tasks.modality(each).heatmap_edges for each in cells["task"].unique()}
    return f" of {task}" if len(every) > 1 else ""


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
