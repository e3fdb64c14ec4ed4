"""Summaries as tables for people: plain text, Markdown, and the cells that the report shows.

Fractions become per cent here and nowhere earlier.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import pandas as pd

from analysis.comparison.choice import summarised_metrics
from analysis.comparison.paper.published import published as published_row
from analysis.groups import AXES
from analysis.section.columns import Column, Row, by_columns, measured, plain
from analysis.statistics import clopper_pearson
from analysis.words import (
    aligned,
    amount,
    instances,
    known,
    level,
    listed,
    lost_scores,
    made_equal,
    metric_name,
    network_text,
    number,
    of_draws,
    percent,
    setting_name,
    share_of_budget,
)
from study import tasks, terminal
from study.results import RECORDED

HIDDEN_FOREGROUND = "chosen by validation SAIF: uses the hidden foreground"
HEAVY_IMAGE = 0.25
"""Where one image has as much of what is wrong, 108 images may well lack one like it."""

_MEASURES_A_TABLE = 3
"""More of them, each with its interval, are wider than a page."""


def comparison_text(
    summary: pd.DataFrame,
    published: bool = False,
    threshold: float | None = None,
    name: str = "",
) -> str:
    """Aligned plain text for the terminal: one block a (task, m).

    Args:
        summary: as `analysis.summarise` gives it.
        published: add the paper's Table 1 where it has such a row.
        threshold: of SAIF; of another than the task's own the paper has no numbers. None: the
            task's own.
        name: of the setting; empty: task and m.
    """
    blocks = []
    for part in _parts(summary):
        header, rows = comparison_cells(part, published, threshold)
        notes = map(terminal.sentence, footnotes(part))
        lines = [heading(part, name), "", *aligned(header, rows), *notes]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def comparison_markdown(
    summary: pd.DataFrame, threshold: float | None = None, name: str = ""
) -> str:
    """The same tables in Markdown, without the paper's; see `comparison_text`."""
    blocks = []
    for part in _parts(summary):
        header, rows = comparison_cells(part, threshold=threshold)
        lines = [
            "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
            for row in [header, ["---"] * len(header), *rows]
        ]
        notes = [f"\n{note}" for note in footnotes(part)]
        blocks.append("\n".join([f"**{heading(part, name)}**", "", *lines, *notes]))
    return "\n\n".join(blocks)


def comparison_cells(
    summary: pd.DataFrame, published: bool = False, threshold: float | None = None
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the comparison table of one (task, m), one row a paradigm."""
    first = summary.iloc[0]
    row_of = published_row(first["task"], first["m"], first["architecture"])
    paper = row_of.scores if published else {}
    bounds = f"{level(first['confidence'])} interval"
    modality = tasks.modality(first["task"])
    columns = [plain("paradigm")]
    for metric in summarised_metrics(summary):
        name = metric_name(metric, threshold, first["task"])
        columns += measured(f"{name} %", metric, bounds)
    recorded = first["kind"] == RECORDED
    columns += [("n", seeds), *option_columns(recorded), plain("options", "num_options")]
    # The paper's SAIF is at the usual threshold: beside another it would mislead.
    if paper and threshold in (None, modality.saif_threshold):
        columns.append(("paper SAIF %", lambda row: _published(paper, row, 0)))
    if paper:
        columns.append((f"paper {modality.score} %", lambda row: _published(paper, row, 1)))
    return by_columns(columns, summary)


def option_columns(recorded: bool, rate: str = "lr", switch: str = "switch") -> list[Column]:
    """What tells options apart: learning rate and switch point; of recorded runs what they name.

    Args:
        recorded: whether the runs are such, see `Comparison.recorded`.
        rate, switch: headers.
    """
    if recorded:
        return [("option", lambda row: row["schedule"] or "-")]
    return [(rate, rates), (switch, switch_point)]


def _published(paper: Mapping[str, tuple[float, float]], row: Row, place: int) -> str:
    return percent(paper.get(row["paradigm"], (math.nan, math.nan))[place])


def further_cells(summary: pd.DataFrame) -> list[tuple[list[str], list[list[str]]]]:
    """Tables, header and rows, of the modality's further measures; none where not measured.

    The score is not among them: it stands beside SAIF.

    Args:
        summary: as `analysis.summarise` gives it, of one comparison.
    """
    modality = tasks.modality(summary["task"].iloc[0])
    bounds = f"{level(summary['confidence'].iloc[0])} interval"
    found = [
        measured(f"{name} %", column, bounds)
        if is_share
        else measured(name, column, bounds, number)
        for column, name, is_share, _ in modality.measures
        if column in summary and name != modality.score
    ]
    parts = (
        found[start : start + _MEASURES_A_TABLE]
        for start in range(0, len(found), _MEASURES_A_TABLE)
    )
    return [by_columns([plain("paradigm"), *chain(*part)], summary) for part in parts]


def heading(summary: pd.DataFrame, name: str = "") -> str:
    """What the rows of one (task, m) have in common: setting, cut and split."""
    first = summary.iloc[0]
    name = name or setting_name(first["task"], first["m"], first["architecture"])
    setting = f"{name} ({first['comparison_id'][:8]})"
    if first["kind"] == RECORDED:
        return f"{setting}: {cut_text(summary)}"
    return (
        f"{setting}: n={first['n']} {instances(first['task'])}, {network_text(first)}; "
        f"{cut_text(summary)}"
    )


def cut_text(summary: pd.DataFrame) -> str:
    """Where the cells of one (task, m) were cut, and on which split."""
    first = summary.iloc[0]
    split, axis, noun = f"{first['split']} split", first["axis"], instances(first["task"])
    if known(cut_at := first.get("cut_at", math.nan)):
        return f"{split} at {amount(cut_at, axis, noun)}"
    if axis != first["budget_unit"]:
        return f"{split} at {made_equal(axis, noun)}"
    given = first["cut"] * first["budget_amount"]
    share = share_of_budget(first["cut"], first["budget_amount"], axis, noun)
    return f"{split} at {share}{_spent(summary, given)}"


def _spent(summary: pd.DataFrame, given: float) -> str:
    """``, of which whole batches spend 1.64e9``: where that is less by more than 1 %."""
    reached = summary[summary["num_diverged"] < summary["num_seeds"]]
    spent = reached[AXES[summary["axis"].iloc[0]]].dropna()
    if spent.empty or spent.min() >= 0.99 * given:
        return ""
    texts = list(dict.fromkeys(number(value) for value in sorted(spent)))
    return f", of which whole batches spend {' to '.join(texts[:1] + texts[1:][-1:])}"


def footnotes(summary: pd.DataFrame) -> list[str]:
    """What must be said beside the table of one (task, m)."""
    notes, metrics = [], summarised_metrics(summary)
    if (summary["num_diverged"] > 0).any():
        lost = lost_scores(summary["task"].iloc[0], metrics=metrics)
        notes.append(f"A diverged seed counts as {lost}.")
    if summary[[*metrics]].isna().any(axis=None):
        notes.append("A '-' is a number that is not known: a seed recorded no value (NaN).")
    notes += [*_failures(summary, metrics), *_heavy_images(summary, metrics)]
    if (summary["num_seeds"] < summary["most_seeds"]).any():
        notes.append("Seeds are missing where cells failed or have not run yet.")
    if (summary["select"] == "saif").any():
        notes.append(f"Options were {HIDDEN_FOREGROUND}.")
    return notes


def _heavy_images(summary: pd.DataFrame, metrics: Sequence[str]) -> Iterator[str]:
    """That one image carries much of a score, where it does."""
    task = str(summary["task"].iloc[0])
    for metric in metrics:
        column = f"{metric}_of_one_image"
        heavy = summary[summary[column].astype(float) >= HEAVY_IMAGE]
        for row in heavy.nlargest(1, column).to_dict("records"):
            gets = "wrong" if row[metric] > 0.5 else "right"
            yield of_draws(
                f"{percent(row[column], 0)} % of what {row['paradigm']} gets {gets} in "
                f"{metric_name(metric, task=task)} is of one image: intervals of means are too "
                "short for other images.",
                task,
            )


def _failures(summary: pd.DataFrame, metrics: Sequence[str]) -> Iterator[str]:
    """What seeds that fall apart mean, and what those that do not leave open."""
    if summary[[f"{metric}_above" for metric in metrics]].notna().any(axis=None):
        yield (
            "Where seeds fall apart, a mean says little: instead of its interval stand how many "
            "are above the gap, with an exact interval, and the mean of those."
        )
    learned = summary[[f"{metric}_learned" for metric in metrics]]
    none = [
        str(row["paradigm"])
        for row in summary.to_dict("records")
        if "accuracy" in metrics and row["accuracy_learned"] == 0
    ]
    if none:
        yield f"No seed of {listed(none)} is beyond a guess."
    all_learned = learned.eq(summary["num_seeds"], axis=0).any(axis=1)
    if all_learned.any() and (n := int(summary.loc[all_learned, "num_seeds"].min())) > 1:
        most = percent(clopper_pearson(0, n)[1], 0)
        yield f"Where all n={n} seeds have learned, up to {most} % of further ones may not."


def seeds(row: Row) -> str:
    """``3``, ``2 of 3`` where seeds are missing, ``3, 1 diverged``."""
    text = str(row["num_seeds"])
    if row["num_seeds"] < row["most_seeds"]:
        text += f" of {row['most_seeds']}"
    return text + (f", {row['num_diverged']} diverged" if row["num_diverged"] else "")


def rates(row: Row) -> str:
    """The learning rate; of a schedule with phases the first and the last: ``0.1 > 0.05``."""
    first, last = number(row["lr"]), number(row["last_lr"])
    return first if pd.isna(row["switch_point"]) and first == last else f"{first} > {last}"


def switch_point(row: Row) -> str:
    """A fraction of the budget; ``-`` where the paradigm has none."""
    return number(row["switch_point"])


def _parts(summary: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for _, part in summary.groupby(["task", "m"], sort=False):
        yield part
