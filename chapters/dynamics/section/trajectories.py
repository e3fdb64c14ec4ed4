"""Trajectories of linear models beside their closed form (section 4, figure 4, claim C15)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.forms import number
from analysis.groups import PARADIGMS, in_order
from analysis.rules.claim import Claim
from analysis.section.picture import Picture
from analysis.section.section import Question, Section
from analysis.section.summary import claims_note, summary_run
from analysis.section.templates import paragraphs
from chapters.dynamics.figures.growth import LARGEST, curvature_figure, of_pair, trajectory_figure
from chapters.dynamics.figures.illustration import illustration_figure
from chapters.dynamics.linear_orthogonal import one_dimensional
from chapters.dynamics.section import closed_form
from chapters.dynamics.section.chapter import PLACE, picture, section_of
from chapters.dynamics.section.closed_form import (
    CONFIDENT,
    HORIZON,
    LEVELS,
    PUBLISHED,
    SMALL,
    Pair,
    time_text,
)
from chapters.dynamics.section.convergence import exact_claim, trained_claim
from chapters.dynamics.section.mean_curves import mean_curves
from chapters.dynamics.section.trained_trajectories import (
    LINE,
    ORDER,
    QUANTITIES,
    deviations,
    read,
    with_settings,
)
from study.results import Results
from study.tracking.runs import Run

_PANELS = 3  # side by side, so that a page shows them at a readable size
_SAMPLES, _MOSAICS, _SEED = 300, 500, 0


@dataclass(frozen=True, eq=False)
class Trajectories:
    """All cells of the linear orthogonal setting whose focus trains, and theory beside them.

    Attributes:
        cells: the rows of `cells`, with `setting`.
        rows: their evaluations, see `chapters.dynamics.section.trained_trajectories.read`.
        curves: means over seeds of mu, nu and loss, see `mean_curves`.
        deviations: from theory, see `chapters.dynamics.section.trained_trajectories.deviations`.
        trained: (m, C) of the cells.
        pairs: (m, C) that are shown: of the cells, and those that theory adds.
        convergence: see `chapters.dynamics.section.closed_form.convergence`.
    """

    cells: pd.DataFrame
    rows: pd.DataFrame
    curves: pd.DataFrame
    deviations: pd.DataFrame
    trained: list[Pair]
    pairs: list[Pair]
    convergence: pd.DataFrame

    @property
    def horizon(self) -> float:
        """Time up to which the closed form is drawn: past the end of all cells."""
        return max([HORIZON, *self.rows["flow_time"]])

    def exact(self) -> pd.DataFrame:
        """The closed form, see `chapters.dynamics.section.closed_form.curves`."""
        return closed_form.curves(self.pairs, self.horizon)


def find(
    results: Results, cell_ids: Collection[str], question: Question
) -> list[Section[Trajectories]]:
    """One section for all cells of the linear orthogonal setting whose focus trains.

    Args:
        results: the directory.
        cell_ids: ids of these cells, at least one.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: see `chapters.dynamics.section.trained_trajectories.read`.
    """
    cells = with_settings(results.cells(cell_ids))
    found = _trajectories(cells, read(results, cells))
    names = " and ".join(f"m={m}, C={c}" for m, c in found.trained)
    section = section_of(
        found,
        cells,
        sorted(set(cells["comparison_id"])),
        "trajectories",
        title=f"Trajectories in the linear orthogonal setting: {names}",
        claims=_claims(found),
        tell=_facts,
        draw=_pictures,
        tabulate=_tables,
        summarise=_summaries,
    )
    return [section]


def _trajectories(cells: pd.DataFrame, rows: pd.DataFrame) -> Trajectories:
    curves = mean_curves(rows, LINE, ("compute_flops", "flow_time"), QUANTITIES)
    trained = sorted({(int(m), int(c)) for m, c in cells[["m", "num_classes"]].to_numpy()})
    pairs = sorted({*trained, SMALL, *PUBLISHED})
    return Trajectories(
        cells=cells,
        rows=rows,
        curves=in_order(curves, [*ORDER, "budget_fraction"]),
        deviations=deviations(rows),
        trained=trained,
        pairs=pairs,
        convergence=closed_form.convergence(pairs),
    )


def _claims(t: Trajectories) -> list[Claim]:
    """C15 of each (m, C): of the closed form, then of its trained cells."""
    found = []
    for pair in t.pairs:
        cells, rows = of_pair(t.cells, *pair), of_pair(t.rows, *pair)
        end = float(rows.groupby("cell_id")["flow_time"].max().min())
        found.append(exact_claim(of_pair(t.convergence, *pair), end))
        for setting, own in cells.groupby("setting"):
            of_setting = rows[rows["setting"] == setting]
            found.append(trained_claim(of_setting, f"{setting}, trained", own))
    return found


def _facts(t: Trajectories) -> dict[str, Any]:
    told = {"cells": t.cells, "rows": t.rows, "paradigms": PARADIGMS}
    return {
        "t": t,
        "missing": paragraphs(f"{PLACE}:trajectories_missing.j2", **told),
        "until": {"time": time_text, "levels": LEVELS, "confident": CONFIDENT, "end": HORIZON},
    }


def _pictures(t: Trajectories) -> list[Picture]:
    """Figure 4, the curvature, and figure 5."""
    exact, pictures = t.exact(), []
    for i in range(0, len(t.pairs), _PANELS):
        pairs = t.pairs[i : i + _PANELS]
        drawn = picture(
            "trajectories",
            trajectory_figure(exact, t.curves, pairs, LEVELS),
            suffix=f"-{i // _PANELS + 1}" if i else "",
            horizon=time_text(t.horizon),
            measured=t.curves,
            alone=[pair for pair in pairs if pair not in t.trained],
            levels=LEVELS,
        )
        pictures.append(drawn)
    of_curvature = curvature_figure(closed_form.curvatures(), PUBLISHED)
    values, classes = one_dimensional.sample_base(_SAMPLES, _SEED)
    segments, labels, _ = one_dimensional.sample_mosaics(_MOSAICS, _SEED)
    of_task = illustration_figure(values, classes, segments, labels)
    return [
        *pictures,
        picture("curvature", of_curvature, pairs=PUBLISHED, largest=LARGEST),
        picture("illustration", of_task, samples=_SAMPLES, mosaics=_MOSAICS),
    ]


def _tables(t: Trajectories) -> dict[str, pd.DataFrame]:
    """The measured and exact curves, deviations, times, and the curvature."""
    return {
        "trajectories-trained": t.curves,
        "trajectories-exact": t.exact(),
        "trajectories-deviations": t.deviations,
        "trajectories-convergence": t.convergence,
        "curvature": closed_form.curvatures(),
    }


def _summaries(section: Section[Trajectories]) -> Iterator[Run]:
    """One summary per setting and paradigm that was trained to the end."""
    t = section.subject
    for (setting, paradigm), curve in t.curves.groupby(["setting", "paradigm"], sort=False):
        last, by_compute = curve.iloc[-1], curve.set_index("compute_flops")
        mine = t.cells[(t.cells["setting"] == setting) & (t.cells["paradigm"] == paradigm)]
        cell = mine.iloc[0]
        yield summary_run(
            key=f"{section.key}/{setting}/{paradigm}",
            named=[str(paradigm), f"linear-orthogonal {setting}"],
            note=claims_note(section.claims),
            params={
                **{name: str(cell[name]) for name in ("paradigm", "task", "m", "num_classes")},
                "lr": number(cell["lr"]),
            },
            metrics={
                **{name: float(last[name]) for name in ("flow_time", *QUANTITIES)},
                "n": float(last["num_seeds"]),
            },
            files=lambda: section.files,
            curves={f"test/{name}": by_compute[name] for name in QUANTITIES},
        )
