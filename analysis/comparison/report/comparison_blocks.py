"""What the page shows of one comparison below its answer: figures, claims; the rest folded."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.comparison.report.tables import option_columns
from analysis.comparison.report.verdicts import WOULD_DECIDE, paired_cells
from analysis.digest.choose import summarised_metrics
from analysis.digest.compare import Comparison
from analysis.groups import GROUP, OPTION, with_chosen
from analysis.page.sentences import over_what
from analysis.section.blocks import Block, Table, Text
from analysis.section.columns import by_columns, plain
from analysis.words import (
    made_equal,
    metric_name,
    of_draws,
    percent,
    setting_text,
    tally,
    three_decimals,
)


def _verdicts(comparison: Comparison) -> list[Block]:
    header, rows = paired_cells(comparison.paired)
    decided = [i for i, row in enumerate(rows) if row[2] != "undecided"]
    text = (
        "First minus second paradigm on the same seeds; ± is a standard error in points. "
        f"{over_what(comparison.paired)}"
    )
    table = Table(header, rows, left=(0, 1, 2), marked=decided, csv="paired.csv")
    return [Text(text), table, Text(of_draws(WOULD_DECIDE, comparison.task), "quiet")]


def _options(comparison: Comparison) -> list[Block]:
    known = dict.fromkeys([comparison.select, *summarised_metrics(comparison.summary)])
    options = with_chosen(comparison.options, comparison.choice, GROUP + OPTION)
    names = {metric: metric_name(metric, task=comparison.task) for metric in known}
    columns = [
        plain("paradigm"),
        *option_columns(comparison.recorded),
        plain("n", "num_seeds"),
        plain("diverged", "num_diverged"),
        *([] if comparison.recorded else [plain("censored", "num_censored")]),
        *(
            (
                f"validation {name} %",
                lambda row, column=f"validation_{metric}": percent(row[column], 2),
            )
            for metric, name in names.items()
        ),
        ("validation loss", lambda row: three_decimals(row["validation_loss"])),
        ("", lambda row: "chosen" if row["chosen"] else ""),
    ]
    tried = comparison.options.groupby("paradigm", sort=False).size()
    chosen = (
        f"Chosen by the seed mean of validation {names[comparison.select]}"
        f"{', on the seeds that tune' * comparison.staged}."
    )
    if comparison.recorded and tried.max() < 2:
        chosen = "Nothing had to be chosen."
    marked = np.flatnonzero(options["chosen"]).tolist()
    left = (0, len(columns) - 1)
    table = Table(*by_columns(columns, options), left=left, marked=marked, csv="options.csv")
    return [Text(f"Options tried: {tally(tried)}. {chosen}"), table]


def _settings(comparison: Comparison) -> list[list[str]]:
    """Name and value: what all cells share, and what is recorded beside it."""
    cells, noun = comparison.cells, comparison.noun
    names = {"m": comparison.modality.m, "n": f"training {noun} n"}
    rows = [["comparison", comparison.id]]
    for name, value in comparison.settings.items():
        if name not in ("schedule", "seed"):
            text = f"{value['amount']:,d} {value['unit']}" if name == "budget" else None
            shown = names.get(name, name.replace("_", " "))
            rows.append([shown, text or setting_text(value)])
    rows.append(["made equal", made_equal(comparison.axis, noun).removeprefix("equal ")])
    stage = cells["stage"].map({"tune": "tuning seeds", "confirm": "confirming seeds"})
    seeds = cells["seed"].groupby(stage.fillna("seeds"), sort=False)
    rows += [[str(name), _listed(each)] for name, each in seeds]
    rows.append(["studies", _listed(cells["study"])])
    if not comparison.recorded:
        rows += _surroundings(cells)
    return [*rows, ["last finished", str(cells["finished_at"].max())]]


def _surroundings(cells: pd.DataFrame) -> Iterator[list[str]]:
    """Where cells ran."""
    for name, column in {
        "device": "device",
        "CPU threads": "threads",
        "cells trained together": "pack",
        "instances a pass": "micro_batch",
        "code version": "code_version",
    }.items():
        yield [name, _listed(cells[column])]
    versions = cells["package_versions"].map(
        lambda text: ", ".join(f"{name} {each}" for name, each in sorted(json.loads(text).items()))
    )
    yield ["package versions", _listed(versions)]
    seconds = (cells["total_train_seconds"] / cells["pack"]).sum()
    yield ["training time, all cells", f"{seconds:,.0f} s"]


def _listed(values: pd.Series) -> str:
    return "; ".join(map(str, sorted(values.dropna().unique())))
