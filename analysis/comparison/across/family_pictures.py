"""The figures across settings, with their captions."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis.digest.effects import Pair, pairs, verdicts
from analysis.digest.factors import Family, by_value, factor_name, value_text
from analysis.figures.factor_figures import factors_figure, grid_figure
from analysis.rules.statistics import CONFIDENCE
from analysis.section.picture import Picture, file_stem
from analysis.words import capital, level, listed, span
from study.terminal import counted


def family_pictures(family: Family) -> Iterator[Picture]:
    """Scores against each factor that varies alone, and a difference over each grid of two."""
    table = _levels(family)
    if len(table):
        yield _factors_picture(family, table)
    for grid in family.grids():
        settings = family.plane(grid)
        if compared := pairs(each.comparison for each in settings):
            yield _grid_picture(family, grid, compared[0])


def _factors_picture(family: Family, table: pd.DataFrame) -> Picture:
    base = family.base.comparison
    names = base.names
    factors = list(dict.fromkeys(table["factor"]))
    return Picture(
        name=file_stem("across-factors", family.task),
        title=f"{capital(listed([*names.values()]))} against each factor, {family.task}",
        caption=(
            f"Chosen options on the test split against {listed(factors)}; in each panel all else "
            f"is as at the base, {family.base.name}, which is on the dotted line. Mean over "
            f"n={counted(span(table['num_seeds']), 'seed')}; bars: {level(CONFIDENCE)} interval "
            "over seeds and, where known, images. Marks that would hide each other stand side "
            "by side."
        ),
        figure=factors_figure(table, base.threshold, family.task),
    )


def _levels(family: Family) -> pd.DataFrame:
    """What `factors_figure` draws: the base and the levels of each factor that has any."""
    records = []
    for factor in (each for each in family.factors if family.levels(each)):
        settings = [family.base, *family.levels(factor)]
        names = any(isinstance(each.values[factor], str) for each in settings)
        if not names:
            settings.sort(key=lambda each: by_value(each.values[factor]))
        for setting in settings:
            value = setting.values[factor]
            for row in setting.comparison.summary.to_dict("records"):
                records += [
                    {
                        "factor": factor_name(factor, family.task),
                        "value": value_text(value) if names else value,
                        "base": setting is family.base,
                        "paradigm": row["paradigm"],
                        "metric": metric,
                        "mean": row[metric],
                        "low": row[f"{metric}_low"],
                        "high": row[f"{metric}_high"],
                        "num_seeds": row["num_seeds"],
                    }
                    for metric in family.base.comparison.metrics
                    if metric in setting.comparison.metrics
                ]
    return pd.DataFrame(records)


def _grid_picture(family: Family, grid: tuple[str, str], pair: Pair) -> Picture:
    """The difference of a pair in the first metric at every combination of two factors."""
    metric, name = next(iter(family.base.comparison.names.items()))
    settings = family.plane(grid)
    names = [factor_name(factor, family.task) for factor in grid]
    found = verdicts([each.comparison for each in settings])
    asked = zip(*(found[name] for name in ("first", "second", "metric")), strict=True)
    found = found[[each == (*pair, metric) for each in asked]]
    own = [settings[number] for number in found["setting"]]
    row, column = ([value_text(each.values[factor]) for each in own] for factor in grid)
    is_base = [each is family.base for each in own]
    table = found.assign(row=row, column=column, base=is_base)
    values = [
        [
            value_text(value)
            for value in sorted({each.values[factor] for each in settings}, key=by_value)
        ]
        for factor in grid
    ]
    what = f"{capital(name)}, {pair[0]} minus {pair[1]}"
    axes = list(zip(names, values, strict=True))
    return Picture(
        name=file_stem("across-grid", family.task, *grid),
        title=f"{what}, by {names[0]} and {names[1]}, {family.task}",
        caption=(
            f"{what}, in points on the test split, at each {names[0]} and {names[1]}; all else is "
            f"as at the base, {family.base.name}, which is outlined. Bold: decided, by the "
            "verdicts of each comparison."
        ),
        figure=grid_figure(table, axes[0], axes[1], f"{what} (points)"),
    )
