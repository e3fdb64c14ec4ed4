"""What the report shows of one comparison: verdicts, tables, figures, settings, as blocks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.comparison.choice import summarised_metrics
from analysis.comparison.compare import Comparison
from analysis.comparison.report.answer import lone_paradigm
from analysis.comparison.report.looks import CAPTIONS_STEM, HOW_TO_READ, looks
from analysis.comparison.report.tables import (
    HIDDEN_FOREGROUND,
    comparison_cells,
    cut_text,
    footnotes,
    further_cells,
    option_columns,
)
from analysis.comparison.report.text import edges, stages, stopped_options, unusual_cut
from analysis.comparison.report.verdicts import (
    WOULD_DECIDE,
    over_what,
    pair_notes,
    paired_cells,
    sampled,
    standard_error,
)
from analysis.groups import GROUP, OPTION, with_chosen
from analysis.section.blocks import Block, Heading, Shown, Table, Text
from analysis.section.claim import Claim
from analysis.section.columns import Column, by_columns, measured, plain
from analysis.section.parts import claim_blocks, end_states, repeat_blocks
from analysis.words import (
    SPREADS,
    UNUSUAL,
    capital,
    instances,
    level,
    listed,
    made_equal,
    metric_name,
    of_draws,
    percent,
    setting_text,
    setting_words,
    span,
    tally,
    three_decimals,
)
from study import tasks

_SPREADS = "Standard errors of these means, in points: over seeds"
_LAST: Column = (
    "last evaluation at % of budget",
    lambda row: percent(row["budget_fraction"], 0),
)


def section_title(comparison: Comparison) -> str:
    """Title that tells one comparison of a results directory from another."""
    settings = comparison.settings
    names = ["m"] * bool(comparison.m)
    names += [*UNUSUAL, "foreground", "background", "window", "pixels", "n"]
    names += ["architecture", "batch_size", "precision", "inference"]
    own = {tasks.POSTS: ["label_rule", "rationale_rule"], tasks.CAPTIONS: ["encoder"]}
    names += own.get(comparison.modality, ["split"])
    names = list(dict.fromkeys([*names, "budget", *comparison.differs]))
    if settings.get("precision") == "float32" and "precision" not in comparison.differs:
        names.remove("precision")
    return ", ".join([comparison.task, *setting_words(settings, names)])


def _unit(cell: pd.Series) -> str:
    return "FLOPs" if cell["budget_unit"] == "flops" else instances(cell["task"])


def comparison_blocks(
    comparison: Comparison,
    claims: Sequence[Claim],
    shown: Sequence[Shown],
    results: str,
    published: bool = False,
) -> list[Block]:
    """The section below its title: verdicts first, details later.

    Args:
        comparison: one comparison.
        claims: what `analysis.comparison.paper.claims.claims` says of it.
        shown: its pictures.
        results: path or URL of the results directory, for the command that repeats a cell.
        published: show the paper's Table 1 beside the measured numbers.
    """
    usual = comparison.staged and not comparison.unconfirmed
    blocks: list[Block] = [Text(t, "" if usual else "warning") for t in stages(comparison)]
    blocks += [Text(warning, "warning") for warning in _warnings(comparison)]
    if len(comparison.summary):
        blocks += [*_verdicts(comparison), *_results(comparison, published)]
    else:
        blocks.append(Text("No option has numbers, so there is nothing to compare.", "warning"))
    words = [each for each in shown if each.file.startswith(f"figures/{CAPTIONS_STEM}")]
    figures = [each for each in shown if each not in words]
    if words:
        blocks += [Heading("Where each word looks"), Text(HOW_TO_READ), *words]
    blocks += looks(comparison)
    if figures:
        blocks += [Heading("Figures"), *figures]
    blocks += [*claim_blocks(claims), *_options(comparison), *_cells(comparison)]
    return [*blocks, *_settings(comparison), *_repeat(comparison, results)]


def _warnings(comparison: Comparison) -> list[str]:
    texts = [*unusual_cut(comparison), *stopped_options(comparison)]
    if (comparison.choice["select"] == "saif").any():
        texts.append(f"Options were {HIDDEN_FOREGROUND}.")
    return texts + edges(comparison)


def _verdicts(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = [Heading("Verdicts")]
    if lone := lone_paradigm(comparison):
        return [*blocks, Text(lone, "warning")]
    header, rows = paired_cells(comparison.paired)
    decided = [i for i, row in enumerate(rows) if row[2] != "undecided"]
    pairs = span(comparison.paired["num_pairs"])
    text = (
        f"First minus second paradigm on the same seeds (n={pairs}), "
        f"{cut_text(comparison.summary)}. Decided pairs are highlighted. ± is a standard error "
        "in points. "
        f"{over_what(comparison.paired)}"
    )
    table = Table(header, rows, left=(0, 1, 2), marked=decided)
    said = [of_draws(WOULD_DECIDE, comparison.task), *pair_notes(comparison.paired)]
    notes = [Text(note, "quiet") for note in said]
    return [*blocks, Text(text), table, *notes]


def _results(comparison: Comparison, published: bool) -> list[Block]:
    summary, task = comparison.summary, comparison.task
    header, rows = comparison_cells(summary, published, comparison.threshold)
    over = sampled(summary)
    means = of_draws(f"Mean and interval over {listed(over)}", task)
    blocks: list[Block] = [
        Heading("Means"),
        Text(f"{means}, on the {cut_text(summary)}."),
        Table(header, rows),
    ]
    names = {
        metric: metric_name(metric, comparison.threshold, comparison.task)
        for metric in summarised_metrics(summary)
    }
    spreads = [
        _spread(of_draws(f"{name} ± over {what}", task), f"{metric}_{SPREADS[what]}")
        for metric, name in names.items()
        for what in over
    ]
    added = f", and what other {listed(over[1:])} add" if over[1:] else ""
    blocks += [
        *(Text(note, "quiet") for note in footnotes(summary)),
        Text(of_draws(f"{_SPREADS}{added}.", task)),
        Table(*by_columns([plain("paradigm"), *spreads], summary)),
        *_attention_and_loss(summary),
    ]
    if further := further_cells(summary):
        blocks += [Text(comparison.modality.measures_text), *(Table(*each) for each in further)]
    return blocks


def _attention_and_loss(summary: pd.DataFrame) -> list[Block]:
    """A table of those that are known."""
    bounds = f"{level(summary['confidence'].iloc[0])} interval"
    columns = {
        "foreground_attention_mean": ("attention on the foreground", "foreground attention %"),
        "loss": ("loss", "loss (nats)"),
    }
    known = {name: texts for name, texts in columns.items() if summary[name].notna().any()}
    if not known:
        return []
    text = capital(listed([name for name, _ in known.values()]))
    shown = [plain("paradigm")]
    for name, (_, header) in known.items():
        form = three_decimals if name == "loss" else percent
        shown += measured(header, name, bounds, form)
    return [
        Text(f"{text}, with t intervals over seeds:"),
        Table(*by_columns(shown, summary)),
    ]


def _given(text: Any) -> str:
    return "-" if pd.isna(text) or not text else str(text)


def _spread(header: str, name: str) -> Column:
    return (header, lambda row: standard_error(row[name]))


def _options(comparison: Comparison) -> list[Block]:
    known = dict.fromkeys([comparison.select, *summarised_metrics(comparison.summary)])
    options = with_chosen(comparison.options, comparison.choice, GROUP + OPTION)
    columns = [
        plain("paradigm"),
        *_option_columns(comparison),
        plain("n", "num_seeds"),
        plain("diverged", "num_diverged"),
        *([] if comparison.recorded else [plain("censored", "num_censored")]),
        *_scores(comparison, known, "validation {} %", "validation_{}", 2),
        ("validation loss", lambda row: three_decimals(row["validation_loss"])),
        ("", lambda row: "chosen" if row["chosen"] else ""),
    ]
    tried = comparison.options.groupby("paradigm", sort=False).size()
    what = "Options" if comparison.recorded else "Learning rate and switch point"
    text = (
        f"Options tried: {tally(tried)}. {what} were chosen by the seed "
        f"mean of validation {metric_name(comparison.select, task=comparison.task)}"
        + (", on the seeds that tune." if comparison.staged else ".")
    )
    if comparison.recorded and tried.max() < 2:
        text = f"Options tried: {tally(tried)}. Nothing had to be chosen."
    marked = np.flatnonzero(options["chosen"]).tolist()
    table = Table(*by_columns(columns, options), left=(0, len(columns) - 1), marked=marked)
    return [Heading("Fairness of the choice"), Text(text), table]


def _cells(comparison: Comparison) -> list[Block]:
    blocks = end_states(comparison.cells)[:2]  # this page says more of those that ended early
    at_cut = comparison.at_budget.drop_duplicates("cell_id")
    ended_early = at_cut[at_cut["status"] != "done"]
    if len(ended_early):
        columns = [
            plain("paradigm"),
            *_option_columns(comparison),
            plain("seed"),
            plain("ended as", "status"),
            *([] if comparison.recorded else [_LAST]),
            *_scores(comparison, summarised_metrics(comparison.summary), "{} % there", "last_{}"),
            ("reason", lambda row: _given(row["status_reason"])),
        ]
        last = len(columns) - 1
        blocks.append(Text("Cells that did not run to the end, on the test split:"))
        blocks.append(Table(*by_columns(columns, ended_early), left=(0, 4, last), wrap=(last,)))
    return blocks


def _settings(comparison: Comparison) -> list[Block]:
    cells = comparison.cells
    first = cells.iloc[0]
    noun = comparison.noun
    equal = ["made equal", made_equal(comparison.axis, noun).removeprefix("equal ")]
    seeds = [[name, _listed(each)] for name, each in _seeds(cells).items()]
    studies, last = ["studies", _listed(cells["study"])], str(cells["finished_at"].max())
    if comparison.recorded:
        names = [
            name for name in ("task", "m", "n", "architecture") if name in comparison.settings
        ]
        rows = [[name, str(comparison.settings[name])] for name in names]
        rows += [*_other_settings(comparison.settings), equal, *seeds, studies]
        rows.append(["last run recorded", last])
        return [Heading("Settings"), Table([], rows, left=(0, 1), wrap=(1,))]
    train_seconds = (cells["total_train_seconds"] / cells["pack"]).sum()
    rows = [
        ["task", first["task"]],
        [comparison.modality.m, str(first["m"])],
        [f"training {noun} n", str(first["n"])],
        ["architecture", first["architecture"]],
        ["batch size", str(first["batch_size"])],
        ["budget", f"{first['budget_amount']:,d} {_unit(first)}"],
        equal,
        ["data digest", first["data_digest"]],
        ["split", first["split_scheme"]],
        *_other_settings(comparison.settings),
        *seeds,
        studies,
        ["device", _listed(cells["device"])],
        ["CPU threads", _listed(cells["threads"])],
        ["cells trained together", _listed(cells["pack"])],
        [f"{noun} a pass", _listed(cells["micro_batch"])],
        ["code version", _listed(cells["code_version"])],
        ["package versions", _listed(cells["package_versions"].map(_versions))],
        ["training time, all cells", f"{train_seconds:,.0f} s"],
        ["last cell finished", last],
    ]
    return [Heading("Settings"), Table([], rows, left=(0, 1), wrap=(1,))]


def _repeat(comparison: Comparison, results: str) -> list[Block]:
    """The command, and the ids of the cells behind the tables."""
    test = comparison.chosen[comparison.chosen["split"] == "test"]
    columns = [
        plain("cell", "cell_id"),
        plain("paradigm"),
        *_option_columns(comparison),
        plain("seed"),
        *_scores(comparison, summarised_metrics(comparison.summary), "{} %", "{}"),
        plain("ended as", "status"),
    ]
    header, rows = by_columns(columns, test)
    cell_id = rows[0][0] if rows else str(comparison.cells["cell_id"].iloc[0])
    what = "run" if comparison.recorded else "cell"
    text = (
        f"The {what}s of the chosen options, on the test split, are below; every other {what} is "
        "in cells.csv."
    )
    blocks = repeat_blocks(cell_id, results, text)
    if comparison.recorded:  # nothing here can train them again
        blocks = [Heading("Runs"), Text(text)]
    return [*blocks, *([Table(header, rows, left=(0, 1, len(columns) - 1))] if rows else [])]


def _option_columns(comparison: Comparison) -> list[Column]:
    return option_columns(comparison.recorded, "learning rate", "switch point")


def _scores(
    comparison: Comparison, metrics: Iterable[str], header: str, column: str, digits: int = 1
) -> list[Column]:
    """Columns of metrics in per cent; `header` and `column` have ``{}`` for their names."""

    def of(metric: str) -> Column:
        name = metric_name(metric, task=comparison.task)
        return header.format(name), lambda row: percent(row[column.format(metric)], digits)

    return [of(metric) for metric in metrics]


def _other_settings(settings: Mapping[str, Any]) -> list[list[str]]:
    """The other settings that the cells of a comparison share."""
    named = {"task", "m", "n", "architecture", "batch_size", "budget", "data_digest", "split"}
    return [
        [name.replace("_", " "), setting_text(value)]
        for name, value in sorted(settings.items())
        if name not in named | {"schedule", "seed"}
    ]


def _seeds(cells: pd.DataFrame) -> dict[str, pd.Series]:
    """What seeds were for -> seeds."""
    stage = cells["stage"].map({"tune": "tuning seeds", "confirm": "confirming seeds"})
    return dict(tuple(cells["seed"].groupby(stage.fillna("seeds"), sort=False)))


def _versions(text: str) -> str:
    """``{"torch": "2.9"}`` -> ``torch 2.9``."""
    return ", ".join(f"{name} {version}" for name, version in sorted(json.loads(text).items()))


def _listed(values: pd.Series) -> str:
    return "; ".join(map(str, sorted(values.dropna().unique())))
