"""Trajectories of linear models beside their closed form (section 4, figure 4, claim C15)."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import pandas as pd

from analysis.forms import aligned, level, number, span
from analysis.groups import PARADIGMS, paradigm_order
from analysis.rules.claim import Claim
from analysis.rules.statistics import CONFIDENCE
from analysis.section.blocks import Block, Details, Table, Text
from analysis.section.parts import end_states, run_files
from analysis.section.picture import Picture
from analysis.section.section import Question
from analysis.section.summary import claims_note, summary_run
from chapters.dynamics.figures.growth import (
    LARGEST,
    curvature_figure,
    of_pair,
    trajectory_figure,
)
from chapters.dynamics.figures.illustration import illustration_figure
from chapters.dynamics.linear_orthogonal import one_dimensional
from chapters.dynamics.section import closed_form, trained_trajectories
from chapters.dynamics.section.closed_form import (
    CONFIDENT,
    HORIZON,
    LEVELS,
    PUBLISHED,
    SMALL,
    Pair,
    convergence_cells,
    time_text,
)
from chapters.dynamics.section.convergence import exact_claim, trained_claim
from chapters.dynamics.section.dynamics_section import DynamicsSection
from chapters.dynamics.section.mean_curves import mean_curves
from chapters.dynamics.section.trained_trajectories import (
    LINE,
    QUANTITIES,
    deviation_cells,
    lost_seeds,
)
from study.results import Results
from study.terminal import counted
from study.tracking.runs import Run

_DEVIATIONS = (
    "Largest deviation of any seed at any evaluation on the test split, in % of how far the "
    "closed form goes meanwhile; beside it the largest distance between two seeds, and the "
    "largest deviation of their mean. A mean that deviates by more than seeds differ does not by "
    "chance: steps have a size, and the closed form is that of ever smaller ones."
)
_PANELS = 3  # side by side, so that a page shows them at a readable size
_SAMPLES, _MOSAICS, _SEED = 300, 500, 0


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[Trajectories]:
    """One object for all cells of the linear orthogonal setting whose focus trains.

    Args:
        results: the directory.
        cell_ids: ids of these cells, at least one.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: see `chapters.dynamics.section.trained_trajectories.read`.
    """
    cells = trained_trajectories.with_settings(results.cells(cell_ids))
    return [Trajectories(cells, trained_trajectories.read(results, cells))]


class Trajectories(DynamicsSection):
    """See `analysis.section.section.Section`.

    Args:
        cells: the rows of `cells`, with `setting`.
        rows: their evaluations, see `chapters.dynamics.section.trained_trajectories.read`.

    Attributes:
        cells, rows: as given.
        trained: (m, C) of the cells.
        pairs: (m, C) that are shown: of the cells, and those that theory adds.
    """

    about = (
        "Focus and classifier are linear and start at zero. Theory knows how the classifier's "
        "scale mu and the focus' scale nu grow under gradient flow of the population loss "
        "(Theorem 2); the trained cells take small steps on sampled mosaics. Time is that of the "
        "gradient flow: learning rate times steps."
    )

    def __init__(self, cells: pd.DataFrame, rows: pd.DataFrame) -> None:
        super().__init__(cells, sorted(set(cells["comparison_id"])))
        self.rows = rows
        found = set(zip(cells["m"].map(int), cells["num_classes"].map(int), strict=True))
        self.trained: list[Pair] = sorted(found)
        self.pairs: list[Pair] = sorted({*found, SMALL, *PUBLISHED})
        names = " and ".join(f"m={m}, C={c}" for m, c in self.trained)
        self.title = f"Trajectories in the linear orthogonal setting: {names}"

    @functools.cached_property
    def curves(self) -> pd.DataFrame:
        """Means over seeds of mu, nu and loss, see `mean_curves`."""
        return mean_curves(self.rows, LINE, ("compute_flops", "flow_time"), QUANTITIES)

    @functools.cached_property
    def deviations(self) -> pd.DataFrame:
        """Deviations from theory, see `trained_trajectories.deviations`."""
        return trained_trajectories.deviations(self.rows)

    @property
    def horizon(self) -> float:
        """Time up to which the closed form is drawn: past the end of all cells."""
        return max([HORIZON, *self.rows["flow_time"]])

    @functools.cached_property
    def exact(self) -> pd.DataFrame:
        """The closed form, see `chapters.dynamics.section.closed_form.curves`."""
        return closed_form.curves(self.pairs, self.horizon)

    @functools.cached_property
    def convergence(self) -> pd.DataFrame:
        """See `chapters.dynamics.section.closed_form.convergence`."""
        return closed_form.convergence(self.pairs)

    def lines(self) -> list[str]:
        header, rows = deviation_cells(self.deviations)
        none = self._without_form() or ["no cell was trained to the end"]
        return [
            "largest deviation from the closed form, % of its range",
            *(aligned(header, rows) if rows else none),
            "",
            "time until the loss is a share of log C, by the closed form; * the first",
            *aligned(*convergence_cells(self.convergence)),
            "",
        ]

    def _without_form(self) -> list[str]:
        """Says of which trained paradigms there is no closed form."""
        others = [name for name in paradigm_order(self.rows["paradigm"]) if name not in PARADIGMS]
        return [f"There is no closed form of {', '.join(others)}."] if others else []

    def warnings(self) -> list[str]:
        texts = []
        for status, why in (("diverged", "diverged"), ("censored", "were stopped early")):
            lost = [f"{name} {count}" for name, count in lost_seeds(self.cells, status).items()]
            if lost:
                told = ", ".join(lost)
                texts.append(f"Cells that {why} are left out of curves and tables: {told}.")
        return texts + self._without_form()

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """C15 of each (m, C): of the closed form, then of its trained cells."""
        found = []
        for pair in self.pairs:
            cells, rows = of_pair(self.cells, *pair), of_pair(self.rows, *pair)
            end = float(rows.groupby("cell_id")["flow_time"].max().min())
            found.append(exact_claim(of_pair(self.convergence, *pair), end))
            for setting, own in cells.groupby("setting"):
                of_setting = rows[rows["setting"] == setting]
                found.append(trained_claim(of_setting, f"{setting}, trained", own))
        return found

    @functools.cached_property
    def pictures(self) -> list[Picture]:
        """Figure 4, the curvature, and figure 5."""
        drawn = [
            self._trajectory_picture(
                self.pairs[i : i + _PANELS], f"-{i // _PANELS + 1}" if i else ""
            )
            for i in range(0, len(self.pairs), _PANELS)
        ]
        return [*drawn, _curvature_picture(), _illustration_picture()]

    def tables(self) -> dict[str, pd.DataFrame]:
        """The measured and exact curves, deviations, times, and the curvature."""
        return {
            "trajectories-trained": self.curves,
            "trajectories-exact": self.exact,
            "trajectories-deviations": self.deviations,
            "trajectories-convergence": self.convergence,
            "curvature": closed_form.curvatures(),
        }

    def details(self) -> list[Block]:
        until = (
            "Until the loss has fallen to a share of log C, its value at the start, and until "
            f"attention on the foreground is {CONFIDENT:g}; nu and loss at t = "
            f"{time_text(HORIZON)}. The first of each (m, C) is marked with *."
        )
        name = f"trajectories-convergence-{self.key}.csv"
        times = Table(*convergence_cells(self.convergence), left=(0, 1), csv=name)
        name = f"trajectories-deviations-{self.key}.csv"
        beside = Table(*deviation_cells(self.deviations), left=(0, 1), csv=name)
        off = Details("Trained cells against the closed form", [Text(_DEVIATIONS), beside])
        return [
            Details("Time to converge, by the closed form", [Text(until), times]),
            *([off] if beside.rows else []),
            Details("Cells by end state", end_states(self.cells)),
        ]

    def summaries(self) -> list[Run]:
        """One summary a setting and paradigm that was trained to the end."""
        files = functools.cache(lambda: run_files(self.tables(), self.pictures))
        found = []
        for (setting, paradigm), curve in self.curves.groupby(["setting", "paradigm"], sort=False):
            is_mine = (self.rows["setting"] == setting) & (self.rows["paradigm"] == paradigm)
            last, by_compute = curve.iloc[-1], curve.set_index("compute_flops")
            params = {
                "paradigm": str(paradigm),
                "lr": number(self.rows.loc[is_mine, "lr"].iloc[0]),
                "task": str(self.cells["task"].iloc[0]),
                "m": str(int(last["m"])),
                "num_classes": str(int(last["num_classes"])),
            }
            metrics = {name: float(last[name]) for name in ("flow_time", *QUANTITIES)}
            found.append(
                summary_run(
                    key=f"{self.key}/{setting}/{paradigm}",
                    named=[str(paradigm), f"linear-orthogonal {setting}"],
                    note=claims_note(self.claims),
                    params=params,
                    metrics=metrics | {"n": float(last["num_seeds"])},
                    files=files,
                    curves={f"test/{name}": by_compute[name] for name in QUANTITIES},
                )
            )
        return found

    def _trajectory_picture(self, pairs: Sequence[Pair], suffix: str) -> Picture:
        alone = [pair for pair in pairs if pair not in self.trained]
        caption = (
            "Scale of the classifier mu, scale of the focus nu, and loss over the time of the "
            "gradient flow (figure 4 of the paper). Lines: closed form from zero weights, up to "
            f"t = {time_text(self.horizon)}."
        )
        if len(self.curves):
            seeds = counted(span(self.curves["num_seeds"]), "seed")
            caption += (
                f" Marks: trained models, mean over n={seeds} with {level(CONFIDENCE)} t "
                "interval (from n=2; mostly smaller than the mark), loss on the test split."
            )
        if alone:
            caption += f" By theory alone: {_listed(alone)}."
        caption += f" Dotted: {', '.join(f'{100 * s:g}' for s in LEVELS)} % of log C."
        return Picture(
            name=f"trajectories{suffix}",
            title="Classifier and focus over time",
            caption=caption,
            figure=trajectory_figure(self.exact, self.curves, pairs, LEVELS),
        )


def _curvature_picture() -> Picture:
    return Picture(
        name="curvature",
        title="Curvature along the trajectory",
        caption=(
            "Eigenvalues of the Hessian of the population loss in the plane of mu and nu, in "
            "coordinates of unit length, their condition number (largest over smallest, by "
            "absolute value), and the local rate of the loss, |grad L|^2 / L = -d log L / dt, "
            f"along each paradigm's own trajectory for {_listed(PUBLISHED)}, in closed form. "
            "Below 0 the loss is not convex; where an eigenvalue passes 0, the condition "
            f"number is infinite (cut at {LARGEST})."
        ),
        figure=curvature_figure(closed_form.curvatures(), PUBLISHED),
    )


def _listed(pairs: Sequence[Pair]) -> str:
    return " and ".join(f"m={m}, C={c:,}" for m, c in pairs)


def _illustration_picture() -> Picture:
    values, classes = one_dimensional.sample_base(_SAMPLES, _SEED)
    segments, labels, _ = one_dimensional.sample_mosaics(_MOSAICS, _SEED)
    return Picture(
        name="illustration",
        title="The task in one dimension",
        caption=(
            f"Left, {_SAMPLES} samples of a background class (brown) and two foreground classes "
            f"(blue, orange), right, {_MOSAICS} mosaics of two segments, coloured by their label. "
            "Either segment may be the foreground, so the picture is its own mirror image at the "
            "dashed line (figure 5 of the paper)."
        ),
        figure=illustration_figure(values, classes, segments, labels),
    )
