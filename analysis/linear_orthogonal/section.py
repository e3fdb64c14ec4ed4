"""Trajectories of linear models beside their closed form (section 4, figure 4, claim C15)."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import pandas as pd

from analysis.figures.dynamics.curvature import LARGEST, curvature_figure
from analysis.figures.dynamics.trajectories import of_pair, trajectory_figure
from analysis.figures.illustration import illustration_figure
from analysis.groups import PARADIGMS, is_trajectory, paradigm_order
from analysis.linear_orthogonal import closed_form, measured
from analysis.linear_orthogonal.claims import (
    HORIZON,
    LEVELS,
    exact_claim,
    time_text,
    trained_claim,
)
from analysis.linear_orthogonal.closed_form import CONFIDENT, PUBLISHED, SMALL, Pair
from analysis.linear_orthogonal.tables import convergence_cells, deviation_cells
from analysis.section.base import Question
from analysis.section.blocks import Block, Details, Heading, Shown, Table, Text
from analysis.section.claim import Claim
from analysis.section.dynamics import Dynamics
from analysis.section.parts import claim_details, end_states
from analysis.section.picture import Picture
from analysis.section.summary import claims_note, run_files, summary_run
from analysis.statistics import CONFIDENCE
from analysis.words import aligned, level, number, span, tally
from study.results import Results
from study.terminal import counted
from study.theory.linear_orthogonal import one_dimensional
from study.tracking.runs import Run

_ABOUT = (
    "Focus and classifier are linear and start at zero. Theory knows how the classifier's scale "
    "mu and the focus' scale nu grow under gradient flow of the population loss (Theorem 2); the "
    "trained cells take small steps on sampled mosaics. Time is that of the gradient flow: "
    "learning rate times steps."
)
_DEVIATIONS = (
    "Largest deviation of any seed at any evaluation on the test split, in % of how far the "
    "closed form goes meanwhile; beside it the largest distance between two seeds, and the "
    "largest deviation of their mean. A mean that deviates by more than seeds differ does not by "
    "chance: steps have a size, and the closed form is that of ever smaller ones."
)
_PANELS = 3  # side by side, so that a page shows them at a readable size
_SAMPLES, _MOSAICS, _SEED = 300, 500, 0


def mine(cells: pd.DataFrame) -> pd.Series:
    """Whether each row trained a whole linear model; see `analysis.section.base.Kind`."""
    return is_trajectory(cells)


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[Trajectories]:
    """One object for all cells of the linear orthogonal setting whose focus trains.

    Args:
        results: the directory.
        cell_ids: ids of these cells, at least one.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: see `analysis.linear_orthogonal.measured.read`.
    """
    cells = measured.with_settings(results.cells(cell_ids))
    return [Trajectories(cells, measured.read(results, cells))]


class Trajectories(Dynamics):
    """See `analysis.section.base.Section`.

    Args:
        cells: the rows of `cells`, with `setting`.
        rows: their evaluations, see `analysis.linear_orthogonal.measured.read`.

    Attributes:
        cells, rows: as given.
        trained: (m, C) of the cells.
        pairs: (m, C) that are shown: of the cells, and those that theory adds.
    """

    def __init__(self, cells: pd.DataFrame, rows: pd.DataFrame) -> None:
        super().__init__(cells, sorted(set(cells["comparison_id"])))
        self.rows = rows
        self.trained: list[Pair] = _pairs(cells)
        self.pairs: list[Pair] = sorted({*self.trained, SMALL, *PUBLISHED})

    @property
    def title(self) -> str:
        names = " and ".join(f"m={m}, C={c}" for m, c in self.trained)
        return f"Trajectories in the linear orthogonal setting: {names}"

    @functools.cached_property
    def curves(self) -> pd.DataFrame:
        """Means over seeds, see `analysis.linear_orthogonal.measured.curves`."""
        return measured.curves(self.rows)

    @functools.cached_property
    def deviations(self) -> pd.DataFrame:
        """Deviations from theory, see `analysis.linear_orthogonal.measured.deviations`."""
        return measured.deviations(self.rows)

    @functools.cached_property
    def exact(self) -> pd.DataFrame:
        """The closed form, see `analysis.linear_orthogonal.closed_form.curves`."""
        end = self.rows["flow_time"].max() if len(self.rows) else 0.0
        return closed_form.curves(self.pairs, max(HORIZON, end))

    @functools.cached_property
    def curvatures(self) -> pd.DataFrame:
        """The Hessian, see `analysis.linear_orthogonal.closed_form.curvatures`."""
        return closed_form.curvatures(PUBLISHED)

    @functools.cached_property
    def convergence(self) -> pd.DataFrame:
        """See `analysis.linear_orthogonal.closed_form.convergence`."""
        return closed_form.convergence(self.pairs)

    def text(self, published: bool = False) -> str:
        """For the terminal."""
        header, rows = deviation_cells(self.deviations)
        lines = [self.title, "", "largest deviation from the closed form, % of its range"]
        lines += aligned(header, rows) if rows else ["no cell was trained to the end"]
        lines += ["", "time until the loss is a share of log C, by the closed form; * the first"]
        lines += aligned(*convergence_cells(self.convergence))
        verdicts = "; ".join(f"{c.verdict} ({c.setting})" for c in self.claims)
        statement = self.claims[0].statement.removesuffix(".")
        lines += ["", f"{self.claims[0].name} {statement}: {verdicts}"]
        return "\n".join(lines)

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """C15 of each (m, C): of the closed form, then of its trained cells."""
        found = []
        for m, num_classes in self.pairs:
            mine = of_pair(self.cells, m, num_classes)
            rows = self.rows[self.rows["cell_id"].isin(mine["cell_id"])]
            ends = rows.groupby("cell_id")["flow_time"].max()
            found.append(exact_claim(closed_form.exact(m, num_classes, float(ends.min()))))
            for setting, cells in mine.groupby("setting"):
                of_setting = rows[rows["setting"] == setting]
                found.append(trained_claim(of_setting, f"{setting}, trained", cells))
        return found

    @functools.cached_property
    def pictures(self) -> list[Picture]:
        """Figure 4, the curvature, and figure 5."""
        parts = [self.pairs[i : i + _PANELS] for i in range(0, len(self.pairs), _PANELS)]
        drawn = [
            self._trajectory_picture(part, f"-{number}" if number > 1 else "")
            for number, part in enumerate(parts, start=1)
        ]
        return [*drawn, self._curvature_picture(), _illustration_picture()]

    def tables(self) -> dict[str, pd.DataFrame]:
        """The measured and exact curves, deviations, times, and the curvature."""
        return {
            "trajectories-trained": self.curves,
            "trajectories-exact": self.exact,
            "trajectories-deviations": self.deviations,
            "trajectories-convergence": self.convergence,
            "curvature": self.curvatures,
        }

    def blocks(self, shown: Sequence[Shown], results: str, published: bool = False) -> list[Block]:
        """The section below its heading."""
        blocks: list[Block] = [Text(_ABOUT, "quiet")]
        blocks += [Text(warning, "warning") for warning in self._warnings()]
        blocks += [Heading("Figures"), *shown, *claim_details(self.claims)]
        until = (
            "Until the loss has fallen to a share of log C, its value at the start, and until "
            f"attention on the foreground is {CONFIDENT:g}; nu and loss at t = "
            f"{time_text(HORIZON)}. The first of each (m, C) is marked with *."
        )
        times = Table(*convergence_cells(self.convergence), left=(0, 1))
        blocks.append(Details("Time to converge, by the closed form", [Text(until), times]))
        header, rows = deviation_cells(self.deviations)
        if rows:
            table = Table(header, rows, left=(0, 1))
            beside = "Trained cells against the closed form"
            blocks.append(Details(beside, [Text(_DEVIATIONS), table]))
        return [
            *blocks,
            Details("Cells by end state", end_states(self.cells)),
            Details("Repeat any cell", self.repeat_blocks(results)),
        ]

    def summaries(self) -> list[Run]:
        """One summary a setting and paradigm that was trained to the end."""
        files = functools.cache(lambda: run_files(self.tables(), self.pictures))
        found = []
        for (setting, paradigm), curve in self.curves.groupby(["setting", "paradigm"], sort=False):
            is_mine = (self.rows["setting"] == setting) & (self.rows["paradigm"] == paradigm)
            first, last = self.rows[is_mine].iloc[0], curve.iloc[-1]
            metrics = {name: float(last[name]) for name in ("flow_time", *measured.QUANTITIES)}
            params = {
                "paradigm": str(paradigm),
                "lr": number(first["lr"]),
                "task": str(self.cells["task"].iloc[0]),
                "m": str(int(first["m"])),
                "num_classes": str(int(first["num_classes"])),
            }
            found.append(
                summary_run(
                    key=f"{self.key}/{setting}/{paradigm}",
                    what=str(paradigm),
                    where=f"linear-orthogonal {setting}",
                    note=claims_note(self.claims),
                    params=params,
                    metrics=metrics | {"n": float(last["num_seeds"])},
                    files=files,
                    curves={
                        f"test/{name}": zip(curve["compute_flops"], curve[name], strict=True)
                        for name in measured.QUANTITIES
                    },
                )
            )
        return found

    def _warnings(self) -> list[str]:
        texts = []
        for status, why in (("diverged", "diverged"), ("censored", "were stopped early")):
            lost = measured.lost_seeds(self.cells, status)
            if lost:
                left = tally(lost)
                texts.append(f"Cells that {why} are left out of curves and tables: {left}.")
        others = [name for name in paradigm_order(self.rows["paradigm"]) if name not in PARADIGMS]
        if others:
            texts.append(f"There is no closed form of {', '.join(others)}.")
        return texts

    def _trajectory_picture(self, pairs: Sequence[Pair], suffix: str) -> Picture:
        alone = [pair for pair in pairs if pair not in self.trained]
        caption = (
            "Scale of the classifier mu, scale of the focus nu, and loss over the time of the "
            "gradient flow (figure 4 of the paper). Lines: closed form from zero weights, up to "
            f"t = {time_text(HORIZON)}."
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

    def _curvature_picture(self) -> Picture:
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
            figure=curvature_figure(self.curvatures, PUBLISHED),
        )


def _pairs(table: pd.DataFrame) -> list[Pair]:
    found = table[["m", "num_classes"]].drop_duplicates()
    return sorted((int(m), int(c)) for m, c in found.itertuples(index=False))


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
