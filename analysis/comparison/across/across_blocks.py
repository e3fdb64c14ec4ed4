"""What the page says across its comparisons: figures, verdicts side by side, effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from analysis.digest.across.effects import effects, is_advantage
from analysis.digest.across.factors import (
    Family,
    by_value,
    factor_name,
    families,
    value_text,
)
from analysis.digest.across.order import joint_name, verdict_cells
from analysis.digest.compare import Comparison, metrics_of
from analysis.rules.statistics import CONFIDENCE, MIN_SEEDS
from analysis.section.blocks import Block, Details, Heading, Shown, Table, Text
from analysis.section.columns import Column, Row, by_columns, plain
from analysis.words import between, capital, level, listed, lost_scores, points

_OF_ADVANTAGES = {"better": "larger", "worse": "smaller"}
_INTERVAL = f"{level(CONFIDENCE)} interval"


def across_blocks(found: Sequence[Comparison], shown: Sequence[Shown]) -> list[Block]:
    """Above the sections: what varies, its figures, and every verdict; none of one comparison.

    Args:
        found: the comparisons.
        shown: the pictures of `family_pictures` beside this module, as the page holds them.
    """
    if len(found) < 2:
        return []
    every = families(found)
    names = {
        each.comparison: each.name if each is family.base else each.comparison.name
        for family in every
        for each in family.settings
    }
    varied = [_varied(family) for family in every if family.factors]
    tables: list[Block] = []
    for metric in metrics_of(found):
        header, rows = verdict_cells(names, metric)
        if header[1:]:
            left, marked = range(len(header)), [len(names)]
            table = Table(header, rows, left, marked, csv="paired.csv")
            tables += [Text(f"{capital(joint_name(found, metric))}, in points:"), table]
    below = (
        "First minus second paradigm; verdicts are corrected for all comparisons of a study. "
        "Undecided is not equal."
    )
    return [
        Heading("Across settings", 2),
        *(Text(text, "quiet") for text in varied),
        *shown,
        Heading("Does the order of paradigms hold?"),
        *tables,
        Text(below, "quiet"),
    ]


def effect_blocks(found: Sequence[Comparison]) -> list[Block]:
    """Below the sections: what each level of a factor changes; none where none varies alone."""
    every = families(found)
    tables = [
        (family, factor, table)
        for family in every
        for factor in family.factors
        for table in [effects(family, factor)]
        if len(table)
    ]
    if not tables:
        return []
    names = (family.task for family, _, _ in tables)
    lost = lost_scores(*names, metrics=metrics_of(found))
    text = (
        "Each level of a factor minus the base, all else equal, seed by seed, in points on the "
        "test split; and by how much it changes the advantage of a paradigm over soft. A "
        "difference is decided if its t test over seeds holds after Holm's correction over the "
        f"table of its factor (p < {1 - CONFIDENCE:.2g}), so does the exact sign-flip test, "
        f"uncorrected, and there are at least {MIN_SEEDS} common seeds. Test images are held "
        f"fixed, and those of two settings may differ. A diverged cell counts as {lost}."
    )
    blocks: list[Block] = [Text(text)]
    for family, factor, table in tables:
        base = f"{factor_name(factor, family.task)}, base {table['base'].iloc[0]}"
        heading = base if len(every) == 1 else f"{family.task}: {base}"
        blocks += [Heading(heading), _effect_table(table, family.base.comparison.names)]
    return [Details("What each factor changes", blocks)]


def _varied(family: Family) -> str:
    """``digits, 4 settings: segments m 5, 10 (and with it n); depth 0, 1, 2. Base: ...``"""
    texts = []
    for factor in family.factors:
        values = sorted({each.values[factor] for each in family.settings}, key=by_value)
        with_it = listed([name.replace("_", " ") for name in family.follows[factor]])
        goes = f" (and with it {with_it})" if with_it else ""
        listed_values = ", ".join(map(value_text, values))
        texts.append(f"{factor_name(factor, family.task)} {listed_values}{goes}")
    count = len(family.settings)
    return f"{family.task}, {count} settings: {'; '.join(texts)}. Base: {_base_text(family)}."


def _base_text(family: Family) -> str:
    base = family.base.values
    return ", ".join(
        f"{factor_name(name, family.task)} {value_text(value)}" for name, value in base.items()
    )


def _effect_table(table: pd.DataFrame, names: Mapping[str, str]) -> Table:
    """One row a (level, subject), with the metrics side by side; ``-`` where a level has none."""
    on = ["level", "subject"]
    rows = table.drop_duplicates(on)[[*on, "num_pairs"]]
    columns: list[Column] = [plain("level"), plain("of", "subject")]
    for metric, mine in table.groupby("metric", sort=False):
        mine = mine[[*on, "difference", "low", "high", "verdict"]].set_index(on)
        rows = rows.join(mine.add_suffix(f"_{metric}"), on=on)
        rows = rows.fillna({f"verdict_{metric}": "-"})
        columns += _of_metric(names[str(metric)], f"_{metric}")
    columns.append(plain("n", "num_pairs"))
    verdicts = range(4, len(columns), 3)
    return Table(*by_columns(columns, rows), left=(0, 1, *verdicts), csv="across-effects.csv")


def _of_metric(name: str, end: str) -> list[Column]:
    """Difference, interval and verdict of a metric, whose columns have a suffix."""
    return [
        (name, lambda row: points(row[f"difference{end}"])),
        (_INTERVAL, lambda row: between(row[f"low{end}"], row[f"high{end}"])),
        ("verdict", lambda row: _verdict(row, end)),
    ]


def _verdict(row: Row, end: str) -> str:
    verdict = str(row[f"verdict{end}"])
    return _OF_ADVANTAGES.get(verdict, verdict) if is_advantage(row["subject"]) else verdict
