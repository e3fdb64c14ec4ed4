"""The numbers of a fixed focus as tables: for other programs, and for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.fixed_focus.curves import MEASURES, Setting, chance_loss, floors
from analysis.groups import with_chosen
from analysis.section.columns import by_columns, measured, plain
from analysis.section.parts import stacked
from analysis.statistics import CONFIDENCE
from analysis.words import level, number, percent, span
from study.terminal import counted

_SETTING = ["setting", "task", "m", "n", "num_classes"]


def curves_table(settings: Sequence[Setting]) -> pd.DataFrame:
    """One row a (setting, paradigm, alpha, evaluation): means with their intervals, in nats."""
    return _all([_with_rate(setting, setting.curves) for setting in settings], settings)


def final_table(settings: Sequence[Setting]) -> pd.DataFrame:
    """One row a (setting, paradigm, alpha): the last evaluation.

    `loss_share` is the loss as a share of log C, `floor` the limit of the population loss.
    """
    parts = []
    for setting in settings:
        table = setting.final.merge(
            floors(setting.final, setting.num_classes), on=["paradigm", "alpha"]
        )
        table["loss_share"] = table["loss"] / chance_loss(setting)
        parts.append(_with_rate(setting, table))
    return _all(parts, settings)


def closed_form_table(settings: Sequence[Setting]) -> pd.DataFrame:
    """Theorem 1 at the times of the linear models' curves; empty without any."""
    return _all([setting.closed_form() for setting in settings], settings)


def options_table(settings: Sequence[Setting]) -> pd.DataFrame:
    """Every learning rate that was tried, with what validation says, and whether it was chosen."""
    keys = ["paradigm", "lr", "schedule"]
    parts = [with_chosen(setting.options, setting.choice, keys) for setting in settings]
    return _all(parts, settings)


def final_cells(settings: Sequence[Setting]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the last losses, incentives and slopes, one row a line of the figures."""
    bounds = f"{level(CONFIDENCE)} interval"
    columns = [
        plain("setting"),
        plain("paradigm"),
        ("alpha", lambda row: f"{row['alpha']:g}"),
        *measured("loss", "loss", bounds, number),
        ("% of log C", lambda row: percent(row["loss_share"])),
        *measured("incentive", "incentive", bounds, number),
        *measured("-dL/dalpha", "incentive_slope", bounds, number),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, final_table(settings))


def short_cells(settings: Sequence[Setting]) -> tuple[list[str], list[list[str]]]:
    """Header and rows for the terminal: last loss and incentive, a column an alpha."""
    alphas = sorted({alpha for setting in settings for alpha in setting.final["alpha"]})
    header = ["setting", "paradigm", "at the end", *(f"alpha {alpha:g}" for alpha in alphas), "n"]
    rows = []
    for setting in settings:
        for name in setting.paradigms:
            mine = setting.final[setting.final["paradigm"] == name]
            of_alpha = {row["alpha"]: row for row in mine.to_dict("records")}
            seeds = span(mine["num_seeds"])
            for measure in MEASURES[:2]:
                values = [
                    number(of_alpha[alpha][measure]) if alpha in of_alpha else "-"
                    for alpha in alphas
                ]
                rows.append([setting.name, name, measure, *values, seeds])
    return header, rows


def option_cells(settings: Sequence[Setting]) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows, and the numbers of the chosen rows."""
    columns = [
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
    table = options_table(settings)
    return *by_columns(columns, table), np.flatnonzero(table["chosen"]).tolist()


def warnings(settings: Sequence[Setting]) -> list[str]:
    """Sentences on what is missing from the curves, and why."""
    texts = []
    for setting in settings:
        for name in setting.paradigms:
            texts += [f"{setting.name}, {name}: {text}" for text in _warnings(setting, name)]
    return texts


def _warnings(setting: Setting, paradigm: str) -> list[str]:
    options = setting.options[setting.options["paradigm"] == paradigm]
    texts = []
    if censored := int((options["num_censored"] > 0).sum()):
        which = "every learning rate" if censored == len(options) else f"{censored} learning rates"
        texts.append(f"{which} had cells that were stopped early, so it cannot be chosen.")
    short = (options["num_censored"] == 0) & ~options["can_be_chosen"]
    if count := int(short.sum()):
        lack = counted(count, "learning rate lacks", "learning rates lack")
        texts.append(f"{lack} cells that others have and cannot be chosen.")
    chosen = setting.chosen[setting.chosen["paradigm"] == paradigm]
    if chosen.empty:
        return [*texts, "no learning rate can be chosen, so there is no curve."]
    planned = setting.cells["alpha"].nunique() * setting.cells["seed"].nunique()
    if missing := planned - len(chosen):
        of = f"of {counted(planned, 'cell')}"
        lack = counted(missing, f"{of} is", f"{of} are")
        texts.append(f"{lack} missing: failed, or not run.")
    diverged = chosen[chosen["status"] == "diverged"]
    if len(diverged):
        counts = diverged.groupby("alpha").size()
        where = ", ".join(f"{count} at alpha {alpha:g}" for alpha, count in counts.items())
        texts.append(f"diverged seeds are in no curve, mean or interval: {where}.")
    return texts


def _with_rate(setting: Setting, table: pd.DataFrame) -> pd.DataFrame:
    return table.merge(setting.choice[["paradigm", "lr"]], on="paradigm", how="left")


def _all(parts: Sequence[pd.DataFrame], settings: Sequence[Setting]) -> pd.DataFrame:
    """The tables stacked, each row with its setting."""
    named = [
        part.assign(
            setting=each.name, task=each.task, m=each.m, n=each.n, num_classes=each.num_classes
        )
        for part, each in zip(parts, settings, strict=True)
    ]
    table = stacked(named)
    return table[[*_SETTING, *(name for name in table if name not in _SETTING)]]
