"""What MLflow is given of a comparison: a summary of each paradigm."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.comparison.choice import (
    SUMMARISED,
    further_measures,
    spreads,
    summarised_metrics,
)
from analysis.comparison.compare import Comparison
from analysis.comparison.curves import common, learning_curve
from analysis.comparison.report.data import share_sentences
from analysis.comparison.report.tables import comparison_markdown
from analysis.comparison.report.text import stages
from analysis.comparison.report.verdicts import pair_notes
from analysis.groups import paradigm_order
from analysis.section.picture import Picture
from analysis.section.summary import DIGITS, Curve, GroupSummary, run_files
from analysis.statistics import interval_columns
from analysis.words import SPREADS, amount, instances, number
from study import tasks
from study.results import OF_DATA, RECORDED

_SPLIT = "test"
_INVERSE = {"better": "worse", "worse": "better"}


def summary_metrics(summaries: Iterable[pd.DataFrame]) -> dict[str, float]:
    """Metrics of a whole study: SAIF, accuracy, ... of each paradigm in each comparison.

    Args:
        summaries: as `analysis.summarise` gives them, one a comparison.
    """
    metrics: dict[str, float] = {}
    for row in itertools.chain.from_iterable(table.to_dict("records") for table in summaries):
        where = f"{row['task']}/m{row['m']}/{row['comparison_id'][:8]}/{row['paradigm']}"
        metrics |= {f"{where}/{metric}": row[metric] for metric in summarised_metrics(row)}
    return metrics


def group_summaries(
    comparison: Comparison,
    tables: Mapping[str, pd.DataFrame],
    draw: Callable[[], Sequence[Picture]],
) -> list[GroupSummary]:
    """One summary a paradigm, in the order of the comparison's table.

    Args:
        comparison: as `analysis.comparison.compare.compare` gives it.
        tables: name -> table, which all of its summaries show.
        draw: gives its pictures, when they are asked for.

    Returns:
        The summaries; paradigms without an option that can be chosen have none.
    """
    curves = _curves(comparison)
    if comparison.summary.empty:
        return []
    said = [*stages(comparison), *share_sentences(comparison), *pair_notes(comparison.paired)]
    table = "\n\n".join([_markdown(comparison), *said])
    numbers = [table.to_csv(index=False) for table in tables.values()]
    text = {"tables/comparison.md": _markdown(comparison).encode()}
    files = functools.cache(lambda: run_files(tables, draw()) | text)
    found = []
    for row in comparison.summary.to_dict("records"):
        paradigm = str(row["paradigm"])
        params = _params(row) | _of_data(comparison.settings)
        params |= {"saif_threshold": number(comparison.threshold)}
        params |= _verdicts(comparison.paired, paradigm)
        values = _metrics(row)
        known = {n: round(value, DIGITS) for n, value in values.items() if math.isfinite(value)}
        unknown = [name for name in values if name not in known]
        note = table + (f"\n\nNot known: {', '.join(unknown)}." if unknown else "")
        mine = curves.get(paradigm, {})
        held = json.dumps([params, known, mine, note, numbers], sort_keys=True)
        found.append(
            GroupSummary(
                key=f"{row['comparison_id']}/{paradigm}",
                comparison_id=str(row["comparison_id"]),
                name=f"{comparison.name} {paradigm} ({row['comparison_id'][:8]})",
                note=note,
                params=params,
                metrics=known,
                curves=mine,
                digest=hashlib.sha256(held.encode()).hexdigest()[:16],
                _draw=files,
            )
        )
    return found


def _params(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """What differs first: the comparison view shows them in this order, or by name."""
    option = {"lr": number(row["lr"])}
    if not pd.isna(row["switch_point"]):
        option |= {"last_lr": number(row["last_lr"]), "switch_point": number(row["switch_point"])}
    names = ("task", "m", "n", "architecture", "batch_size")
    budget = {"cut": number(row["cut"])}
    if row["kind"] == RECORDED:
        option = {"option": str(row["schedule"])}
        budget = {"cut": amount(row["cut_at"], row["axis"], instances(row["task"]))}
    else:
        budget = {"budget": f"{number(row['budget_amount'])} {row['budget_unit']}", **budget}
    score = tasks.modality(row["task"]).score if row["select"] == "accuracy" else row["select"]
    return {
        "paradigm": str(row["paradigm"]),
        **option,
        "options_tried": str(row["num_options"]),
        "chosen_by": f"validation {score}",
        **{name: str(row[name]) for name in names if not pd.isna(row[name])},
        **budget,
    }


def _of_data(settings: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(settings[name]) for name in (*OF_DATA, "inference") if name in settings}


def _metrics(row: Mapping[Hashable, Any]) -> dict[str, float]:
    further, metrics = further_measures(str(row["task"])), summarised_metrics(row)
    intervals = interval_columns(*dict.fromkeys([*SUMMARISED, *further, *metrics]))
    measured = [*intervals, *spreads(metrics)]
    counts = {"n_seeds": "num_seeds", "n_diverged": "num_diverged"}
    for what in ("images", "backgrounds"):
        if pd.isna(row[f"num_{what}"]):  # the intervals are not over these
            measured = [name for name in measured if not name.endswith(f"_{SPREADS[what]}")]
        else:
            counts[f"n_{what}"] = f"num_{what}"
    values = {name: float(row[name]) for name in measured if name in row}
    return values | {name: float(row[column]) for name, column in counts.items()}


def _verdicts(paired: pd.DataFrame, paradigm: str) -> dict[str, str]:
    """What the paired tests say of one paradigm, e.g. ``saif_better_than``: ``hard, soft``."""
    found: dict[str, list[str]] = {}
    for row in paired.to_dict("records"):
        verdict, other = str(row["verdict"]), str(row["second"])
        if paradigm == row["second"]:
            verdict, other = _INVERSE.get(verdict, verdict), str(row["first"])
        if paradigm in (row["first"], row["second"]):
            end = "than" if verdict in _INVERSE else "against"
            found.setdefault(f"{row['metric']}_{verdict}_{end}", []).append(other)
    return {name: ", ".join(paradigm_order(others)) for name, others in found.items()}


def _curves(comparison: Comparison) -> dict[str, dict[str, Curve]]:
    """Paradigm -> name -> curve."""
    found: dict[str, dict[str, Curve]] = {}
    for metric in comparison.metrics:
        table = common(learning_curve(comparison.evaluations, metric, _SPLIT))
        for paradigm, rows in table.groupby("paradigm"):
            for column, end in (("mean", ""), ("low", "_low"), ("high", "_high")):
                finite = rows[np.isfinite(rows[column])]
                points = zip(finite["compute_flops"], finite[column], strict=True)
                curve = sorted((float(x), float(y)) for x, y in points)
                if curve:
                    found.setdefault(str(paradigm), {})[f"{_SPLIT}/{metric}{end}"] = curve
    return found


def _markdown(comparison: Comparison) -> str:
    return comparison_markdown(
        comparison.summary, threshold=comparison.threshold, name=comparison.name
    )
