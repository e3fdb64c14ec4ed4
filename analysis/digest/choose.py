"""Chooses one option a group on validation, and summarises the chosen ones on test."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.digest.at_cut import UNBOUNDED, cut_cells
from analysis.digest.cut import Cut
from analysis.digest.measures import measures as measures_of
from analysis.digest.reading import opened
from analysis.digest.scores import scores
from analysis.digest.sources import DirectorySource
from analysis.groups import (
    AXES,
    GROUP,
    OPTION,
    Select,
    best_first,
    in_order,
    is_recorded,
    rows_of,
    with_chosen,
)
from analysis.rules.learning import apart, share_mean
from analysis.rules.stages import tested, tuning
from analysis.rules.statistics import interval_columns, named_interval
from analysis.words import METRICS, SPREADS
from study import tasks
from study.results import Results, ResultsError, unknown

ROUNDING = 1e-12

SUMMARISED = ("saif", "accuracy", "loss", "foreground_attention_mean")

_SHARED = [
    *GROUP, "kind", "n", "architecture", "batch_size", "precision", "budget_amount", "budget_unit",
    "cut", "axis", "comparison_id",
]  # fmt: skip


def spreads(metrics: Iterable[str]) -> list[str]:
    """Standard errors of `summarise`: over seeds, over images, and over background images."""
    return [f"{metric}_{error}" for metric in metrics for error in SPREADS.values()]


def summarised_metrics(columns: Iterable[Hashable]) -> list[str]:
    """The metrics of a summary with these columns: those whose spreads it has, else `METRICS`."""
    end = "_seed_se"
    found = [name.removesuffix(end) for name in map(str, columns) if name.endswith(end)]
    return found or [*METRICS]


def further_measures(task: str) -> list[str]:
    """Columns of the further measures of a task's modality."""
    return [measure.column for measure in tasks.modality(task).measures]


def known_metrics(at_budget: pd.DataFrame, measures: Iterable[str] = ()) -> list[str]:
    """The metrics that any cell of a comparison has recorded; the usual two where none has.

    Args:
        at_budget: as `equal_compute` gives it.
        measures: of recorded runs, in which case they are columns of `at_budget`.
    """
    names = [*METRICS, *measures]
    return [name for name in names if at_budget[f"last_{name}"].notna().any()] or [*METRICS]


def asked_metrics(
    at_budget: pd.DataFrame,
    measures: Sequence[str],
    select: Select | None,
    test: Sequence[str] | None,
) -> tuple[Select, Sequence[str]]:
    """The metric that chooses in a comparison, and those that are tested.

    Args:
        at_budget: as `equal_compute` gives it, of one comparison.
        measures: of recorded runs, of any comparison.
        select: the metric asked for; None: accuracy, or the only one that is known.
        test: the metrics asked for; None: all that are known.

    Raises:
        ResultsError: no cell has recorded one that was asked for, or `select` has to be given.
    """
    task = at_budget["task"].iloc[0]
    first = [name for name in measures if name == select]  # before the others of their own
    known = known_metrics(at_budget, dict.fromkeys([*first, *measures]))
    # Where no cell of a study has a usual one, no option can be chosen, which is said there.
    recorded = is_recorded(at_budget).any()
    if select is not None and select not in known and (recorded or select not in METRICS):
        raise ResultsError(f"--select: {unknown(f'measure of {task}', select, known)}")
    asked = [test] if isinstance(test, str) else [*(() if test is None else test)]
    for name in asked:
        if name not in known:
            raise ResultsError(f"--test: {unknown(f'measure of {task}', name, known)}")
    if select is None and "accuracy" not in known and len(known) > 1:
        raise ResultsError(
            f"the runs of {task} have no accuracy to choose options by. Name the measure that "
            f"chooses, --select {known[0]}; recorded: {', '.join(known)}."
        )
    usual = "accuracy" if "accuracy" in known else known[0]
    return select or usual, tuple(dict.fromkeys(asked or known))


def options(at_budget: pd.DataFrame, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Validation scores of every option that was tried, on the seeds that tune.

    Args:
        at_budget: as `equal_compute` gives it.
        metrics: that may choose, perhaps repeated.

    Returns:
        One row an option: the columns of GROUP and OPTION, `num_seeds`, `num_diverged`,
        `num_censored`, the seed means of the metrics, as `validation_accuracy` (fractions), and
        `validation_loss` (nats), each missing if a seed has none (the loss if one diverged),
        `num_unswitched`, the seeds that were still in the first phase of their schedule at the
        cut, `can_be_chosen`, and `num_options` of its group.

    An option can be chosen if all of its seeds have switched, none was censored, and it has every
    seed that another such option of its group has. Otherwise one lucky seed would beat the mean of
    many, and options would differ by the seeds they lack.

    Raises:
        ResultsError: there are no validation evaluations.
    """
    tuned = tuning(at_budget)
    rows = tuned[tuned["split"] == "validation"]
    if rows.empty and is_recorded(tuned).any():  # lone options need no validation
        rows = tuned[tuned["split"] == "test"].assign(
            **dict.fromkeys([*metrics, "loss"], math.nan)
        )
    if rows.empty:
        raise ResultsError("there are no validation evaluations to choose options by.")
    # Sorted, since the last bit of a mean depends on the order.
    unswitched = ~rows["diverged"] & (rows["budget_fraction"] <= rows["switch_point"])
    rows = rows.assign(censored=rows["status"] == "censored", unswitched=unswitched)
    rows = rows.sort_values(["seed", "cell_id"])
    groups = rows.groupby(GROUP + OPTION, dropna=False)
    table = groups.agg(
        num_seeds=("cell_id", "size"),
        num_diverged=("diverged", "sum"),
        num_censored=("censored", "sum"),
        num_unswitched=("unswitched", "sum"),
    )
    for metric in dict.fromkeys([*metrics, "loss"]):
        table[f"validation_{metric}"] = groups[metric].mean(skipna=False)
    table = table.reset_index()
    whole = (table["num_censored"] == 0) & (table["num_unswitched"] == 0)
    of_whole = rows.merge(table.loc[whole, GROUP + OPTION])
    every_seed = of_whole.groupby(GROUP)["seed"].nunique().rename("every_seed")
    has_every = table["num_seeds"] == table.join(every_seed, on=GROUP)["every_seed"]
    table["can_be_chosen"] = whole & has_every
    table["num_options"] = table.groupby(GROUP)["lr"].transform("size")
    return in_order(table, GROUP + OPTION)


def choose(at_budget: pd.DataFrame, select: Select = "accuracy") -> pd.DataFrame:
    """The option of each group with the best seed-mean validation score.

    Ties go to the lower validation loss, then to the smaller learning rate. Some options cannot
    be chosen (see `options`), nor can those without a score; a group that has no other option has
    no row.

    Args:
        at_budget: as `equal_compute` gives it.
        select: `accuracy`; `saif`, which uses the hidden foreground: say so beside the result; or
            a measure that recorded runs have.

    Returns:
        One row a group: the columns of `options`, and `select`.

    Raises:
        ValueError: `select` is none of these.
        ResultsError: there are no validation evaluations.
    """
    if select not in METRICS and f"last_{select}" not in at_budget:
        raise ValueError(f"select must be accuracy, saif or a recorded measure, got {select!r}")
    return best_of(options(at_budget, [*METRICS, select]), select)


def chosen(
    results: str | os.PathLike[str] | Results, cell_ids: Iterable[str], select: Select = "accuracy"
) -> dict[tuple[str, str], str]:
    """The options that a report of some cells would choose.

    A study tunes by it on machines that draw nothing: no section is imported here.

    Args:
        results: path, URL or an open `Results`.
        cell_ids: of cells that tune; ids without a result are ignored.
        select: validation metric, see `choose`.

    Returns:
        (comparison id, paradigm) -> id of a recorded cell of the chosen option; groups without an
        option that can be chosen are absent.

    Raises:
        ResultsError: unreadable results.
    """
    results = opened(results)
    ids = results.cells(cell_ids, ["cell_id"])["cell_id"]
    if ids.empty:
        return {}
    source = DirectorySource(results, cell_ids=ids)
    found = cut_cells(source, Cut(), ["accuracy", "saif", "loss"])
    choices = {}
    for comparison_id, at_budget in found.table.groupby("comparison_id"):
        rows = rows_of(choose(at_budget, select), at_budget)
        for paradigm, cell_id in zip(rows["paradigm"], rows["cell_id"], strict=True):
            choices[str(comparison_id), str(paradigm)] = str(cell_id)
    return choices


def best_of(options: pd.DataFrame, select: Select) -> pd.DataFrame:
    """The result of `choose`, from given `options`."""
    best = by_preference(options, select).drop_duplicates(GROUP)
    return best.assign(select=select).reset_index(drop=True)


def by_preference(options: pd.DataFrame, select: Select) -> pd.DataFrame:
    """The options that can be chosen, best first within each group.

    Args:
        options: as `options` gives them.
        select: see `choose`.
    """
    if not _validated(options):
        eligible = options[options["can_be_chosen"] & has_score(options, select)]
        return in_order(eligible, GROUP + OPTION)
    return best_first(options, GROUP, f"validation_{select}", OPTION)


def moved_by_choice(
    at_budget: pd.DataFrame, choice: pd.DataFrame, metrics: Sequence[str]
) -> dict[tuple[str, str], tuple[float, float]]:
    """How far a paradigm's test scores would move with an option that may be the better choice.

    A score between evaluations may be off by `between_<metric>` (`analysis.digest.at_cut`),
    on validation, too: an option that seems a little worse than the chosen one may be better.

    Args:
        at_budget, choice, metrics: see `analysis.digest.pairs.paired_tables`.

    Returns:
        (paradigm, metric) -> how far down and up, both >= 0 and infinite where it is not known;
        no entry where the choice is sure.
    """
    select = choice["select"].iloc[0] if len(choice) else ""
    if f"between_{select}" not in at_budget:
        return {}
    option = ["paradigm", *OPTION]
    tried = with_chosen(options(at_budget, [select]), choice, option)
    tried = tried[tried["can_be_chosen"] & has_score(tried, select)]
    rows = tuning(at_budget).merge(tried[[*option, "chosen"]], on=option)
    numbers = [f"{part}{name}" for name in {select, *metrics} for part in ("", "between_")]
    means = rows.astype(dict.fromkeys(numbers, float))
    means = means.groupby(["split", *option, "chosen"], dropna=False)[numbers].mean().reset_index()
    scores, tests = (means[means["split"] == split] for split in ("validation", "test"))
    best, of_chosen = (each[each["chosen"]].set_index("paradigm") for each in (scores, tests))
    of_best = best[[select, f"between_{select}"]].reindex(scores["paradigm"]).to_numpy()
    behind, off = of_best[:, 0] - scores[select], of_best[:, 1] + scores[f"between_{select}"]
    rivals = scores[~scores["chosen"] & (off > 0) & (behind <= off + ROUNDING)]
    at_choice: Mapping[Any, Any] = of_chosen.to_dict("index")
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for name, test in tests.merge(rivals[option], on=option).groupby("paradigm"):
        here = at_choice.get(name, {})
        for metric in metrics:
            up, off = test[metric] - here.get(metric, math.nan), test[f"between_{metric}"]
            sides = [(side + off).fillna(math.inf).clip(lower=0).max() for side in (-up, up)]
            found[str(name), metric] = sides[0], sides[1]
    return found


def has_score(options: pd.DataFrame, select: Select) -> pd.Series:
    """Whether each option of a comparison has the validation score that a choice takes.

    Where nothing is validated, as of recorded runs it need not be, a lone option needs none.
    """
    known = options[f"validation_{select}"].notna()
    return known if _validated(options) else options["num_options"].eq(1)


def _validated(options: pd.DataFrame) -> bool:
    return bool(options.filter(regex="^validation_").notna().any(axis=None))


def summarise(
    at_budget: pd.DataFrame,
    choice: pd.DataFrame,
    split: str = "test",
    confidence: float = 0.95,
    measures: Sequence[str] = (),
) -> pd.DataFrame:
    """Mean and interval of each group's chosen option, on the seeds that confirm if any do.

    Intervals of shares are on the logit scale, those of SAIF and accuracy over seeds, images and
    background images where these are known (see `analysis.digest.scores.scores`), all others
    over seeds.

    Args:
        at_budget: as `equal_compute` gives it.
        choice: as `choose` gives it.
        split: `test`, `validation` or `train`.
        confidence: of the intervals, in (0, 1).
        measures: of recorded runs, which are summarised, too, as far as they are known.

    Returns:
        One row a group whose chosen option was tested: the columns of `choice`, with `num_seeds`
        and `num_diverged` counted on `split`; `most_seeds`, those that were planned, or that the
        comparison's best filled option has: where `num_seeds` is smaller, cells failed or have not
        run; `saif`, `accuracy`, `loss` and `foreground_attention_mean`, each with its
        `<metric>_low` and `<metric>_high`: fractions (`loss` in nats), bounds NaN when n < 2, of
        SAIF and accuracy also where seeds agree, since that says nothing of further ones, and
        where they fall apart (at `<metric>_above`, see `analysis.rules.learning`); all NaN where a
        seed has no value (a diverged cell has no loss). `<metric>_learned` seeds have learned,
        with the mean `<metric>_given`; one image has `<metric>_of_one_image` of what is wrong, or
        right, if that is rarer. `num_images` and `num_backgrounds` (missing: not known) and the
        standard errors of `spreads`, fractions; `n`, `architecture`, `batch_size`, `precision`,
        `budget_amount`, `budget_unit`, `cut`, `axis`, `comparison_id`; the largest `compute_flops`
        spent, and that of the axis; `split` and `confidence`. Also the further measures of the
        modality, likewise, where they are known.

    Raises:
        ResultsError: there are no evaluations on `split`.
    """
    if not (at_budget["split"] == split).any() and not choice.empty:
        raise ResultsError(f"there are no {split} evaluations.")
    rows = tested(at_budget)
    rows = rows[rows["split"] == split]
    sizes = rows.groupby([*GROUP, *OPTION], dropna=False).size()
    filled: dict[Any, int] = sizes.groupby(level=["task", "m"]).max().to_dict()
    rows = rows_of(choice, rows)
    planned: dict[Any, int] = rows.groupby(GROUP)["planned_seeds"].max().dropna().to_dict()
    further = (name for task in rows["task"].unique() for name in further_measures(task))
    known = (name for name in further if name in rows and rows[name].notna().any())
    metrics = known_metrics(at_budget, measures)
    measured = list(dict.fromkeys([*SUMMARISED, *known, *metrics]))
    records = []
    for key, group in rows.sort_values("seed").groupby(GROUP):
        record: dict[str, Any] = dict(zip(_SHARED, group[_SHARED].iloc[0], strict=True))
        record |= {"num_seeds": len(group), "num_diverged": int(group["diverged"].sum())}
        record["most_seeds"] = int(max(planned.get(key, filled[key[:2]]), len(group)))
        for spent in {"compute_flops": None, AXES[record["axis"]]: None}:
            record[spent] = float(group[spent].astype(float).max())
        for metric in (name for name in measured if name not in metrics):
            values = group[metric].to_numpy(np.float64, na_value=np.nan)
            if metric in UNBOUNDED:
                record |= named_interval(metric, values, confidence)
            else:
                found = share_mean(values, confidence=confidence)
                ends = (found.mean, found.low, found.high)
                record |= dict(zip(interval_columns(metric), ends, strict=True))
        record |= _crossed(group, metrics, confidence)
        record |= {"split": split, "confidence": confidence}
        records.append(record)
    summary = pd.DataFrame(records, columns=None if records else _SHARED)
    picked = choice.drop(columns=["num_seeds", "num_diverged"])
    return in_order(picked.merge(summary, on=GROUP), GROUP)


def _crossed(group: pd.DataFrame, metrics: Iterable[str], confidence: float) -> dict[str, float]:
    """The metrics of the cells of one option, over seeds and, where known, images."""
    record = {"num_images": math.nan, "num_backgrounds": math.nan}
    for metric in metrics:
        known = scores(group, metric)
        by_seed = group[metric].to_numpy(np.float64, na_value=np.nan)
        measure = measures_of(group["task"].iloc[0], [metric])[metric]
        floor = measure.floor(float(group["num_classes"].iloc[0]))
        backgrounds = known.of_backgrounds
        found = share_mean(known.shares, known.weights, floor, confidence, backgrounds)
        if known.instances:
            record["num_images"] = found.num_images
        if backgrounds:
            record["num_backgrounds"] = backgrounds.images
        above = apart(by_seed, floor)
        learned = by_seed[by_seed > (floor if above is None else above)]
        known_guess = above is not None or floor > -math.inf
        record |= {
            metric: float(by_seed.mean()),
            f"{metric}_low": found.low,
            f"{metric}_high": found.high,
            f"{metric}_seed_se": found.seed_se if above is None else math.nan,
            f"{metric}_image_se": found.image_se if above is None else math.nan,
            f"{metric}_background_se": found.background_se if above is None else math.nan,
            f"{metric}_of_one_image": known.of_one_image,
            f"{metric}_above": math.nan if above is None else above,
            f"{metric}_learned": len(learned) if known_guess else math.nan,
            f"{metric}_given": float(learned.mean()) if len(learned) else math.nan,
        }
    return record
