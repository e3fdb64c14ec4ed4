"""Fixed focus (section 3): figures 2 and 3 of the paper, and claims C7 to C14."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pandas as pd

from analysis.forms import number
from analysis.groups import PARADIGMS
from analysis.section.section import Question, Section
from analysis.section.summary import claims_note, summary_run
from analysis.section.templates import paragraphs
from chapters.dynamics.section.chapter import PLACE, section_of
from chapters.dynamics.section.focus import MEASURES, Focus, final, read, tables
from chapters.dynamics.section.focus_claims import claims
from chapters.dynamics.section.focus_pictures import pictures
from chapters.dynamics.task import TASK
from study.results import Results
from study.tracking.runs import Run

MOST_ROWS = 3
"""Rows of panels in a figure: with more, it does not fit on a page."""

_PARAMS = ("task", "m", "n", "architecture", "batch_size", "budget_amount", "budget_unit")


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[Section[Focus]]:
    """The settings of a directory, at most `MOST_ROWS` rows of panels each.

    Data tasks come first, the linear orthogonal setting last; where it was not trained, the closed
    form takes the last row.

    Args:
        results: the directory.
        cell_ids: ids of its fixed-focus cells.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: unreadable results.
    """
    cells = results.cells(cell_ids)
    focus = read(results, cells)
    if focus is None:
        return []
    others = cells.loc[~cells["paradigm"].isin(PARADIGMS), "paradigm"].value_counts()
    return [_section(focus.of(part), others.sort_index()) for part in _parts(focus.settings)]


def _parts(settings: pd.DataFrame) -> list[list[str]]:
    """Names of the settings of each section."""
    is_linear = settings["task"] == TASK
    names, linear = ([*settings.loc[where, "setting"]] for where in (~is_linear, is_linear))
    parts = _of_size(names, MOST_ROWS - 1)
    if linear:
        last = parts.pop() if parts else []
        room = MOST_ROWS - len(last)
        parts += [last + linear[:room], *_of_size(linear[room:], MOST_ROWS)]
    return parts


def _of_size(names: list[str], size: int) -> list[list[str]]:
    return [names[i : i + size] for i in range(0, len(names), size)]


def _section(focus: Focus, others: pd.Series) -> Section[Focus]:
    """A section of settings that fit on a page; `others` are cells of paradigms without one."""
    of_each = [claims(focus.of([name])) for name in focus.settings["setting"]]
    missing = paragraphs(f"{PLACE}:focus_missing.j2", f=focus, others=others, paradigms=PARADIGMS)
    return section_of(
        focus,
        focus.cells.drop(columns="setting"),
        focus.settings["id"],
        "focus",
        title=f"Fixed focus: {' and '.join(focus.settings['setting'])}",
        claims=[claim for same in zip(*of_each, strict=True) for claim in same],
        tell=lambda _: _facts(focus, missing),
        draw=pictures,
        tabulate=tables,
        summarise=_summaries,
    )


def _facts(focus: Focus, missing: list[str]) -> dict[str, Any]:
    return {
        "f": focus,
        "final": final(focus.curves),
        "form": number,
        "missing": missing,
        "PARADIGMS": PARADIGMS,
    }


def _summaries(section: Section[Focus]) -> Iterator[Run]:
    """One summary per (setting, paradigm) that has done cells."""
    for setting in section.subject.settings.to_dict("records"):
        focus = section.subject.of([setting["setting"]])
        note = claims_note([each for each in section.claims if each.setting == setting["setting"]])
        for paradigm in PARADIGMS:
            curves, cells = (t[t["paradigm"] == paradigm] for t in (focus.curves, focus.chosen))
            last = final(curves)
            if last.empty:
                continue
            cell = cells.iloc[0]
            yield summary_run(
                key=f"{setting['id']}/{paradigm}",
                named=[paradigm, f"fixed focus {setting['setting']}"],
                note=note,
                params={
                    "paradigm": paradigm,
                    "lr": number(cell["lr"]),
                    "chosen_by": "validation accuracy, mean over alpha and seeds",
                    "alphas": ", ".join(f"{alpha:g}" for alpha in last["alpha"]),
                    **{name: str(cell[name]) for name in (*_PARAMS, "num_classes")},
                },
                metrics={
                    f"final_{measure}_alpha_{row['alpha']:g}": row[measure]
                    for row in last.to_dict("records")
                    for measure in MEASURES
                }
                | {"n": float(last["num_seeds"].min())},
                files=lambda: section.files,
                curves={
                    f"train/{measure}_alpha_{alpha:g}": line.set_index("compute_flops")[measure]
                    for alpha, line in curves.groupby("alpha")
                    for measure in MEASURES
                },
            )
