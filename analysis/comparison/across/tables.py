"""The tables across settings as files, at full precision."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.comparison.across.effects import effects
from analysis.comparison.across.factors import Family, families
from analysis.comparison.compare import Comparison


def across_tables(found: Sequence[Comparison]) -> dict[str, pd.DataFrame]:
    """Stem of a file -> table; none where no setting varies.

    Returns:
        ``across-settings``: one row a setting, `task`, `comparison_id`, `setting` (its name),
        `base` (whether it is the base), `differs` (the factors in which it differs from that,
        comma-separated), then one column a factor. ``across-effects``: the rows of
        `analysis.comparison.across.effects.effects` of all factors, absent where none varies
        alone.
    """
    varied = [family for family in families(found) if family.factors]
    if not varied:
        return {}
    settings = pd.DataFrame([row for family in varied for row in _settings(family)])
    tables = [effects(family, factor) for family in varied for factor in family.factors]
    filled = [table for table in tables if len(table)]
    if not filled:
        return {"across-settings": settings}
    return {"across-settings": settings, "across-effects": pd.concat(filled, ignore_index=True)}


def _settings(family: Family) -> list[dict[str, object]]:
    return [
        {
            "task": family.task,
            "comparison_id": each.comparison.cells["comparison_id"].iloc[0],
            "setting": each.name,
            "base": each is family.base,
            "differs": ", ".join(each.differs),
            **each.values,
        }
        for each in family.settings
    ]
