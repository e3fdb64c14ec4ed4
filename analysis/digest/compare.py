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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.digest.at_cut import (
    cut_cells,
    heatmaps_of,
    rows_within,
    with_images,
)
from analysis.digest.choose import asked_metrics, best_of, options, summarise
from analysis.digest.cut import Cut
from analysis.digest.pairs import paired_tables
from analysis.digest.reading import whole_numbers, with_measures
from analysis.digest.sources import DirectorySource, Source, TableSource
from analysis.groups import Axis, Select, is_compared, is_recorded, trains_nothing
from analysis.rules.stages import Looks, looks, tested_choice
from analysis.words import (
    METRICS,
    amount,
    differences,
    full_name,
    instances,
    listed,
    made_equal,
    metric_name,
    share_of_budget,
    told_apart,
)
from study import tasks
from study.results import (
    CONFIRM,
    EVALUATIONS_SCHEMA,
    FURTHER,
    INSTANCES,
    KEY,
    OF_DATA,
    TRAINED,
    Results,
    ResultsError,
)

if TYPE_CHECKING:
    from study.tasks import Modality

_SETTINGS = [
    "n", "num_classes", "precision", "budget_amount", "data_digest", *TRAINED, *OF_DATA,
]  # fmt: skip
_KEPT = [
    "step", "compute_flops", "train_seconds", "mosaics_seen", "num_evaluated", "loss", "accuracy",
    "saif", "foreground_attention_mean", *FURTHER, "measures",
]  # fmt: skip
_NOWHERE = {"value": math.inf, "reach": math.inf, "cut": 1.0}
"""Where a split is cut of which nothing is known."""

_SHOWN = "analysis.page.shown"
"""What shows one comparison. It is named and not imported, as the report stands above."""

_CUT = ["axis", "cut", "diverged", "last_saif", "last_accuracy"]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """One comparison, cut at equal compute and summarised; `print` shows its answer and table.

    Attributes:
        task: name of the task.
        m: segments a mosaic; of text, the most tokens of a post; of captions, regions an image.
        axis: what was made equal, see `AXES`.
        asked: the requested budget, in units of the axis; None: as far as all cells have reached.
        budget: where the test split was cut, in units of the axis; None: at the fraction `cut` of
            the cells' budget.
        reach: the value of the axis up to which all done cells were measured on any split.
        cut: the fraction of the cells' own budget that every done cell has reached within the
            cut, see `equal_compute`.
        threshold: threshold of SAIF.
        interpolated: whether values were taken between evaluations.
        select: metric that chose the options.
        metrics: that are tested, of those that its cells have recorded: columns of `at_budget`.
        settings: what all cells share, as `study.cell.Cell.to_dict` gives it.
        differs: fields of `settings` in which it differs from comparisons of the same name in
            the same call.
        cells: one row a cell, the columns of `CELLS_SCHEMA` but `cell`.
        at_budget: one row a (cell, split), see `equal_compute`, with only the compared columns
            of the evaluations, and of the rows in `chosen` what is right of each instance,
            `study.results.INSTANCES` and `base_images`.
        options: one row an option, see `analysis.digest.choose.options`.
        choice: one row a group, see `choose`.
        summary: one row a group on the test split, see `summarise`, with `cut_at`, the
            cut in units of the axis (NaN: at the fraction `cut`).
        paired: one row a pair and metric, see `analysis.digest.pairs.paired_tables`;
            corrected for all comparisons of its study that were asked for.
        chosen: the rows of `at_budget` that numbers are of: the chosen options on the seeds that
            test them (`analysis.rules.stages`), with their heat maps.
        evaluations: all evaluations of these cells up to the cut.
    """

    task: str
    m: int
    axis: Axis
    asked: float | None
    budget: float | None
    reach: float
    cut: float
    threshold: float
    interpolated: bool
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
    def staged(self) -> bool:
        """Whether options were tuned on some seeds and the chosen ones confirmed on others."""
        return bool(self.cells["stage"].eq(CONFIRM).any())

    @functools.cached_property
    def looks(self) -> Looks:
        """When its paradigms were looked at first."""
        return looks(self.cells, self.choice)

    def tested(self, *paradigms: str) -> pd.DataFrame:
        """The rows of `chosen` that verdicts on some paradigms rest on: of the first look."""
        rows = self.chosen[self.chosen["paradigm"].isin(paradigms)]
        return rows[rows["seed"].isin(self.looks.of(*paradigms).tested)]

    @property
    def unconfirmed(self) -> list[str]:
        """Paradigms whose chosen option has no confirming cell yet, and so no numbers."""
        known = set(self.summary["paradigm"])
        return [name for name in self.choice["paradigm"] if name not in known]

    @property
    def where(self) -> str:
        """Where it was cut: ``10 % of the budget (4.9e9 training FLOPs)``, ``4,000 mosaics``."""
        if self.budget is None:
            budget = self.settings["budget"]
            return share_of_budget(self.cut, budget["amount"], budget["unit"], self.noun)
        if math.isinf(self.budget):  # no cell was done
            return made_equal(self.axis, self.noun)
        return amount(self.budget, self.axis, self.noun)

    @property
    def noun(self) -> str:
        """Name of its instances: mosaics, posts or captions."""
        return instances(self.task)

    @property
    def modality(self) -> Modality:
        """Of its instances."""
        return tasks.modality(self.task)

    @property
    def names(self) -> dict[str, str]:
        """Tested metric -> its name: ``SAIF``, with its threshold if unusual, ``accuracy``."""
        return {name: metric_name(name, self.threshold, self.task) for name in self.metrics}


def compare(
    evaluations: pd.DataFrame,
    budget: float | None = None,
    select: Select | None = None,
    axis: Axis = "flops",
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
    source = TableSource(evaluations)
    compared = is_compared(source.rows)
    if len(compared) and not compared.any():
        return []
    return _compare(TableSource(source.rows[compared]), cut, select, test)


def compare_results(
    results_dir: str | os.PathLike[str] | Results,
    study: str | None = None,
    cell_ids: Iterable[str] | None = None,
    budget: float | None = None,
    select: Select | None = None,
    axis: Axis = "flops",
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
    source = DirectorySource(results_dir, study, ids)
    return [] if source.cells.empty else _compare(source, cut, select, test, details)


def equal_compute(
    evaluations: pd.DataFrame,
    budget: float | None = None,
    axis: Axis = "flops",
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
        axis: `flops`, analytic training compute; `seconds`, measured training time; `mosaics`,
            seen in training.
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
    cut = Cut(budget, axis, interpolate, threshold)
    rows = TableSource(evaluations).rows
    trained = ~trains_nothing(rows)
    if len(rows) and not trained.any():
        raise ResultsError(
            "no cell of the table was trained: all solved or sampled a posterior or scored heads, "
            "which has no budget to compare at. analysis.report shows them."
        )
    source = TableSource(rows[trained])
    _refuse_mixture(comparisons(rows))
    of_one = {"examples", "heatmap", *INSTANCES}
    followed = [name for name in EVALUATIONS_SCHEMA.names if name not in of_one]
    found = cut_cells(source, cut, followed)
    table = found.table
    if "heatmap" in rows:
        table["heatmap"] = heatmaps_of(table, rows)
    table["cell"] = table["cell_id"].map(source.json_of(table["cell_id"]))
    # Columns not in the schema are those of the evaluation at the cut, too.
    others = [name for name in rows.columns if name not in table]
    table = table.merge(rows[[*KEY, *others]], on=KEY, how="left")
    added = [*_CUT, *(f"last_{name}" for name in found.measures)]
    columns = [name for name in rows.columns if name not in added]
    return table[[*columns, *added]]


def comparisons(evaluations: pd.DataFrame) -> list[pd.DataFrame]:
    """Splits the table by `comparison_id`: what may be compared stays together.

    Args:
        evaluations: as `analysis.load` gives it.

    Returns:
        One table a comparison, in the order of task, m, n, architecture, batch and budget; cells
        that train nothing are in none.

    Raises:
        ResultsError: the table is empty.
    """
    if evaluations.empty:
        raise ResultsError("there is no finished cell to compare. Run or resume a study first.")
    trained = evaluations[~trains_nothing(evaluations)].reset_index(drop=True)
    parts = dict(tuple(trained.groupby("comparison_id")))
    return [parts[comparison_id] for comparison_id in _ids_in_order(trained)]


def _ids_in_order(cells: pd.DataFrame) -> list[str]:
    by = ["task", "m", *_SETTINGS, "comparison_id"]
    return cells.drop_duplicates("comparison_id").sort_values(by)["comparison_id"].tolist()


def _compare(
    source: Source,
    cut: Cut,
    select: Select | None,
    test: Sequence[str] | None,
    details: bool = True,
) -> list[Comparison]:
    found = cut_cells(source, cut, _KEPT)
    order = _ids_in_order(found.cells)
    cells = _by_comparison(found.cells, order)
    tables = _by_comparison(found.table, order)
    asked = [asked_metrics(each, found.measures, select, test) for each in tables]
    every = dict.fromkeys([*METRICS, *found.measures])
    tried = [options(at_budget, list(every)) for at_budget in tables]
    choices = [best_of(each, by) for each, (by, _) in zip(tried, asked, strict=True)]
    pairs = zip(tables, choices, strict=True)
    ids = {cell_id for pair in pairs for cell_id in tested_choice(*pair)["cell_id"]}
    evaluations = source.of(ids, None if details else [*KEY, *INSTANCES])
    tables = _by_comparison(with_images(found.table, evaluations), order)
    evaluations = with_measures(evaluations if details else source.of([]), found.measures)
    of_chosen = dict(tuple(evaluations.groupby("comparison_id")))
    first = [table["cell_id"].iloc[0] for table in tables]
    examples = source.json_of(first)
    settings = [json.loads(examples[cell_id]) for cell_id in first]
    differs = differences([*map(full_name, settings)], settings)
    metrics = [tested for _, tested in asked]
    paired = _paired([*zip(tables, choices, metrics, cells, strict=True)])
    cuts = found.cuts.set_index(["comparison_id", "split"]).to_dict("index")
    compared = []
    for place, comparison_id in enumerate(order):
        at_budget, choice = tables[place], choices[place]
        chosen = tested_choice(at_budget, choice)
        own = of_chosen.get(comparison_id, evaluations[:0])
        where: Mapping[Any, Any] = cuts.get((comparison_id, "test"), _NOWHERE)
        task, value = str(at_budget["task"].iloc[0]), where["value"]
        summary = summarise(at_budget, choice, measures=found.measures)
        compared.append(
            Comparison(
                task=task,
                m=int(at_budget["m"].iloc[0]),
                axis=cut.axis,
                asked=cut.budget,
                budget=None if math.isnan(value) else value,
                reach=where["reach"],
                cut=where["cut"],
                threshold=cut.threshold_of(task),
                interpolated=bool((at_budget["weight"] > 0).any()),
                select=asked[place][0],
                metrics=metrics[place],
                settings=settings[place],
                differs=differs[place],
                cells=cells[place],
                at_budget=at_budget,
                options=tried[place],
                choice=choice,
                summary=summary.assign(cut_at=value),
                paired=paired[place],
                chosen=chosen.assign(heatmap=heatmaps_of(chosen, own)),
                evaluations=rows_within(own, found, cut),
            )
        )
    return compared


def _by_comparison(table: pd.DataFrame, ids: Sequence[str]) -> list[pd.DataFrame]:
    """The rows of each comparison."""
    rows = dict(tuple(table.groupby("comparison_id")))
    return [whole_numbers(rows[each]).reset_index(drop=True) for each in ids]


def _paired(
    tables: Sequence[tuple[pd.DataFrame, pd.DataFrame, Sequence[str], pd.DataFrame]],
) -> list[pd.DataFrame]:
    """The paired differences of each comparison; those of a study are one family of tests."""
    studies = [cells["study"].min() for *_, cells in tables]
    found: dict[int, pd.DataFrame] = {}
    for study in dict.fromkeys(studies):
        places = [place for place, name in enumerate(studies) if name == study]
        found |= zip(places, paired_tables([tables[place] for place in places]), strict=True)
    return [found[place] for place in range(len(tables))]


def metrics_of(found: Iterable[Comparison]) -> list[str]:
    """The metrics that any of the comparisons tests, each once."""
    return list(dict.fromkeys(metric for each in found for metric in each.metrics))


def _refuse_mixture(parts: list[pd.DataFrame]) -> None:
    heads = pd.concat([part.iloc[[0]] for part in parts])
    for _, rows in heads.groupby(["task", "m"]):
        if len(rows) > 1:
            settings = [json.loads(text) for text in rows["cell"]]
            names = [*map(full_name, settings)]
            told = map(told_apart, names, settings, differences(names, settings))
            raise ResultsError(
                f"{listed([*told])} must not be mixed. Take one of "
                "analysis.comparisons(evaluations)."
            )
