"""What the page says across its comparisons: what varies, verdicts side by side, effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison, metrics_of, units_of
from analysis.digest.factors.effects import VERDICTS, effects, verdicts
from analysis.digest.factors.families import factor_name, families, setting_names, value_text
from analysis.forms import SHARES, Unit
from analysis.section.templates import Table, paragraphs, table

_TEXTS = (0, 1, 2, 3, 4, 6, 7)
"""Columns of the table of effects that are no numbers."""


def across_facts(found: Sequence[Comparison]) -> dict[str, Any]:
    """What `comparisons.j2` reads: what varies, every verdict side by side, and effects."""
    names, measures, units = setting_names(found), _names(found), units_of(found)
    orders = [
        order_table(
            rows, [*names.values()], f"setting: {measures[str(metric)]}", units[str(metric)]
        )
        for metric, rows in verdicts([*names]).groupby("metric", sort=False)
    ]
    rows = effects(found).to_dict("records")
    cells = table("table_effects.j2", effects=rows, measures=measures, units=units)
    return {
        "varied": paragraphs(
            "across.j2", families=families(found), name=factor_name, text=value_text
        ),
        "orders": [
            Table([*each], each.to_numpy().tolist(), range(each.shape[1]), csv="paired.csv")
            for each in orders
        ],
        "effects": Table(*cells, _TEXTS, csv="across-effects.csv") if rows else None,
    }


def count_sentences(found: Sequence[Comparison]) -> list[str]:
    """A paragraph per measure, with a sentence per pair, and one on classes that carry a lead.

    ``In SAIF lvml is better than soft in 9 of 16 settings, worse in 0, undecided in 7.``
    """
    facts = {"found": found, "names": _names(found), "verdicts": verdicts(found)}
    return paragraphs("across_counts.j2", **facts)


def order_table(
    verdicts: pd.DataFrame, names: Sequence[str], title: str, unit: Unit = SHARES
) -> pd.DataFrame:
    """One row per setting, one column per pair, and last rows that count each verdict, all text.

    Args:
        verdicts: rows of one metric, see the function of this name in
            `analysis.digest.factors.effects`.
        names: of all settings.
        title: of the column of names, without what differences are in.
        unit: of the metric.

    Returns:
        Cells such as ``+10.6 better``, the difference in its unit, or the verdict alone; ``-``
        where a setting has no such pair.
    """
    pair = verdicts["first"] + " - " + verdicts["second"]
    known = verdicts["difference"].map(unit.change) + " " + verdicts["verdict"]
    text = known.where(verdicts["difference"].notna(), verdicts["verdict"])
    cells = text.set_axis([verdicts["setting"], pair]).unstack().reindex(range(len(names)))
    counts = pd.crosstab(verdicts["verdict"], pair).reindex(VERDICTS, fill_value=0).map(str)
    table = pd.concat([cells.set_axis([*names]).fillna("-"), counts])
    in_unit = f" in{unit.of_change}" if unit.of_change else ""
    return table[pair.unique()].reset_index(names=title + in_unit)


def _names(found: Sequence[Comparison]) -> dict[str, str]:
    """Metric -> what it is called where all of these stand together: ``accuracy or Bleu-4``."""
    return {
        metric: " or ".join(
            dict.fromkeys(each.names[metric] for each in found if metric in each.names)
        )
        for metric in metrics_of(found)
    }
