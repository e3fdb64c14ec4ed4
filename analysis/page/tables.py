"""The tables of one comparison for people, which templates print.

Fractions become per cent and points (hundredths) here and nowhere earlier.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.digest.compare import Comparison
from analysis.digest.measures import Measure, measures
from analysis.groups import GROUP, OPTION, with_chosen
from analysis.page.table_one import beside
from analysis.page.templates import table
from analysis.rules.statistics import CONFIDENCE, MIN_SEEDS
from analysis.section.blocks import Table
from analysis.section.columns import Row
from analysis.words import (
    MANY,
    SPREADS,
    level,
    number,
    of_planned,
    percent,
    three_decimals,
)
from study import tasks

_RAN_ON = (
    "study", "device", "threads", "pack", "micro_batch", "code_version", "package_versions",
)  # fmt: skip

Cells = tuple[list[str], list[list[str]]]
"""Header and rows."""


def measures_of(comparison: Comparison) -> list[Measure]:
    """The measures of a comparison, with those that only recorded runs have."""
    tried = comparison.options.filter(regex="^validation_").columns
    return [*measures(comparison.task, tried.str.removeprefix("validation_")).values()]


def comparison_cells(comparison: Comparison, published: bool = False) -> Cells:
    """The answer's table: one row per paradigm, with each mean and its interval, in per cent.

    Args:
        comparison: with a summary.
        published: add the paper's Table 1 where it has such a row.
    """
    paper = beside(comparison).to_dict() if published else {}
    return _means(comparison, _scores(comparison), paper)


def further_cells(comparison: Comparison) -> list[Cells]:
    """A table of each further measure that is known: mean and interval over seeds."""
    shown = {each.name for each in _scores(comparison)}
    there = comparison.summary.dropna(axis="columns", how="all")
    further = [each for each in measures_of(comparison) if each.name not in shown]
    return [_means(comparison, [each]) for each in further if each.column in there]


def paired_cells(paired: pd.DataFrame) -> Cells:
    """The verdicts of one comparison, one row per metric and pair.

    Args:
        paired: as `analysis.digest.pairs` gives it.
    """
    task = next(iter(paired["task"]), "")
    return table(
        "table_verdicts.j2",
        rows=paired.to_dict("records"),
        level=_level(paired),
        measures=measures(task, paired["metric"].unique()),
        factors=sampled(paired),
        draws=tasks.modality(task).draws,
        spreads=SPREADS,
        p_value=p_value,
        would_decide=would_decide,
    )


def pair_cells(comparison: Comparison) -> Cells:
    """The same for the terminal: one row per pair of the paradigms that have numbers."""
    paired, names = comparison.paired, comparison.summary["paradigm"]
    rows = paired[paired["first"].isin(names) & paired["second"].isin(names)]
    by_pair = rows.groupby(["first", "second"], sort=False)
    return table(
        "table_pairs.j2",
        pairs=[each.to_dict("records") for _, each in by_pair],
        level=_level(paired),
        metrics=comparison.metrics,
        measures=measures(comparison.task, comparison.metrics),
    )


def verdict_table(paired: pd.DataFrame) -> Table:
    """`paired_cells` for the page, with what is decided marked."""
    decided = np.flatnonzero(paired["verdict"] != "undecided").tolist()
    return Table(*paired_cells(paired), range(3), decided, csv="paired.csv")


def option_table(comparison: Comparison) -> Table:
    """Every option that was tried with its validation scores, the chosen ones marked."""
    options = with_chosen(comparison.options, comparison.choice, GROUP + OPTION)
    there = options.dropna(axis="columns", how="all")
    scores = [each for each in measures_of(comparison) if f"validation_{each.column}" in there]
    header, rows = table(
        "table_options.j2",
        c=comparison,
        rows=options.to_dict("records"),
        censored=options["num_censored"].any(),
        scores=sorted(
            (each for each in scores if each.tested),
            key=lambda each: each.column != comparison.select,
        ),
        rates=rates,
    )
    marked = np.flatnonzero(options["chosen"]).tolist()
    return Table(header, rows, (0, len(header) - 1), marked, csv="options.csv")


def setting_table(comparison: Comparison) -> Table:
    """Name and value: what all cells share, where they ran, and when."""
    cells = comparison.cells
    stages = cells["seed"].groupby(cells["stage"].fillna(""), sort=False)
    values = {name: sorted(cells[name].dropna().unique()) for name in _RAN_ON}
    first, others = table(
        "table_settings.j2",
        c=comparison,
        stages={stage: sorted(seeds.unique()) for stage, seeds in stages},
        values=values,
        versions=[dict(sorted(json.loads(text).items())) for text in values["package_versions"]],
        seconds=(cells["total_train_seconds"] / cells["pack"]).sum(),
    )
    return Table([], [first, *others], (0, 1), wrap=(1,))


def sampled(rows: pd.DataFrame) -> list[str]:
    """What tests or means are over: seeds, images, backgrounds, as far as they are known."""
    others = ("images", "backgrounds")
    return ["seeds", *(name for name in others if rows[f"num_{name}"].notna().any())]


def would_decide(row: Row) -> tuple[str, str]:
    """How many seeds decide an undecided pair with the power of the report.

    Returns:
        Of a difference at the far end of its interval, and of the one that was seen; ``-`` of a
        row that is decided, or not yet to be decided.
    """
    if row["verdict"] != "undecided" or _is_interim(row):
        return "-", "-"
    if pd.isna(row["seen_seeds"]):
        return f"{MIN_SEEDS} or more" if row["num_pairs"] < MIN_SEEDS else "more", "-"
    far, seen = (
        f"> {MANY:,d}" if row[name] > MANY else f"{math.ceil(row[name]):,d}"
        for name in ("needed_seeds", "seen_seeds")
    )
    return far, seen


def p_value(p: float) -> str:
    """Two significant digits; below a thousandth ``< 0.001``; a missing value is ``-``."""
    if pd.isna(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def seeds_there(row: Row) -> str:
    """``3``, ``2 of 3`` where seeds are missing."""
    return of_planned(str(row["num_seeds"]), row["most_seeds"])


def rates(row: Row) -> str:
    """The learning rate; of a schedule with phases the first and the last: ``0.1 then 0.05``."""
    first, last = number(row["lr"]), number(row["last_lr"])
    return first if first == last else f"{first} then {last}"


def _means(
    comparison: Comparison,
    shown: Sequence[Measure],
    paper: Mapping[Hashable, Mapping[Hashable, float]] | None = None,
) -> Cells:
    """Means with their intervals, and numbers of the paper: metric -> paradigm -> fraction."""
    return table(
        "table_means.j2",
        c=comparison,
        rows=comparison.summary.to_dict("records"),
        level=_level(comparison.summary),
        measures=shown,
        names=measures(comparison.task),
        forms={True: percent, False: three_decimals},
        paper=paper or {},
        seeds=seeds_there,
    )


def _scores(comparison: Comparison) -> list[Measure]:
    """The measures that its summary has spreads of."""
    every = measures_of(comparison)
    return [each for each in every if f"{each.column}_seed_se" in comparison.summary]


def _level(rows: pd.DataFrame) -> str:
    """That of the intervals in a table."""
    return level(next(iter(rows["confidence"]), CONFIDENCE))


def _is_interim(row: Row) -> bool:
    return not pd.isna(row.get("ended_seeds", math.nan))
