"""The numbers of a fixed focus as tables: for other programs, and for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.forms import level, number, percent, span
from analysis.groups import stacked, with_chosen
from analysis.rules.statistics import CONFIDENCE
from analysis.section.columns import measured, plain
from chapters.dynamics.section.focus_settings import MEASURES, Setting, floors
from study.terminal import counted

_BOUNDS = f"{level(CONFIDENCE)} interval"

FINAL = [
    plain("setting"),
    plain("paradigm"),
    ("alpha", lambda row: f"{row['alpha']:g}"),
    *measured("loss", "loss", _BOUNDS, number),
    ("% of log C", lambda row: percent(row["loss_share"])),
    *measured("incentive", "incentive", _BOUNDS, number),
    *measured("-dL/dalpha", "incentive_slope", _BOUNDS, number),
    plain("n", "num_seeds"),
]
"""Columns for people of the last losses, incentives and slopes, one row a line of the figures."""

OPTIONS = [
    plain("setting"),
    plain("paradigm"),
    ("learning rate", lambda row: number(row["lr"])),
    plain("cells", "num_cells"),
    plain("alphas", "num_alphas"),
    plain("seeds", "num_seeds"),
    plain("diverged", "num_diverged"),
    plain("censored", "num_censored"),
    ("validation accuracy %", lambda row: percent(row["validation_accuracy"], 2)),
    ("validation loss", lambda row: number(row["validation_loss"])),
    ("", lambda row: "chosen" if row["chosen"] else ""),
]
"""Columns for people of the learning rates that were tried."""


def tables(settings: Sequence[Setting]) -> dict[str, pd.DataFrame]:
    """Name -> table of all settings.

    `fixed-focus-curves`: one row a (setting, paradigm, alpha, evaluation), means with their
    intervals, in nats. `-final`: the last of them; `loss_share` is the loss as a share of log C,
    `floor` the limit of the population loss. `-closed-form`: Theorem 1 at the times of the linear
    models' curves; empty without any. `-options`: every learning rate that was tried, with what
    validation says, and whether it was chosen.
    """
    of_each = [_tables(setting) for setting in settings]
    return {
        f"fixed-focus-{name}": stacked([tables[name] for tables in of_each]) for name in of_each[0]
    }


def _tables(setting: Setting) -> dict[str, pd.DataFrame]:
    """The same of one setting, without the prefix; each row with its setting."""
    rates = setting.choice[["paradigm", "lr"]]
    limits = floors(setting.final, setting.num_classes)
    final = setting.final.merge(limits, on=["paradigm", "alpha"])
    final["loss_share"] = final["loss"] / math.log(setting.num_classes)
    options = with_chosen(setting.options, setting.choice, ["paradigm", "lr", "schedule"])
    found = {
        "curves": setting.curves.merge(rates, "left", "paradigm"),
        "final": final.merge(rates, "left", "paradigm"),
        "closed-form": setting.closed_form,
        "options": options,
    }
    shared: dict[str, Any] = {
        "setting": setting.name,
        "task": setting.task,
        "m": setting.m,
        "n": setting.n,
        "num_classes": setting.num_classes,
    }
    return {name: table.assign(**shared)[[*shared, *table]] for name, table in found.items()}


def short_cells(settings: Sequence[Setting]) -> tuple[list[str], list[list[str]]]:
    """Header and rows for the terminal: last loss and incentive, a column an alpha."""
    alphas = sorted({alpha for setting in settings for alpha in setting.final["alpha"]})
    rows = []
    for setting in settings:
        for name in setting.paradigms:
            final = setting.final[setting.final["paradigm"] == name]
            values = final.set_index("alpha").reindex(alphas)
            seeds = span(final["num_seeds"])
            for measure in MEASURES[:2]:
                rows.append([setting.name, name, measure, *map(number, values[measure]), seeds])
    return ["setting", "paradigm", "at the end", *(f"alpha {a:g}" for a in alphas), "n"], rows


def warnings(settings: Sequence[Setting]) -> list[str]:
    """Sentences on what is missing from the curves, and why."""
    return [
        f"{setting.name}, {name}: {text}"
        for setting in settings
        for name in setting.paradigms
        for text in _warnings(setting, name)
    ]


def _warnings(setting: Setting, paradigm: str) -> list[str]:
    options = setting.options[setting.options["paradigm"] == paradigm]
    texts = []
    if censored := int((options["num_censored"] > 0).sum()):
        rates = counted(censored, "learning rate")
        which = "every learning rate" if censored == len(options) else rates
        texts.append(f"{which} had cells that were stopped early: such a rate cannot be chosen.")
    if short := int(((options["num_censored"] == 0) & ~options["can_be_chosen"]).sum()):
        lack = counted(short, "learning rate lacks", "learning rates lack")
        texts.append(f"{lack} cells that others have and cannot be chosen.")
    chosen = setting.chosen[setting.chosen["paradigm"] == paradigm]
    if chosen.empty:
        return [*texts, "no learning rate can be chosen, so there is no curve."]
    planned = setting.cells["alpha"].nunique() * setting.cells["seed"].nunique()
    if missing := planned - len(chosen):
        of = f"of {counted(planned, 'cell')}"
        lack = counted(missing, f"{of} is", f"{of} are")
        texts.append(f"{lack} missing: failed, or not run.")
    diverged = chosen.loc[chosen["status"] == "diverged", "alpha"].value_counts().sort_index()
    if len(diverged):
        where = ", ".join(f"{count} at alpha {alpha:g}" for alpha, count in diverged.items())
        texts.append(f"diverged seeds are in no curve, mean or interval: {where}.")
    return texts
