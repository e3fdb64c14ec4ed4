"""The layout of the paper's Table 1: a row per task and m, SAIF and accuracy by paradigm.

The accuracy of captions is their Bleu-4.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.digest.compare import Comparison, metrics_of, units_of
from analysis.digest.measures import METRICS
from analysis.digest.published import of, row_of
from analysis.forms import Unit
from analysis.groups import paradigm_order
from analysis.settings import setting_words


def table_one(found: Sequence[Comparison]) -> pd.DataFrame:
    """Ours, the published number and the difference, as numbers.

    Args:
        found: as `analysis.digest.compare.compare` gives them.

    Returns:
        One row per comparison: `task`, `m`, `n`, `architecture`, `comparison_id`, `cut`, `axis`,
        `threshold` (of SAIF); for each metric and paradigm `<metric>_<paradigm>` (fraction, mean
        over seeds on test), the same with `_published` (Table 1 of the paper, see `beside`) and
        with `_difference` (ours minus published). NaN where there is none. The paper's paradigms
        always have their columns.
    """
    metrics, paradigms = metrics_of(found), _paradigms(found)
    rows = []
    for comparison in found:
        ours = comparison.summary.set_index("paradigm")
        ours = ours.reindex(index=paradigms, columns=metrics).astype(float)
        paper = beside(comparison).reindex(index=paradigms, columns=metrics).astype(float)
        numbers = {"": ours, "_published": paper, "_difference": ours - paper}
        first = comparison.cells.iloc[0]
        rows.append(
            {name: first[name] for name in ("task", "m", "n", "architecture", "comparison_id")}
            | {name: getattr(comparison, name) for name in ("cut", "axis", "threshold")}
            | {
                f"{metric}_{paradigm}{end}": table.at[paradigm, metric]
                for metric in metrics
                for paradigm in paradigms
                for end, table in numbers.items()
            }
        )
    return pd.DataFrame(rows)


def beside(comparison: Comparison) -> pd.DataFrame:
    """The paper's numbers that stand beside a comparison; its SAIF is at one threshold alone.

    Returns:
        A row per paradigm, a column per metric, fractions; no column where the paper has no row.
    """
    row = row_of(comparison.task, comparison.m, comparison.architecture)
    paper = pd.DataFrame.from_dict({**row.scores}, orient="index", columns=[*METRICS])
    usual = comparison.threshold == comparison.modality.saif_threshold
    return paper.drop(columns=[] if usual else "saif").dropna(axis="columns", how="all")


def table_one_cells(found: Sequence[Comparison]) -> pd.DataFrame:
    """The same for print: in a cell ours, and in brackets the paper's and the difference.

    Args:
        found: as `analysis.digest.compare.compare` gives them.

    Returns:
        One row per comparison, of text, with two levels of columns: ``task`` and ``m`` below
        nothing, then the paradigms below each metric; ``62.5 (62.0, +0.5)`` are per cent, per
        cent and points. Of text, the task says which of the paper's models a row is.
    """
    table, units = table_one(found), units_of(found)
    cells = {("", "task"): [*map(_label, found)], ("", "m"): [str(m or "-") for m in table["m"]]}
    for metric, name in zip(metrics_of(found), names_of(found), strict=True):
        for paradigm in _paradigms(found):
            columns = [f"{metric}_{paradigm}{end}" for end in ("", "_published", "_difference")]
            rows = table[columns].itertuples(index=False, name=None)
            unit = units[metric]
            cells[name + unit.sign, paradigm] = [_cell(unit, *row) for row in rows]
    return pd.DataFrame(cells)


def table_one_rows(found: Sequence[Comparison]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of `table_one_cells` with one line of header."""
    cells = table_one_cells(found)
    return [" ".join(names).strip() for names in cells.columns], cells.to_numpy().tolist()


def names_of(found: Sequence[Comparison]) -> list[str]:
    """What the metrics of the table are called, by each of its tasks."""
    known = [comparison.measures for comparison in found]
    return [
        " or ".join(dict.fromkeys(each[name].name for each in known if name in each))
        for name in metrics_of(found)
    ]


def _paradigms(found: Sequence[Comparison]) -> list[str]:
    """Those that have numbers, and the paper's."""
    names = {name for comparison in found for name in comparison.summary["paradigm"]}
    papers = (of(comparison.task) for comparison in found if not comparison.recorded)
    return paradigm_order(names.union(*(paper.paradigms for paper in papers)))


def _cell(unit: Unit, ours: float, published: float, difference: float) -> str:
    if pd.isna(published):
        return unit.value(ours)
    return f"{unit.value(ours)} ({unit.value(published)}, {unit.change(difference)})"


def _label(comparison: Comparison) -> str:
    row = row_of(comparison.task, comparison.m, comparison.architecture)
    words = setting_words(comparison.settings, ["inference", *comparison.differs])
    return ", ".join([row.label, *words])
