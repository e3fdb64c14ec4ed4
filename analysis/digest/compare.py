"""Paradigms at equal compute: every comparison of a table or a results directory.

Pure functions of tables; row order never matters. The terms are defined in
`analysis.groups`, the cut in `analysis.digest.cut`, the choice of options in
`analysis.digest.choose`.
"""

from __future__ import annotations

import functools
import json
import math
import os
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from analysis.digest.at_cut import cut_cells, heatmaps_of, rows_within
from analysis.digest.choose import asked_metrics, best_of, options
from analysis.digest.classes import class_parts, class_rows
from analysis.digest.cut import Cut, along
from analysis.digest.means import summarise
from analysis.digest.measures import METRICS, Measure, measures_of, modality_of
from analysis.digest.pairs import paired_table
from analysis.digest.read import CELL_COLUMNS, Source, cells_of, each_once, opened
from analysis.forms import Unit, listed
from analysis.groups import Axis, Select, is_compared, is_recorded, trains_nothing
from analysis.rules.stages import Looks, looks, tested_choice
from analysis.settings import differences, full_name, told_apart
from study.results import (
    CELLS_SCHEMA,
    CONFIRM,
    INSTANCES,
    KEY,
    OF_DATA,
    TRAINED,
    Results,
    ResultsError,
)

if TYPE_CHECKING:
    from study.tasks import Modality

_ORDER = [
    "task", "m", "n", "num_classes", "precision", "budget_amount", "data_digest", *TRAINED,
    *OF_DATA, "comparison_id", "cell_id",
]  # fmt: skip
_NOT_COMPARED = ["ftpt", "ffpt", "ftpf", "ffpf"]
"""Measures that a comparison leaves out."""

_WHOLE = [field.name for field in CELLS_SCHEMA if pa.types.is_integer(field.type)]
"""Columns that are read as floats beside cells that lack them, as recorded runs do."""

_SHOWN = "analysis.page.shown"
"""What shows one comparison. It is named and not imported, as the report stands above."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """One comparison, cut at equal compute and summarised; `print` shows its answer and table.

    Attributes:
        question: how cells were asked to be cut.
        budget: where the test split was cut, in units of the axis; None: at the fraction `cut` of
            the cells' budget.
        reach: the value of the axis up to which all done cells were measured on any split.
        cut: the fraction of the cells' own budget that every done cell has reached within the
            cut, see `equal_compute`.
        select: metric that chose the options.
        metrics: that are tested, of those that its cells have recorded: columns of `at_budget`.
        settings: what all cells share, as `study.cell.Cell.to_dict` gives it.
        differs: fields of `settings` in which it differs from comparisons of the same name in
            the same call.
        cells: one row a cell, the columns of `CELLS_SCHEMA` but `cell`.
        at_budget: one row a (cell, split), see `equal_compute`, with only counts, costs and
            measures of the evaluations, and of the rows in `chosen` what is right of each
            instance, `study.results.INSTANCES`, `base_images` and `labels`.
        options: one row an option, see `analysis.digest.choose.options`.
        choice: one row a group, see `choose`.
        summary: one row a group on the test split, see `summarise`, with `cut_at`, the
            cut in units of the axis (NaN: at the fraction `cut`).
        paired: one row a pair and metric, see `analysis.digest.pairs.paired_table`;
            corrected for all comparisons of its study that were asked for.
        chosen: the rows of `at_budget` that numbers are of: the chosen options on the seeds that
            test them (`analysis.rules.stages`), with their heat maps.
        evaluations: all evaluations of these cells up to the cut.
    """

    question: Cut
    budget: float | None
    reach: float
    cut: float
    select: Select
    metrics: Sequence[str]
    settings: dict[str, Any]
    differs: Sequence[str]
    cells: pd.DataFrame
    at_budget: pd.DataFrame
    options: pd.DataFrame
    choice: pd.DataFrame
    summary: pd.DataFrame
    paired: pd.DataFrame
    chosen: pd.DataFrame
    evaluations: pd.DataFrame

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.choice['paradigm'])}: {self.name}>"

    def __str__(self) -> str:
        return pkgutil.resolve_name(_SHOWN).as_text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return pkgutil.resolve_name(_SHOWN).as_html(self)

    @property
    def id(self) -> str:
        """16 hex digits."""
        return str(self.cells["comparison_id"].iloc[0])

    @property
    def key(self) -> str:
        """The first 8 of its id, which tell it from others."""
        return self.id[:8]

    @property
    def task(self) -> str:
        """Name of the task."""
        return str(self.settings["task"])

    @property
    def m(self) -> int:
        """Segments a mosaic; of text, the most tokens of a post; of captions, regions an image."""
        return int(self.cells["m"].iloc[0])

    @functools.cached_property
    def modality(self) -> Modality:
        """Of its instances."""
        return modality_of(self.cells)

    @functools.cached_property
    def measures(self) -> dict[str, Measure]:
        """Column -> measure: all that its options were tried with, and those of its modality."""
        tried = self.options.filter(regex="^validation_").columns
        return measures_of(self.cells, tried.str.removeprefix("validation_"))

    @property
    def noun(self) -> str:
        """Name of its instances: mosaics, posts or captions."""
        return self.modality.noun

    @property
    def architecture(self) -> str:
        return str(self.settings.get("architecture", ""))

    @property
    def recorded(self) -> bool:
        """Whether another training loop trained its runs, and `analysis.record` recorded them."""
        return bool(is_recorded(self.cells).any())

    @property
    def name(self) -> str:
        """Name of the setting, and what tells it from the others, see `differs`."""
        return told_apart(full_name(self.settings), self.settings, self.differs)

    @property
    def axis(self) -> Axis:
        """What was made equal, see `AXES`."""
        return self.question.axis or "flops"

    @property
    def threshold(self) -> float:
        """Of SAIF."""
        asked = self.question.threshold
        return self.modality.saif_threshold if asked is None else asked

    @property
    def tested_measures(self) -> list[Measure]:
        """Those of its metrics."""
        return [self.measures[name] for name in self.metrics]

    @property
    def names(self) -> dict[str, str]:
        """Tested metric -> its name: ``SAIF``, with its threshold if unusual, ``accuracy``."""
        return {name: self.measures[name].at(self.threshold) for name in self.metrics}

    @property
    def interpolated(self) -> bool:
        """Whether values were taken between evaluations."""
        return bool((self.at_budget["weight"] > 0).any())

    @property
    def staged(self) -> bool:
        """Whether options were tuned on some seeds and the chosen ones confirmed on others."""
        return bool(self.cells["stage"].eq(CONFIRM).any())

    @property
    def unconfirmed(self) -> list[str]:
        """Paradigms whose chosen option has no confirming cell yet, and so no numbers."""
        names = self.choice["paradigm"]
        return [*names[~names.isin(self.summary["paradigm"])]]

    @functools.cached_property
    def looks(self) -> Looks:
        """When its paradigms were looked at first."""
        return looks(self.cells, self.choice)

    @functools.cached_property
    def classes(self) -> pd.DataFrame:
        """Scores of each class, see `analysis.digest.classes.class_rows`."""
        return class_rows(self.chosen)

    @functools.cached_property
    def class_parts(self) -> pd.DataFrame:
        """What each class carries of its differences, see `analysis.digest.classes`."""
        return class_parts(self.paired, self.tested)

    def tested(self, *paradigms: str) -> pd.DataFrame:
        """The rows of `chosen` that verdicts on some paradigms rest on: of the first look."""
        rows, seeds = self.chosen, self.looks.of(*paradigms).tested
        return rows[rows["paradigm"].isin(paradigms) & rows["seed"].isin(seeds)]


def compare(
    evaluations: pd.DataFrame,
    budget: float | None = None,
    select: Select | None = None,
    axis: Axis | None = None,
    threshold: float | None = None,
    interpolate: bool = False,
    test: Sequence[str] | None = None,
) -> list[Comparison]:
    """Every comparison in the table, each by itself, in the order of `comparisons`.

    Cells that are in no comparison are left out (`analysis.kinds`): with fixed focus there is no
    focus to compare, those of the linear orthogonal setting are compared with a closed form, and
    those that solve or sample a posterior train nothing.

    Args:
        evaluations: as `analysis.load` gives it.
        budget, axis, threshold, interpolate: see `equal_compute`.
        select: metric that chooses the options, see `choose`. None: accuracy, or the only one
            that runs have recorded.
        test: metrics whose differences are tested; None: all that cells have recorded.

    Returns:
        The comparisons, an empty list where no cell is in one.

    Raises:
        ResultsError: no finished cell, a missing column, a cut that is not usable, or a metric
            that no cell has recorded.
    """
    cut = Cut(budget, axis, interpolate, threshold)
    rows = each_once(evaluations)
    return _compare(rows, rows[CELL_COLUMNS].drop_duplicates("cell_id"), cut, select, test)


def compare_results(
    results_dir: str | os.PathLike[str] | Results,
    study: str | None = None,
    cell_ids: Iterable[str] | None = None,
    budget: float | None = None,
    select: Select | None = None,
    axis: Axis | None = None,
    threshold: float | None = None,
    interpolate: bool = False,
    test: Sequence[str] | None = None,
    details: bool = True,
) -> list[Comparison]:
    """Every comparison in a results directory, as `compare` of what `analysis.load` gives.

    Cells that are in no comparison are left out, as there; `analysis.kinds.find` reads them.

    Evaluations are queried where they are, and heat maps read of the chosen options only, so that
    a directory may be larger than memory.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        study: only the cells that this study recorded. A cell that two studies share is recorded
            by the first of them, so name `cell_ids` where they are known.
        cell_ids: only these cells.
        budget, select, axis, threshold, interpolate, test: as for `compare`.
        details: read also what figures need: heat maps and earlier evaluations of the chosen
            options. Without, `evaluations` are empty and `chosen` has no heat maps.

    Returns:
        The comparisons, an empty list where no cell is in one.

    Raises:
        ResultsError: as `compare`; unreadable results, an unknown study.
    """
    cut = Cut(budget, axis, interpolate, threshold)
    ids = None if cell_ids is None else set(cell_ids)
    results = opened(results_dir)
    return _compare(results, cells_of(results, study, ids), cut, select, test, details)


def equal_compute(
    evaluations: pd.DataFrame,
    budget: float | None = None,
    axis: Axis | None = None,
    threshold: float | None = None,
    interpolate: bool = False,
) -> pd.DataFrame:
    """Cuts every cell at the same compute.

    Each split of a (task, m) is cut at the last fraction of the budget at which all *done* cells
    were measured on it, where their compute differs by less than a step; with a budget, at the
    last whose recorded compute is within it for every cell. Along an axis in whose units cells
    have no budget, and where they share no such fraction, values are interpolated linearly between
    the two evaluations around one number: the budget, or the largest up to which all done cells
    were measured on the split. Recorded runs are cut at the last moment that all done ones share;
    where there is none, or with `interpolate`, they are interpolated, too.

    A diverged cell counts with its numbers at the cut if it has recorded an evaluation there (the
    one at which the done cells are cut, or a later one). If it ended earlier, it counts as SAIF 0
    and accuracy 1/C (captions: Bleu 0), its other metrics are missing, and its step, compute and
    fraction are those of its last finite evaluation. A censored cell counts with its last numbers
    within the cut, if it has any. Where either ended never lowers the cut. What a diverged cell
    had at the cut is not known if it was last measured before it on the split, but measured or
    seen lost only after it.

    Cells that solved or sampled a posterior are left out: they have no budget to be cut at. Those
    of learning dynamics were trained and are cut like all others.

    Args:
        evaluations: as `analysis.load` gives it; one comparison a (task, m).
        budget: in units of the axis, finite and > 0.
        axis: `flops`, analytic training compute; `seconds`, measured training time; `mosaics` or
            `examples`, seen in training; None: the only one of these that all cells have, if they
            are recorded runs, else `flops`.
        threshold: of SAIF, on both a_z and s_y; an inner edge of the heat maps. None: the task's
            own, .8, of captions .3.
        interpolate: interpolate at the budget itself, also where cells could be cut at a fraction.
            A cell whose own budget ends within a step of it keeps its last value.

    Returns:
        One row a (cell, split), sorted, with the columns of `evaluations` and: `axis`; `cut`, the
        budget fraction that every done cell of the (task, m) has reached within the cut;
        `diverged`, whether the row is counted as diverged; `last_saif` and `last_accuracy`,
        fractions, at the last finite evaluation within the cut (`saif` and `accuracy` themselves
        unless `diverged`), and likewise the measures of recorded runs. Where values are
        interpolated, so are `step`, `mosaics_seen`, `compute_flops` and `train_seconds`;
        `budget_fraction` and columns not in the schema are those of the earlier evaluation.

    Raises:
        ResultsError: no trained cell, a missing column, several comparisons of one (task, m),
            cells without a training time of their own on the axis `seconds`; a budget that is not
            a positive finite number, lies beyond what the done cells have reached, or before the
            first evaluation of a trained network of one of them.
    """
    rows, cut = each_once(evaluations), Cut(budget, axis, interpolate, threshold)
    cells = rows.drop_duplicates("cell_id")
    trained = cells[~trains_nothing(cells)]
    if trained.empty:
        raise ResultsError(
            "no cell of the table was trained: all solved or sampled a posterior or scored heads, "
            "which has no budget to compare at. analysis.report shows them."
        )
    heads = _heads(trained)
    mixed = heads[heads.duplicated(["task", "m"], keep=False)]
    if len(mixed):
        settings = [*map(json.loads, mixed["cell"])]
        names = [*map(full_name, settings)]
        told = map(told_apart, names, settings, differences(names, settings))
        raise ResultsError(
            f"{listed([*told])} must not be mixed. Take one of analysis.comparisons(evaluations)."
        )
    source = Source(rows, trained[CELL_COLUMNS])
    found = cut_cells(source, along(source, cut))
    table = found.table.merge(trained[["cell_id", "cell"]])
    table["heatmap"] = heatmaps_of(table, rows)
    # All other columns are those of the evaluation at the cut.
    others = rows.columns.difference(table.columns)
    table = table.merge(rows[[*KEY, *others]], on=KEY, how="left")
    added = ["axis", "cut", "diverged", *(f"last_{name}" for name in (*METRICS, *found.measures))]
    return table[[*rows.columns.difference(added, sort=False), *added]]


def comparisons(evaluations: pd.DataFrame) -> list[pd.DataFrame]:
    """Splits the table by `comparison_id`: what may be compared stays together.

    Args:
        evaluations: as `analysis.load` gives it.

    Returns:
        One table a comparison, in the order of task, m, n, architecture, batch and budget; cells
        that train nothing are in none.

    Raises:
        ResultsError: the table is empty, a column is missing, or rows contradict each other.
    """
    rows = each_once(evaluations)
    trained = rows[~trains_nothing(rows)]
    return _parts(trained, _heads(trained)["comparison_id"])


def metrics_of(found: Iterable[Comparison]) -> list[str]:
    """The metrics that any of the comparisons tests, each once."""
    return list(dict.fromkeys(metric for each in found for metric in each.metrics))


def units_of(found: Iterable[Comparison]) -> dict[str, Unit]:
    """Metric -> how its values read."""
    return {metric: each.measures[metric].unit for each in found for metric in each.metrics}


def _compare(
    given: Results | pd.DataFrame,
    every: pd.DataFrame,
    cut: Cut,
    select: Select | None,
    test: Sequence[str] | None,
    details: bool = True,
) -> list[Comparison]:
    """From the cut to the choice among options, and from what is read of the chosen to tests."""
    compared = every[is_compared(every)]
    if compared.empty:
        return []
    source = Source(given, compared)
    cut = along(source, cut)
    found = cut_cells(source, cut)
    # Of a comparison whose cells all failed nothing is known.
    heads = _heads(source.cells)
    heads = heads[heads["comparison_id"].isin(found.table["comparison_id"].unique())]
    ids = heads["comparison_id"]
    if ids.empty:
        return []
    tables = _parts(found.table, ids)
    asked = (asked_metrics(each, found.measures, select, test) for each in tables)
    selects, metrics = zip(*asked, strict=True)
    tried = [options(each, [*METRICS, *found.measures]) for each in tables]
    signs = [
        measures_of(each, [select])[select].sign
        for each, select in zip(tables, selects, strict=True)
    ]
    choices = [*map(best_of, tried, selects, signs)]
    chosen_ids = pd.concat(map(tested_choice, tables, choices))["cell_id"].unique()

    read = source.of(chosen_ids, None if details else [*KEY, *INSTANCES, "measures"])
    of_instances = [*KEY, *INSTANCES, "base_images", "labels"]
    images = read.reindex(columns=of_instances).dropna(subset="instances")
    left_out = [*_NOT_COMPARED, *(f"between_{name}" for name in _NOT_COMPARED)]
    table = found.table.drop(columns=left_out, errors="ignore").merge(images, on=KEY, how="left")
    chosen = table[table["cell_id"].isin(chosen_ids)]
    chosen = chosen.assign(heatmap=heatmaps_of(chosen, read))
    evaluations = rows_within(read if details else source.of([]), found, cut)

    places = found.cuts[found.cuts["split"] == "test"].set_index("comparison_id").loc[ids]
    settings = source.settings(heads["cell_id"])
    cells, tables = _parts(source.cells, ids), _parts(table, ids)
    of_each = {
        "budget": [None if math.isnan(value) else value for value in places["value"]],
        "reach": places["reach"],
        "cut": places["cut"],
        "select": selects,
        "metrics": metrics,
        "settings": settings,
        "differs": differences([*map(full_name, settings)], settings),
        "cells": cells,
        "at_budget": tables,
        "options": tried,
        "choice": choices,
        "summary": [
            summarise(at_budget, choice, measures=found.measures, asked=tested).assign(cut_at=at)
            for at_budget, choice, tested, at in zip(
                tables, choices, metrics, places["value"], strict=True
            )
        ],
        "paired": _parts(paired_table(zip(tables, choices, metrics, cells, strict=True)), ids),
        "chosen": _parts(chosen, ids),
        "evaluations": _parts(evaluations, ids),
    }
    return [
        Comparison(cut, **dict(zip(of_each, facts, strict=True)))
        for facts in zip(*of_each.values(), strict=True)
    ]


def _heads(cells: pd.DataFrame) -> pd.DataFrame:
    """A cell of each comparison, in their order, whatever that of the rows is."""
    return cells.sort_values(_ORDER).drop_duplicates("comparison_id")


def _parts(table: pd.DataFrame, ids: Iterable[str]) -> list[pd.DataFrame]:
    """The rows of each comparison, with whole numbers as such where it lacks none."""
    rows = dict(tuple(table.groupby("comparison_id")))
    parts = (rows.get(each, table[:0]).reset_index(drop=True) for each in ids)
    return [
        part.astype(dict.fromkeys(part.filter(_WHOLE).dropna(axis="columns"), "int64"))
        for part in parts
    ]
