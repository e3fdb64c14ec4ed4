"""What MLflow shows of a comparison: a run of each paradigm, over its seeds."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison
from analysis.digest.means import common, learning_curve, mean_heatmaps
from analysis.forms import SHARES, Unit, known, percent
from analysis.page.sentences import answer, said
from analysis.page.tables import comparison_cells, rates, seeds_there
from analysis.page.where_it_looks import looks
from analysis.section.section import Section
from analysis.section.summary import summary_run
from analysis.section.templates import Table, markdown_table, table
from study.results import OF_DATA
from study.tracking.heat_map_image import heatmap_svg
from study.tracking.runs import Run


def group_summaries(section: Section[Comparison], alone: bool = True) -> list[Run]:
    """One run per paradigm, in the order of the comparison's table.

    Args:
        section: of a comparison.
        alone: whether there is no other setting, so that names need not say it.

    Returns:
        The runs; paradigms without an option that can be chosen have none. Metrics are the scores
        and measures of the test split at the cut, and `n`, the seeds; intervals are in the note.
    """
    comparison, summary = section.subject, section.subject.summary
    if summary.empty:
        return []
    answer_table = markdown_table(Table(*comparison_cells(comparison)))
    about = [text for name in ("setting", "tuned", "limits") for text in said(name, comparison)]
    note = "\n\n".join([*answer([comparison]), answer_table, *about])
    metrics = [name for name in comparison.measures if name in summary]
    return [
        summary_run(
            key=f"{comparison.id}/{row['paradigm']}",
            named=[
                row["paradigm"],
                "" if alone else comparison.name,
                *(
                    f"{name} {_short(comparison.measures[metric].unit, row[metric])}"
                    for metric, name in comparison.names.items()
                    if known(row[metric])
                ),
            ],
            seeds=seeds_there(row),
            note=note,
            params=_params(comparison, row),
            metrics={name: float(row[name]) for name in metrics} | {"n": float(row["num_seeds"])},
            files=functools.partial(_files, section, row["paradigm"]),
            paradigms=[*summary["paradigm"]],
            curves=_curves(comparison, row["paradigm"]),
        )
        for row in summary.to_dict("records")
    ]


def _short(unit: Unit, value: float) -> str:
    """``86 %``, ``23.46``."""
    return f"{percent(value, 0)} %" if unit is SHARES else unit.value(value)


def _params(comparison: Comparison, row: Mapping[Hashable, Any]) -> dict[str, str]:
    """What differs between paradigms comes first where MLflow compares runs, by the alphabet."""
    first, others = table(
        "table_params.j2",
        c=comparison,
        row=row,
        there=[name for name, value in row.items() if not pd.isna(value)],
        of_data=[*OF_DATA, "inference"],
        select=comparison.measures[comparison.select],
        rates=rates,
    )
    return {each[0]: each[1] for each in (first, *others)}


def _files(section: Section[Comparison], paradigm: str) -> dict[str, bytes]:
    """Where it looks, its heat map, and what all paradigms share."""
    comparison = section.subject
    files, seen = {**section.files}, looks(comparison)
    if seen and paradigm in seen.examples:
        files["where-it-looks.html"] = seen.page(paradigm)
    rows = comparison.chosen[comparison.chosen["paradigm"] == paradigm]
    maps = {split: mean_heatmaps(rows, comparison.choice, split) for split in ("test", "train")}
    if found := {split: of[paradigm] for split, of in maps.items() if of}:
        files["heatmap.svg"] = heatmap_svg(found, comparison.modality)
    return files


def _curves(comparison: Comparison, paradigm: str) -> dict[str, pd.Series]:
    """Each tested metric by training compute, as far as all seeds have it."""
    rows = comparison.evaluations[comparison.evaluations["paradigm"] == paradigm]
    return {
        f"test/{name}": common(learning_curve(rows, name)).set_index("compute_flops")["mean"]
        for name in comparison.metrics
    }
