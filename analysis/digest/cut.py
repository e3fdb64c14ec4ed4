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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.digest.measures import measures
from analysis.digest.read import Source
from analysis.groups import AXES, AXIS_NAMES, Axis, is_recorded
from study import tasks
from study.results import FURTHER, KEY, METRICS, ResultsError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EARLY = 0.9
"""Cut below this share of where it could be, a comparison of recorded runs is cut early."""

MEASURES = [*METRICS, *FURTHER]
"""Columns that an evaluation measures, beside those of recorded runs."""

COUNTS = ["step", "mosaics_seen", "compute_flops", "num_evaluated"]
"""Its columns of whole numbers."""

_OF_CELLS = [
    "cell_id", "comparison_id", "task", "m", "paradigm", "seed", "kind", "status", "budget_unit",
    "budget_amount", "pack", "shared_prefix", "device", "threads",
]  # fmt: skip
"""What the queries know of the cells."""

_RECORDED_AS = {"flops": "compute", "seconds": "seconds", "mosaics": "examples"}
"""Axis -> the column of `analysis.record`."""

_CELLS = """
create temp macro digits(x) as -- all: rounded, the largest usable budget might be none
    regexp_replace(x::varchar, '\\.0$', '');

create temp table cells as
select cell_id, comparison_id, task, task || if(m <> 0, ' m=' || m, '') as setting, paradigm,
    seed, status, status = 'done' as done, status = 'diverged' as diverged,
    kind = 'recorded' as recorded, budget_amount::double as budget_amount,
    coalesce(budget_unit::varchar = getvariable('axis'), false) as budgeted,
    pack > 1 or shared_prefix as shared, device::varchar as device, threads::varchar as threads
from given
"""

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
    if(budgeted and (getvariable('budget') is null or not getvariable('interpolate')),
        budget_fraction, null) as moment
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
    where cheapest > 0 and dearest <= coalesce(getvariable('budget'), 'inf'::double) group by all
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

create temp view untrained as -- cells that are cut before their first evaluation of a trained one
select cell_id, setting, paradigm, seed, split,
    if(value is null, 'what', format('the {{:,.10g}} {unit} that', value)) as spent
from around join cells using (cell_id, comparison_id)
where (around.done or next_fraction is not null) and not coalesce(x > 0, false)
order by cell_id, split;
"""

_FOUND = """
create temp table found as
with ends as (
    select comparison_id, split, fraction, value, min(budget_fraction) filter (done) as cut,
        min(farthest) filter (done) as reach
    from around group by all
), every as ( -- where the test split is cut is asked of all
    select comparison_id, split from ends union select comparison_id, 'test' from cells
)
select comparison_id, split, fraction, if(ends.split is null, 'inf'::double, value) as value,
    coalesce(cut, 1) as cut,
    coalesce(min(reach) over (partition by comparison_id), 'inf'::double) as reach
from every left join ends using (comparison_id, split);

create temp table places as -- also of lost cells without any evaluation within the cut
with measured as (
    select distinct split from around
), splits as (
    from measured union all
    select unnest(['train', 'validation', 'test']) where not exists (from measured)
), every as (
    select * replace (
        coalesce(went_on, bool_or(went_on) over (partition by cell_id), false) as went_on
    )
    from cells cross join splits left join around using (cell_id, split)
)
select cell_id, split, coalesce(cut, 1) as cut, budget_fraction, next_fraction, weight,
    diverged and not went_on as diverged,
    diverged and went_on and not coalesce(reached, false) as unknown
from every left join found using (comparison_id, split)
where budget_fraction is not null or status in ('diverged', 'censored')
order by list_position(['train', 'validation', 'test'], split);
"""

_PICKED = """
create temp table picked as -- the evaluations around the cut
select next, task, evaluations.* from evaluations join (
    select cell_id, split, budget_fraction, task, false as next from around
    union all
    select cell_id, split, next_fraction, task, true from around where next_fraction is not null
) using (cell_id, split, budget_fraction);
"""

_CELLS_REFUSED = {
    "from cells where recorded and getvariable('threshold') is not null": (
        "recorded runs have no heat maps from which SAIF at another threshold follows. Leave the "
        "threshold out, or name a study of other cells."
    ),
    """
    select count_if(shared)::int as num_shared, count(*) as num_cells
    from cells having getvariable('axis') = 'seconds' and num_shared > 0
    """: (
        "{num_shared} of {num_cells} cells have no training time of their own: they were trained "
        "in packs or share a prefix. Compare at equal flops or mosaics, or run the study with "
        "--pack none --no-share into another results directory."
    ),
    """
    select name, string_agg(distinct value, ', ' order by value) as several from (
        unpivot (from cells where status <> 'failed') on device, threads
    ) where getvariable('axis') = 'seconds'
    group by comparison_id, name having count(distinct value) > 1 order by name
    """: (
        "cells of one comparison were trained with {name} {several}: their seconds are not "
        "comparable. Compare at equal flops or mosaics."
    ),
}
"""Query of cells that cannot be cut so -> why not, and what to do."""

_CUTS_REFUSED = {
    "from spans where unknown > 0 and recorded order by cell_id": (
        "run {cell_id} was recorded without {recorded_as}. Compare on an axis that it has, --axis "
        "{recorded_others}, or name a study with --study."
    ),
    "from spans where unknown > 0 order by cell_id": (
        "cell {cell_id} has evaluations without {x}. Compare on another axis (--axis "
        "{others}), or move its files away and run its study again."
    ),
    """
    select setting, digits(reach) as usable from (
        select any_value(setting) as setting, coalesce(min(reach), 'inf'::double) as reach
        from cuts join cells using (comparison_id) where split <> 'train'
        group by comparison_id order by 2 desc, comparison_id limit 1
    ) where reach < getvariable('budget')
    """: (  # a comparison that falls short of others is cut at its end
        "a budget of {budget:g} {unit} lies beyond what every cell of {setting} has reached. The "
        "largest usable budget is {usable} {unit}."
    ),
    """
    select *, (select digits(max(first_x)) from around) as usable from untrained
    where getvariable('budget') is not null
    """: (
        "a budget of {budget:g} {unit} lies below the first evaluation of a trained network of "
        "{setting}. The smallest usable budget is {usable} {unit}."
    ),
    "from untrained": (
        "run {cell_id} of {setting} ({paradigm}, seed {seed}) has no evaluation of a trained "
        "network on the {split} split within {spent} all have spent. Record several of each run, "
        "on each split, and compare all that there are."
    ),
    """
    select cell_id, split, name, value from (unpivot (from picked) on {shares})
    where isfinite(value) and not value between -1e-6 and 1 + 1e-6
    order by cell_id, split, name
    """: (
        "cell {cell_id} has {name} {value:g} on the {split} split, which is not a fraction. Move "
        "its files away and run its study again."
    ),
}
"""Query of what cannot be cut there -> why not, and what to do."""


class Evaluations(NamedTuple):
    """What is read of the evaluations.

    Attributes:
        cuts: one row per comparison and split: `fraction` of the budget, or `value` of the axis at
            which it is cut, the other is missing; `cut`, the fraction of the budget up to which
            all done cells have evaluations within it (1: none is done); `reach`, the value up to
            which they were measured on any split. Each comparison has a row of the test split,
            with infinite values where nothing was measured.
        places: one row per cell and split, in the order of the splits: `cut`, see above;
            `budget_fraction` of its last evaluation within the cut (a lost cell may have none),
            and `next_fraction` of the one after; `weight`, the share of the latter in the value
            at the cut; `diverged`, whether it was lost before the cut; `unknown`, whether it was
            lost behind the cut, but last measured on this split before it.
        rows: those evaluations, with `COUNTS`, `train_seconds`, `MEASURES`, `measures`, `task`,
            and `next`: it is the later one.
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
        axis: `flops`, training compute; `seconds`, measured training time; `mosaics` or
            `examples`, seen in training; None: the only one of these that all cells have, if they
            are recorded runs, else `flops`.
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
    axis: Axis | None = "flops"
    interpolate: bool = False
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name, value in [*vars(self).items()]:  # DuckDB knows no scalars of NumPy and pandas
            plain = value.item() if isinstance(value, np.generic) else value
            object.__setattr__(self, name, None if plain is pd.NA else plain)
        object.__setattr__(self, "axis", AXIS_NAMES.get(str(self.axis), self.axis))
        if self.axis is not None and self.axis not in AXES:
            raise ResultsError(f"an axis must be one of {', '.join(AXES)}, got {self.axis!r}.")
        number = type(self.budget) in (int, float)  # a bool is none
        if self.budget is not None and not (number and 0 < self.budget < math.inf):
            raise ResultsError(
                f"a budget must be a finite number of {self.unit} > 0, got {self.budget}."
            )

    @property
    def unit(self) -> str:
        return {"mosaics": "examples", "seconds": "seconds"}.get(str(self.axis), "FLOPs")

    @property
    def column(self) -> str:
        """The column of the evaluations that is made equal."""
        return AXES[self.axis or "flops"]

    def with_saif(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows with SAIF at this threshold, from their heat maps where the task's is another.

        Args:
            rows: with `task`, `saif` and, where a threshold is asked for, `heatmap`.
        """
        if self.threshold is None:
            return rows
        saif = rows["saif"].copy()
        for task, mine in rows.groupby("task"):
            modality = tasks.modality(str(task))
            edges = modality.heatmap_edges
            if self.threshold not in edges[1:-1]:
                raise ResultsError(
                    f"a threshold must be an inner edge of the heat maps of {task} "
                    f"({', '.join(map('{:g}'.format, edges[1:-1]))}), got {self.threshold}."
                )
            if self.threshold != modality.saif_threshold:
                saif[mine.index] = saif_at(mine["heatmap"], self.threshold, edges)
        return rows.assign(saif=saif)


def saif_at(heatmaps: pd.Series, threshold: float, edges: Sequence[float]) -> pd.Series:
    """SAIF at another threshold (section 2.4), from recorded heat maps.

    Args:
        heatmaps: bins * bins fractions each, axis 0 = a_z, axis 1 = s_y; or missing.
        threshold: one of the inner edges.
        edges: (bins + 1,) of the heat maps.

    Returns:
        Fractions; NaN where there is no heat map.
    """
    first, bins = edges.index(threshold), len(edges) - 1
    squares = heatmaps.dropna().map(lambda each: np.reshape(each, (bins, bins)))
    shares = squares.map(lambda each: each[first:, first:].sum())
    return shares.reindex(heatmaps.index).astype(float)


def along(source: Source, cut: Cut) -> Cut:
    """The cut with an axis, see `Cut`."""
    if cut.axis is not None:
        return cut
    there: list[Axis] = []
    if is_recorded(source.cells).all():
        known = ", ".join(f"count(*) = count({column}) as {name}" for name, column in AXES.items())

        def question(database: DuckDBPyConnection) -> list[Axis]:
            of_each = database.sql(f"select {known} from evaluations").df().iloc[0]
            return [name for name in AXES if of_each[name]]

        one_each = replace(source, cells=source.cells.drop_duplicates("comparison_id"))
        there = one_each.ask(question, [*AXES.values(), "split"])
    return replace(cut, axis=there[0] if len(there) == 1 else "flops")


def read_around(source: Source, cut: Cut) -> Evaluations:
    """Finds the evaluations around the cut.

    Args:
        source: cells and their evaluations.
        cut: where and how to cut.

    Raises:
        ResultsError: a budget that no comparison has reached, or that lies before a done
            cell's first evaluation of a trained network; on the axis `seconds`, cells that shared
            their training time; a fraction outside [0, 1].
    """
    heatmap = [] if cut.threshold is None else ["heatmap"]
    asked = [*KEY, *COUNTS, "train_seconds", *MEASURES, "measures", *heatmap]
    known = (measures(task).values() for task in source.cells["task"].unique())
    unbounded = {each.column for rows in known for each in rows if not each.bounded}
    facts = vars(cut) | {
        "unit": cut.unit,
        "x": cut.column,
        "early": EARLY,
        "others": " or ".join(name for name in AXES if name != cut.axis),
        "recorded_as": _RECORDED_AS[cut.axis or "flops"],
        "recorded_others": " or ".join(
            {"mosaics": "examples"}.get(name, name) for name in AXES if name != cut.axis
        ),
        "shares": ", ".join({*MEASURES} - unbounded),
    }

    def question(database: DuckDBPyConnection) -> Evaluations:
        database.register("given", source.cells[_OF_CELLS])
        for name, value in facts.items():
            database.execute(f"set variable {name} = ?", [value])
        database.execute(_CELLS)
        _refuse(database, _CELLS_REFUSED, facts)
        for tables in (_COUNTED, _CUTS, _AROUND, _FOUND, _PICKED):
            database.execute(tables.format(**facts))
        _refuse(database, _CUTS_REFUSED, facts)
        return Evaluations(*(database.table(each).df() for each in ("found", "places", "picked")))

    return source.ask(question, asked)


def _refuse(
    database: DuckDBPyConnection, refused: Mapping[str, str], facts: Mapping[str, Any]
) -> None:
    """Refuses the first that a query finds."""
    for query, sentence in refused.items():
        for row in database.sql(query.format(**facts)).limit(1).df().to_dict("records"):
            raise ResultsError(sentence.format(**facts, **row))
