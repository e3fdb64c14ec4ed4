"""Equal compute: where each split of a comparison is cut.

*At a moment*: the last one, within the budget, at which all done cells were measured on it. A
moment is a fraction of the budget, if that is counted in units of the axis: at one fraction, cells
are less than a step apart. Of recorded runs, which have no budget, it is a value of the axis.

*At a value of the axis*, where cells share no moment, or along another axis: the budget, or where
the first done cell was last measured on the split. Values are interpolated there between the
evaluations around it.

DuckDB reads the evaluations, so tens of millions of them take little memory. Row order never
matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from analysis.digest.sources import Source
from analysis.groups import AXES, Axis, is_recorded
from study import tasks
from study.results import HEATMAP_EDGES, KEY, ResultsError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EARLY = 0.9
"""Cut below this share of where it could be, a comparison of recorded runs is cut early."""

_MEASURED = ("loss", "accuracy", "saif", "measures")
"""Columns by which an evaluation says whether it counts."""

_RECORDED_AS = {"flops": "compute", "seconds": "seconds", "mosaics": "examples"}
"""Axis -> the column of `analysis.record`."""

_COUNTED = """
create temp table measured as -- evaluations of recorded runs, with the names of what was measured
with named as (
    select cell_id, comparison_id, split, done, budget_fraction, {x}::double as x, list_concat(
        if(isfinite(accuracy), ['accuracy'], []), if(isfinite(saif), ['saif'], []),
        json_keys(measures)
    ) as names
    from evaluations join cells using (cell_id) where recorded
), whenever as (
    select cell_id, split, list_distinct(flatten(list(names))) as ever from named group by all
)
select * from named join whenever using (cell_id, split) where len(names) > 0;

create temp table needed as -- what all done runs have on a split: all of it, or the main measure
with held as (
    select distinct comparison_id, split, cell_id, unnest(names) as name
    from measured where done and x > 0
), runs as (
    select comparison_id, split, count(distinct cell_id) as runs from held group by all
), common as (
    select comparison_id, split, name from held join runs using (comparison_id, split)
    group by comparison_id, split, name, runs having count(*) = runs
), listed as (
    select comparison_id, split,
        list(name order by name <> 'accuracy', name <> 'saif', name) as names
    from common group by all
)
select comparison_id, split, 'all' as basis, names as needed from listed
union all select comparison_id, split, 'main', names[:1] from listed;

create temp view counted as -- evaluations that count; a moment is what cells may share
select 'all' as basis, cell_id, comparison_id, split, done, budget_fraction, {x}::double as x,
    if(budgeted and not getvariable('exactly'), budget_fraction, null) as moment
from evaluations join cells using (cell_id)
where not recorded and not (diverged and not isfinite(loss))
union all
select coalesce(basis, 'all'), cell_id, comparison_id, split, done, budget_fraction, x,
    if(getvariable('interpolate'), null, x)
from measured left join needed using (comparison_id, split)
where list_has_all(names, list_intersect(coalesce(needed, []), ever))
qualify row_number() over (
    partition by basis, cell_id, split, x order by budget_fraction desc
) = 1;

create temp table spans as -- how far each cell was measured; it ends at a step within its budget
with ends as ( -- of lost cells, where that was seen, whatever was measured there
    select cell_id, max(budget_fraction) as end_fraction, max({x}::double) as end_x
    from evaluations join cells using (cell_id) where diverged group by all
)
select *, if(budgeted, budget_amount * last_fraction, last_x) as reach,
    if(budgeted, budget_amount * end_fraction, end_x) as lost_at
from (
    select basis, cell_id, split, max(budget_fraction) as last_fraction, max(x) as last_x,
        min(x) filter (x > 0) as first_x, count_if(not coalesce(isfinite(x), false)) as unknown
    from counted group by all
) join cells using (cell_id) left join ends using (cell_id);
"""

_CUTS = """
create temp table cuts as -- of each comparison and split: a fraction of the budget, or a value
with ends as ( -- how many done cells there are, and where the first of them ended
    select basis, comparison_id, split, any_value(recorded) as recorded,
        count(*) filter (done) as num_done, min(reach) filter (done) as reach
    from spans group by all
), moments as (
    select basis, comparison_id, split, moment, count(*) filter (done) as num_done,
        max(x) as dearest, min(x) filter (done) as cheapest
    from counted where moment is not null group by all
), shared as (
    select basis, comparison_id, split, max(moment) as moment
    from moments join ends using (basis, comparison_id, split, num_done)
    where cheapest > 0 and dearest <= getvariable('budget') group by all
), found as (
    select *, max(num_done) over same as most, max(moment) over same as last_moment,
        if(last_moment is null, if(num_done = most, reach, null), moment) as place
    from ends left join shared using (basis, comparison_id, split)
    window same as (partition by comparison_id, split)
), ranked as ( -- all measures count, unless the main one alone leads much further
    select *, max(place) over (partition by comparison_id, split) as furthest,
        coalesce(place, 0) < getvariable('early') * furthest as is_early
    from found
)
select basis, comparison_id, split, reach, if(recorded, null, moment) as fraction,
    if(fraction is null, coalesce(moment, least(reach, getvariable('budget'))), null) as value
from ranked
qualify row_number() over (partition by comparison_id, split order by is_early, basis) = 1;
"""

_AROUND = """
create temp table around as -- the last evaluation of each cell within the cut, and the next one
with placed as ( -- of done cells, one lies at the fraction itself
    select *, done and fraction is not null as exactly
    from spans join cuts using (basis, comparison_id, split)
), last as (
    select cell_id, split,
        max(budget_fraction) filter (within) as budget_fraction,
        min(budget_fraction) filter (not within) as next_fraction,
        max(x) filter (within) as x, min(x) filter (not within) as next_x
    from (
        select counted.*, coalesce(budget_fraction <= fraction, x <= value) as within
        from counted join placed using (basis, cell_id, split) where not exactly
    )
    group by all
)
select cell_id, comparison_id, split, task, done, first_x, fraction, value,
    if(exactly, fraction, last.budget_fraction) as budget_fraction,
    if(exactly, first_x, last.x) as x,
    if(last.budget_fraction = fraction, null, next_fraction) as next_fraction,
    coalesce(
        (fraction - last.budget_fraction) / (next_fraction - last.budget_fraction),
        (value - last.x) / (next_x - last.x), 0
    ) as weight,
    coalesce(last_fraction >= fraction, placed.reach >= value) as reached,
    max(placed.reach) over (partition by cell_id) as farthest,
    coalesce(
        max(last_fraction) over (partition by cell_id) >= fraction, farthest >= value
    ) or coalesce(end_fraction > fraction, lost_at > value, false) as went_on
from placed left join last using (cell_id, split);
"""

_FOUND = """
with found as (
    select comparison_id, split, fraction, value, min(budget_fraction) filter (done) as cut,
        min(farthest) filter (done) as reach
    from around group by all
)
select comparison_id, split, fraction, value, coalesce(cut, 1) as cut,
    coalesce(min(reach) over (partition by comparison_id), 'inf'::double) as reach
from found
"""

_PLACES = """
select cell_id, split, budget_fraction, next_fraction, weight, reached, went_on
from around
"""

_ROWS = """
select next, task, {columns} from evaluations join (
    select cell_id, split, budget_fraction, task, false as next from around
    union all
    select cell_id, split, next_fraction, task, true from around where next_fraction is not null
) using (cell_id, split, budget_fraction)
"""


class Evaluations(NamedTuple):
    """What is read of the evaluations.

    Attributes:
        cuts: one row a comparison and split: `fraction` of the budget, or `value` of the axis at
            which it is cut (infinite: no cell is done), the other is missing; `cut`, the fraction
            of the budget up to which all done cells have evaluations within it (1: none is done);
            `reach`, the value up to which they were measured on any split.
        places: one row a cell and split: `budget_fraction` of its last evaluation within the cut,
            and `next_fraction` of the one after; `weight`, the share of the latter in the
            value at the cut; `reached` and `went_on`, whether the cell was measured there or
            beyond, on this split or any; a lost one, too, that was seen to be so beyond.
        rows: those evaluations, with the columns that were asked for; `next`: it is the later one.
    """

    cuts: pd.DataFrame
    places: pd.DataFrame
    rows: pd.DataFrame


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
        for name, value in [*vars(self).items()]:  # DuckDB knows no scalars of NumPy and pandas
            plain = value.item() if isinstance(value, np.generic) else value
            object.__setattr__(self, name, None if plain is pd.NA else plain)
        if self.axis not in AXES:
            raise ResultsError(f"an axis must be one of {', '.join(AXES)}, got {self.axis!r}.")
        number = isinstance(self.budget, Real) and not isinstance(self.budget, bool)
        if self.budget is not None and not (number and 0 < self.budget < math.inf):
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

    def with_saif(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows with SAIF at this threshold, from their heat maps where the task's is another.

        Args:
            rows: with `task`, `saif` and, where a threshold is asked for, `heatmap`.
        """
        if self.threshold is None:
            return rows
        saif = rows["saif"]
        for task in rows["task"].unique():
            modality, mine = tasks.modality(task), rows["task"] == task
            if self.threshold != modality.saif_threshold:
                heatmaps = rows.loc[mine, "heatmap"]
                saif = saif.mask(mine, saif_at(heatmaps, self.threshold, modality.heatmap_edges))
        return rows.assign(saif=saif)


def read_around(source: Source, cut: Cut, columns: Sequence[str]) -> Evaluations:
    """Finds the evaluations around the cut.

    Args:
        source: cells and their evaluations.
        cut: where and how to cut.
        columns: of the evaluations.

    Raises:
        ResultsError: no cell; a budget that no comparison has reached, or that lies before a done
            cell's first evaluation of a trained network; on the axis `seconds`, cells that shared
            their training time.
    """
    cells = source.cells
    if cells.empty:
        raise ResultsError("there is no finished cell to compare. Run or resume a study first.")
    _refuse_threshold(cells, cut)
    _refuse_shared_time(cells, cut)
    columns = list(dict.fromkeys([*KEY, cut.column, *columns]))

    def question(database: DuckDBPyConnection) -> Evaluations:
        database.register("cells", _known(cells, cut))
        budget = math.inf if cut.budget is None else cut.budget
        exactly = cut.interpolate and cut.budget is not None
        variables = {"budget": budget, "interpolate": cut.interpolate, "exactly": exactly}
        for name, value in (variables | {"early": EARLY}).items():
            database.execute(f"set variable {name} = ?", [value])
        database.execute(_COUNTED.format(x=cut.column))
        _refuse_unknown(database.sql("from spans where unknown > 0 order by cell_id").df(), cut)
        database.execute(_CUTS)
        _refuse_late(cells, database.sql("from cuts").df(), cut)
        database.execute(_AROUND)
        _refuse_untrained(cells, database.sql("from around order by cell_id").df(), cut)
        rows = _ROWS.format(columns=", ".join(columns))
        return Evaluations(*(database.sql(each).df() for each in (_FOUND, _PLACES, rows)))

    return source.ask(question, list(dict.fromkeys([*columns, *_MEASURED])))


def _known(cells: pd.DataFrame, cut: Cut) -> pd.DataFrame:
    """What the queries know of the cells."""
    return cells[["cell_id", "comparison_id", "task"]].assign(
        done=cells["status"] == "done",
        diverged=cells["status"] == "diverged",
        recorded=is_recorded(cells),
        budgeted=cells["budget_unit"] == cut.axis,
        budget_amount=cells["budget_amount"].astype(float),
    )


def saif_at(
    heatmaps: pd.Series, threshold: float, edges: Sequence[float] = HEATMAP_EDGES
) -> pd.Series:
    """SAIF at another threshold (section 2.4), from recorded heat maps.

    Args:
        heatmaps: bins * bins fractions each, axis 0 = a_z, axis 1 = s_y; or missing.
        threshold: one of the inner edges.
        edges: (bins + 1,) of the heat maps.

    Returns:
        Fractions; NaN where there is no heat map.
    """
    first, bins = edges.index(threshold), len(edges) - 1

    def share(heatmap: Sequence[float]) -> float:
        return float(np.reshape(heatmap, (bins, bins))[first:, first:].sum())

    return heatmaps.dropna().map(share).reindex(heatmaps.index).astype(float)


def _refuse_unknown(unknown: pd.DataFrame, cut: Cut) -> None:
    if unknown.empty:
        return
    first = unknown.iloc[0]
    others = " or ".join(name for name in AXES if name != cut.axis)
    if first["recorded"]:
        raise ResultsError(
            f"run {first['cell_id']} was recorded without {_RECORDED_AS[cut.axis]}. Compare on an "
            f"axis that it has, --axis {others}, or name a study with --study."
        )
    raise ResultsError(
        f"cell {first['cell_id']} has evaluations without {cut.column}. Compare on another axis "
        f"(--axis {others}), or move its files away and run its study again."
    )


def _refuse_late(cells: pd.DataFrame, cuts: pd.DataFrame, cut: Cut) -> None:
    """Refuses a budget beyond every comparison; one that falls short is cut at its end."""
    compared = cuts[cuts["split"].isin(["validation", "test"])]
    reach = compared.groupby("comparison_id")["reach"].min().fillna(math.inf)
    if cut.budget is not None and (reach < cut.budget).all():
        row = cells[cells["comparison_id"] == reach.idxmax()].iloc[0]
        raise ResultsError(
            f"a budget of {cut.budget:g} {cut.unit} lies beyond what every cell of {row['task']} "
            f"m={row['m']} has reached. The largest usable budget is {_digits(reach.max())} "
            f"{cut.unit}."
        )


def _refuse_untrained(cells: pd.DataFrame, around: pd.DataFrame, cut: Cut) -> None:
    """Refuses a cut before the first evaluation of a trained network."""
    trains_on = around["done"] | around["next_fraction"].notna()
    untrained = around[trains_on & ~(around["x"] > 0)]
    if untrained.empty:
        return
    first = untrained.iloc[0]
    row = cells[cells["cell_id"] == first["cell_id"]].iloc[0]
    where = f"{row['task']} m={row['m']}" if row["m"] else str(row["task"])
    if cut.budget is not None:
        raise ResultsError(
            f"a budget of {cut.budget:g} {cut.unit} lies below the first evaluation of a trained "
            f"network of {where}. The smallest usable budget is "
            f"{_digits(around['first_x'].max())} {cut.unit}."
        )
    value = first["value"]
    spent = "what" if math.isnan(value) else f"the {value:,.10g} {cut.unit} that"
    raise ResultsError(
        f"run {row['cell_id']} of {where} ({row['paradigm']}, seed {row['seed']}) has no "
        f"evaluation of a trained network on the {first['split']} split within {spent} all have "
        "spent. Record several of each run, on each split, and compare all that there are."
    )


def _digits(value: float) -> str:
    """All of them: rounded, the largest usable budget might be none, nor may it have commas."""
    return np.format_float_positional(value, trim="-")


def _refuse_threshold(cells: pd.DataFrame, cut: Cut) -> None:
    if cut.threshold is None:
        return
    if is_recorded(cells).any():
        raise ResultsError(
            "recorded runs have no heat maps from which SAIF at another threshold follows. Leave "
            "the threshold out, or name a study of other cells."
        )
    for task in cells["task"].unique():
        inner = tasks.modality(task).heatmap_edges[1:-1]
        if cut.threshold not in inner:
            raise ResultsError(
                f"a threshold must be an inner edge of the heat maps of {task} "
                f"({', '.join(f'{edge:g}' for edge in inner)}), got {cut.threshold}."
            )


def _refuse_shared_time(cells: pd.DataFrame, cut: Cut) -> None:
    if cut.axis != "seconds":
        return
    shared = (cells["pack"] > 1) | cells["shared_prefix"].astype(bool)
    if shared.any():
        raise ResultsError(
            f"{int(shared.sum())} of {len(cells)} cells have no training time of their own: they "
            "were trained in packs or share a prefix. Compare at equal flops or mosaics, or run "
            "the study with --pack none --no-share into another results directory."
        )
    trained = cells[cells["status"].ne("failed")]
    for name in ("device", "threads"):
        kinds = trained.groupby("comparison_id")[name].unique()
        for values in kinds[kinds.map(len) > 1]:
            raise ResultsError(
                f"cells of one comparison were trained with {name} "
                f"{', '.join(map(str, values))}: their seconds are not comparable. Compare at "
                "equal flops or mosaics."
            )
