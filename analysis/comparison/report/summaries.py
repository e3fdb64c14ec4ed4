"""What MLflow shows of a comparison: a run of each paradigm, over its seeds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.comparison.report.tables import (
    comparison_cells,
    rates,
    seeds_there,
)
from analysis.digest.choose import summarised_metrics
from analysis.digest.compare import Comparison
from analysis.digest.means import common, learning_curve, mean_heatmaps
from analysis.digest.measures import measures
from analysis.page.sentences import answer, limits, setting_text, tuned
from analysis.page.where_it_looks import looks
from analysis.rendering import markdown
from analysis.section.blocks import Table
from analysis.section.picture import Picture
from analysis.section.summary import run_files, summary_run
from analysis.words import amount, instances, known, number, percent
from study import tasks
from study.evaluate.heat_map_image import heatmap_png
from study.results import OF_DATA, RECORDED
from study.tracking.runs import Run

_SPLIT = "test"
_SETTINGS = (*OF_DATA, "inference")


def group_summaries(
    comparison: Comparison,
    tables: Mapping[str, pd.DataFrame],
    draw: Callable[[], Sequence[Picture]],
    alone: bool = True,
) -> list[Run]:
    """One run a paradigm, in the order of the comparison's table.

    Args:
        comparison: as `analysis.digest.compare.compare` gives it.
        tables: name -> table, which all of them hold.
        draw: gives its pictures, when they are asked for.
        alone: whether there is no other setting, so that names need not say it.

    Returns:
        The runs; paradigms without an option that can be chosen have none. Metrics are the scores
        and measures of the test split at the cut, and `n`, the seeds; intervals are in the note.
    """
    if comparison.summary.empty:
        return []
    table = markdown.table(Table(*comparison_cells(comparison)))
    said = [setting_text(comparison), *tuned(comparison), *limits(comparison)]
    note = "\n\n".join([*answer([comparison]), table, *said])
    shared = functools.cache(lambda: run_files(tables, draw()))
    seen = looks(comparison)
    pages = functools.cache(lambda: seen.pages() if seen else {})
    curves = {
        metric: common(learning_curve(comparison.evaluations, metric, _SPLIT))
        for metric in comparison.metrics
    }
    settings = {name: str(v) for name, v in comparison.settings.items() if name in _SETTINGS}
    settings["saif_threshold"] = number(comparison.threshold)

    def files(paradigm: str) -> dict[str, bytes]:
        of_split = {
            split: mean_heatmaps(comparison.chosen, comparison.choice, split)
            for split in (_SPLIT, "train")
        }
        maps = {split: of[paradigm] for split, of in of_split.items() if paradigm in of}
        own = {"where-it-looks.html": pages()[paradigm]} if paradigm in pages() else {}
        if maps:
            own["heatmap.png"] = heatmap_png(maps, comparison.modality)
        return own | shared()

    return [
        summary_run(
            key=f"{row['comparison_id']}/{row['paradigm']}",
            what=str(row["paradigm"]),
            seeds=seeds_there(row),
            where="" if alone else comparison.name,
            scores=[
                f"{name} {percent(row[metric], 0)} %"
                for metric, name in comparison.names.items()
                if known(row[metric])
            ],
            note=note,
            params=_params(row) | settings,
            metrics=_metrics(row),
            files=functools.partial(files, str(row["paradigm"])),
            paradigms=[*comparison.summary["paradigm"]],
            curves={
                f"{_SPLIT}/{metric}": mine[["compute_flops", "mean"]].to_numpy(float).tolist()
                for metric, curve in curves.items()
                if len(mine := curve[curve["paradigm"] == row["paradigm"]])
            },
        )
        for row in comparison.summary.to_dict("records")
    ]


def _params(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """What differs between paradigms comes first where MLflow compares runs, by the alphabet."""
    switches = not pd.isna(row["switch_point"])
    option = {
        "lr": rates(row),
        "switch_point": number(row["switch_point"]) if switches else "none",
    }
    budget = {
        "budget": f"{number(row['budget_amount'])} {row['budget_unit']}",
        "cut": number(row["cut"]),
    }
    if row["kind"] == RECORDED:
        option = {"option": str(row["schedule"])}
        budget = {"cut": amount(row["cut_at"], row["axis"], instances(row["task"]))}
    score = tasks.modality(row["task"]).score if row["select"] == "accuracy" else row["select"]
    names = ("paradigm", "task", "m", "n", "architecture", "batch_size")
    return {
        **option,
        **{name: str(row[name]) for name in names if not pd.isna(row[name])},
        "chosen_by": f"validation {score}",
        **budget,
    }


def _metrics(row: Mapping[Hashable, Any]) -> dict[str, float]:
    task = str(row["task"])
    names = dict.fromkeys([*summarised_metrics(row), *measures(task)])
    return {name: float(row[name]) for name in names if name in row} | {
        "n": float(row["num_seeds"])
    }
