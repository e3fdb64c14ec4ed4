"""What the page shows of one comparison below its answer: figures, claims; the rest folded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.comparison.report.looks import looks
from analysis.comparison.report.tables import cut_text, further_cells, option_columns
from analysis.comparison.report.verdicts import WOULD_DECIDE, over_what, paired_cells
from analysis.digest.choose import summarised_metrics
from analysis.digest.compare import Comparison
from analysis.groups import GROUP, OPTION, with_chosen
from analysis.rules.claim import Claim
from analysis.section.blocks import Block, Details, Heading, Shown, Table, Text
from analysis.section.columns import by_columns, plain
from analysis.section.parts import again_blocks, claim_blocks, claim_details, end_states
from analysis.words import (
    made_equal,
    metric_name,
    of_draws,
    percent,
    setting_text,
    tally,
    three_decimals,
)

ANSWERING = "differences"
"""How the name of the figure begins that stands in the answer."""

_OPEN: Mapping[str, Sequence[str]] = {
    "Curves": ("compute-",),
    "Heat maps": ("heatmaps-test",),
}
"""Heading -> how the names of its figures begin; the others are folded."""


def comparison_blocks(
    comparison: Comparison,
    claims: Sequence[Claim],
    shown: Sequence[Shown],
    results: str,
    in_full: bool = True,
) -> list[Block]:
    """The section below its answer.

    Args:
        comparison: one comparison.
        claims: what `analysis.digest.claims.claims` says of it.
        shown: its pictures.
        results: path or URL of the results directory, for the command that repeats a cell.
        in_full: whether to show where it looks, of which a page has no room for many.
    """
    rest = [each for each in shown if not each.name.startswith(ANSWERING)]
    blocks: list[Block] = []
    for heading, begins in _OPEN.items():
        mine = [each for each in rest if each.name.startswith(tuple(begins))]
        rest = [each for each in rest if each not in mine]
        blocks += [Heading(heading), *mine] if mine else []
    if gallery := comparison.modality.gallery:
        mine = [each for each in rest if each.name.startswith(f"{gallery.stem}-")]
        rest = [each for each in rest if each not in mine]
        blocks += [Heading(gallery.heading), Text(gallery.text, "quiet"), *mine] if mine else []
    if in_full:
        blocks += looks(comparison)
    blocks += claim_blocks(claims)
    if len(comparison.paired):
        blocks.append(Details("Every verdict", _verdicts(comparison)))
    if rest:
        blocks.append(Details("Other heat maps, and what each option gave", rest))
    if len(comparison.summary):
        further = [Table(*each, csv="comparison.csv") for each in further_cells(comparison)]
        text = f"On the {cut_text(comparison.summary)}. Intervals are over seeds."
        measures = [Text(each) for each in (text, comparison.modality.measures_text) if each]
        blocks.append(Details("Loss, attention and further measures", [*measures, *further]))
    blocks += claim_details(claims)
    blocks.append(Details("Every option that was tried", _options(comparison)))
    blocks.append(Details("Cells by end state", end_states(comparison.cells)))
    blocks.append(Details("Settings", [Table([], _settings(comparison), (0, 1), wrap=(1,))]))
    if not comparison.recorded:  # nothing here can train recorded runs again
        test = comparison.chosen[comparison.chosen["split"] == "test"]
        cells = comparison.cells
        tested = cells[cells["cell_id"].isin(test["cell_id"])]
        cell = (cells if tested.empty else tested).iloc[0]
        blocks.append(Details("Repeat any cell", again_blocks(cell, results)))
    return blocks


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
