"""What the page says across its comparisons: what varies, verdicts side by side, effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison, metrics_of
from analysis.digest.effects import VERDICTS, effects, verdicts
from analysis.digest.factors import factor_name, families, setting_names, value_text
from analysis.forms import between, level, points
from analysis.page.templates import paragraphs
from analysis.rules.statistics import CONFIDENCE
from analysis.section.blocks import Table

_DECIDED = {"better": "higher", "worse": "lower"}
"""What is said of a score, or of an advantage, at a level."""


def across_facts(found: Sequence[Comparison]) -> dict[str, Any]:
    """What `comparisons.j2` reads: what varies, every verdict side by side, and effects."""
    if len(found) < 2:
        return {"varied": [], "orders": [], "effects": None}
    names, measures, table = setting_names(found), _names(found), effects(found)
    return {
        "varied": paragraphs(
            "across.j2", families=families(found), name=factor_name, text=value_text
        ),
        "orders": [
            _printed(
                order_table(rows, [*names.values()], f"{measures[str(metric)]}, points"),
                "paired.csv",
            )
            for metric, rows in verdicts([*names]).groupby("metric", sort=False)
        ],
        "effects": None
        if table.empty
        else _printed(effect_table(table, measures), "across-effects.csv", ["difference", "n"]),
    }


def count_sentences(found: Sequence[Comparison]) -> list[str]:
    """A paragraph per measure, with a sentence per pair.

    ``In SAIF lvml is better than soft in 9 of 16 settings, worse in 0, undecided in 7.``
    """
    return paragraphs("across_counts.j2", names=_names(found), verdicts=verdicts(found))


def order_table(verdicts: pd.DataFrame, names: Sequence[str], title: str) -> pd.DataFrame:
    """One row per setting, one column per pair, and last rows that count each verdict, all text.

    Args:
        verdicts: rows of one metric, see the function of this name in `analysis.digest.effects`.
        names: of all settings.
        title: of the column of names.

    Returns:
        Cells such as ``+10.6 better``, the difference in points; ``-`` where a setting has no such
        pair.
    """
    pair = verdicts["first"] + " - " + verdicts["second"]
    text = verdicts["difference"].map(points) + " " + verdicts["verdict"]
    cells = text.set_axis([verdicts["setting"], pair]).unstack().reindex(range(len(names)))
    counts = pd.crosstab(verdicts["verdict"], pair).reindex(VERDICTS, fill_value=0).map(str)
    table = pd.concat([cells.set_axis([*names]).fillna("-"), counts])
    return table[pair.unique()].reset_index(names=title)


def effect_table(effects: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """One row per (level, subject, metric), all text.

    Args:
        effects: see the function of this name in `analysis.digest.effects`.
        names: metric -> its name.
    """
    return pd.DataFrame(
        {
            "task": effects["task"],
            "level": effects["first"],
            "base": effects["base"],
            "of": effects["subject"],
            "measure": effects["metric"].map(names),
            "difference": effects["difference"].map(points),
            f"{level(CONFIDENCE)} interval": [*map(between, effects["low"], effects["high"])],
            "verdict": effects["verdict"].replace(_DECIDED),
            "n": effects["num_pairs"].map(str),
        }
    )


def _printed(table: pd.DataFrame, csv: str, right: Sequence[str] = ()) -> Table:
    left = [place for place, name in enumerate(table) if name not in right]
    return Table([*table], table.to_numpy().tolist(), left, csv=csv)


def _names(found: Sequence[Comparison]) -> dict[str, str]:
    """Metric -> what it is called where all of these stand together: ``accuracy or Bleu-4``."""
    return {
        metric: " or ".join(
            dict.fromkeys(each.names[metric] for each in found if metric in each.names)
        )
        for metric in metrics_of(found)
    }
