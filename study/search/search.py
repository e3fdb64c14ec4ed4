"""Search beyond grids: Optuna suggests options, each trained over the same seeds.

A search varies learning rates and switch point of each paradigm, between the least and the
greatest value that the study declares (or `--set` gives). All other axes have one value, so that
all cells belong to one comparison. Each paradigm has an Optuna of its own, which knows the mean
over seeds of a validation metric at the end of the budget, and gets as many suggestions. What was
tried is read from the results, whichever command trained it, and an option of which a killed run
has recorded some seeds is the next one's first. What Optuna suggests follows from what was tried:
it is made anew for each suggestion. To be imported late, as Optuna is.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import optuna
import pandas as pd
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, TrialState

from study.cell import Cell
from study.cell.seeds import stream_seed
from study.cell.work import Job
from study.errors import RequestError
from study.kinds import KINDS
from study.launch.workplace import Workplace
from study.plan.axes import as_assignments, tasks_of
from study.plan.plan import Plan, rows_of
from study.plan.planning import laid_out
from study.request import Request
from study.search.over_seeds import means, recorded
from study.search.space import Space
from study.terminal import counted, tabulated

MOST_REFUSED = 100
"""Suggestions in a row that cannot run and so end a search."""

NAMES = {TrialState.COMPLETE: "done", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
"""How an option ended, for people."""

Option = tuple[Cell, ...]
"""A cell for each seed."""


def searched(request: Request) -> Plan:
    """The plan of a search of which nothing is known but examples, and how many cells are to come.

    Raises:
        RequestError: nothing is searched, no example can run, or data is not at hand.
    """
    space = Space.of(request.axes)
    plan = laid_out(request, space.examples())
    shares = space.shares(request.num_samples or 0)
    options, seeds = sum(shares.values()), len(space.seeds)
    about = (
        f"search: {counted(max(shares.values()), 'suggestion')} a paradigm, {options} in all, x "
        f"{counted(seeds, 'seed')} = {counted(options * seeds, 'cell')}, improving "
        f"{space.improved(request.metrics)}"
    )
    known = KINDS[plan.kind].axes(tasks_of(request.axes))
    grid = tuple(as_assignments(known, request.axes))
    return replace(plan, rows=_to_come(plan.runnable, shares), search=about, grid=grid)


def _to_come(examples: pd.DataFrame, options: Mapping[str, int]) -> pd.DataFrame:
    """The rows of what a search will suggest.

    Args:
        examples: a row for each paradigm and seed.
        options: paradigm -> how many.
    """
    counts = examples["label"].map(options).fillna(0).astype(int)
    rows = examples.loc[examples.index.repeat(counts)]
    return rows.assign(known=False).reset_index(drop=True)


@dataclass(eq=False, kw_only=True)
class Search:
    """The options of a search: those that were tried, and Optuna's next ones.

    Args:
        name: of the study.
        place: where it runs.
        space: what is searched.
        comparison_id: of all its cells.
        make_cell: point (axis -> value) -> cell; RequestError if it cannot run.
        objective: one or both of `study.request.OBJECTIVES`, in their order.
        num_samples: options a paradigm, over all runs of this search.
    """

    name: str
    place: Workplace
    space: Space
    comparison_id: str
    make_cell: Callable[[Mapping[str, Any]], Cell]
    objective: Sequence[str]
    num_samples: int

    def __post_init__(self) -> None:
        self._shares = Counter(self.space.shares(self.num_samples))
        self._trials: dict[Option, FrozenTrial] = {}
        self._running: dict[str, Option] = {}
        self._finished = self.place.finished
        self._look()

    @classmethod
    def of(cls, request: Request, plan: Plan, place: Workplace) -> Search:
        """The search that a request asks for, whose plan `searched` gave."""
        return cls(
            name=plan.study,
            place=place,
            space=Space.of(request.axes),
            comparison_id=plan.to_come["cell"].iloc[0].comparison_id,
            make_cell=plan.maker.runnable,
            objective=request.metrics,
            num_samples=request.num_samples or 0,
        )

    def known(self, plan: Plan) -> Plan:
        """The plan of a search with the options that were tried, and as many to come as are left.

        Args:
            plan: as `searched` gave it.
        """
        known = rows_of(self.cells, [*map(plan.maker.flops, self.cells)])
        to_come = _to_come(plan.rows.drop_duplicates("id"), self.left)
        return replace(plan, rows=pd.concat([known, to_come], ignore_index=True))

    @property
    def cells(self) -> list[Cell]:
        """The cells of every option that was tried to its end."""
        return [cell for option in self._ended for cell in option]

    @property
    def left(self) -> Counter[str]:
        """Paradigm -> how many options are still to be suggested, or trained to their end."""
        return self._shares - _counts(self._ended)

    @property
    def _ended(self) -> list[Option]:
        return [option for option, trial in self._trials.items() if trial.state.is_finished()]

    def next(self, trial_id: str) -> Job | None:
        """What a trial is to train; None: nothing is left.

        Raises:
            RequestError: `MOST_REFUSED` suggestions in a row cannot run.
        """
        trials = self._trials.items()
        waiting = (option for option, trial in trials if trial.state == TrialState.WAITING)
        option = next(waiting, None) or self._suggested()
        if option is None:
            return None
        self._running[trial_id] = option
        self._note(option, TrialState.RUNNING)
        missing = tuple(cell for cell in option if cell.id not in self._finished)
        return Job((missing,), watched=True)

    def ended(self, trial_id: str, last: Mapping[str, Any]) -> None:
        """Takes the end of a trial.

        Args:
            trial_id: given to `next`.
            last: what it told last. Of one that a scheduler stopped, whose cells may not be
                recorded yet, an evaluation: budget_percent, accuracy and saif.
        """
        option = self._running.pop(trial_id)
        percent = round(last.get("budget_percent", 100))
        if percent < 100:
            self._score(option, percent, [last[metric] for metric in self.objective])
        else:
            self._read(option, recorded(self.place.results, [cell.id for cell in option]))

    def summary(self, select: str = "accuracy") -> str:
        """The lines printed at the end: counts, best options or Pareto front.

        Args:
            select: the metric by which the tables' options were chosen among all.
        """
        ends = Counter(self._trials[option].state for option in self._ended)
        ended = ", ".join(f"{ends[end]} {name}" for end, name in NAMES.items() if ends[end])
        lines = [f"{counted(ends.total(), 'suggestion')}: {ended}", *self._best()]
        if "saif" in self.objective:
            lines.append(
                f"The search improved {self.space.improved(self.objective)}; SAIF uses the "
                "hidden foreground. The tables show what validation "
                f"{self.space.label(select)} chose (--select)."
            )
        return "\n".join(lines)

    def _best(self) -> Iterator[str]:
        trials = [trial for name in self._shares for trial in self._study(name).best_trials]
        if not trials:
            return
        if len(self.objective) > 1:
            yield "Pareto front of each paradigm: no suggestion is better in both."
        else:
            yield "best suggestion of each paradigm:"
        metrics = [f"{self.space.label(metric)} %" for metric in self.objective]
        best = sorted(trials, key=lambda trial: trial.values, reverse=True)
        yield from tabulated(
            ["schedule", *metrics],
            [[t.user_attrs["schedule"], *(f"{100 * v:.1f}" for v in t.values)] for t in best],
        )

    # --- what was tried

    def _look(self) -> None:
        """Finds the options that were tried, or of which some cells are recorded."""
        held = self.place.survey.cells
        held = held[
            held["comparison_id"].eq(self.comparison_id)
            & held["paradigm"].isin(self._shares)
            & held["seed"].isin(self.space.seeds)
        ]
        if held.empty:  # the directory may not be there yet
            return
        rows = recorded(self.place.results, held["cell_id"])
        for text in rows.sort_values("finished_at", kind="stable")["cell"].unique():
            cell = Cell.from_dict(json.loads(text))
            with contextlib.suppress(RequestError):  # it lies outside of the space
                option = self._option(cell.paradigm, self.space.nearest(cell))
                if cell in option:
                    self._note(option, TrialState.WAITING)
        for option in self._trials:
            if all(cell.id in self._finished for cell in option):
                self._read(option, rows)

    def _option(self, paradigm: str, values: Mapping[str, float]) -> Option:
        points = [self.space.point(paradigm, values, seed) for seed in self.space.seeds]
        return tuple(map(self.make_cell, points))

    def _read(self, option: Option, rows: pd.DataFrame) -> None:
        """Notes how an option ended by what is recorded of its cells: of a failed one nothing."""
        rows = rows[rows["cell_id"].isin([cell.id for cell in option])]
        known = pd.DataFrame({metric: means(rows, metric) for metric in self.objective}).dropna()
        if known.empty or rows["cell_id"].nunique() < len(option):
            self._note(option, TrialState.FAIL)
        else:
            self._score(option, round(100 * known.index[-1]), known.iloc[-1].tolist())

    def _score(self, option: Option, percent: int, values: list[float]) -> None:
        """Notes an option as done, or as stopped at so much of the budget.

        Optuna ranks what was stopped by how far it came, and by its value there.
        """
        if percent < 100:
            self._note(option, TrialState.PRUNED, intermediate_values={percent: values[0]})
        else:
            self._note(option, TrialState.COMPLETE, values=values)

    def _note(self, option: Option, state: TrialState, **outcome: Any) -> None:
        first = option[0]
        self._trials[option] = optuna.trial.create_trial(
            state=state,
            params=self.space.nearest(first),
            distributions=self.space.ranges(first.paradigm),
            user_attrs={"schedule": first.schedule.text},
            **outcome,
        )

    # --- what comes next

    def _suggested(self) -> Option | None:
        """A new option that can run, of the paradigm with the fewest; None: all have enough."""
        counts = _counts(self._trials)
        short = self._shares - counts
        if not short:
            return None
        paradigm = min(short, key=lambda name: counts[name])
        # Anew for each, so that what a killed run suggested is suggested, and goes on.
        study = self._study(paradigm, counts[paradigm])
        for _ in range(MOST_REFUSED):
            trial = study.ask(self.space.ranges(paradigm))
            reason = "they were tried before"
            try:
                option = self._option(paradigm, self.space.rounded(paradigm, trial.params))
                if option not in self._trials:
                    return option
            except RequestError as error:
                reason = str(error)
        raise RequestError(
            f"the last {MOST_REFUSED} suggestions of the search cannot run: {reason}. "
            "Change the ranges with --set."
        )

    def _study(self, paradigm: str, number: int = 0) -> optuna.Study:
        """Optuna's study of a paradigm, about to make the suggestion of that number."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        seed = stream_seed("search", self.name, paradigm, number) % 2**32
        study = optuna.create_study(
            # The liar keeps new suggestions away from those still in training.
            sampler=TPESampler(seed=seed, constant_liar=True),
            directions=["maximize"] * len(self.objective),
        )
        trials = self._trials.items()
        study.add_trials(trial for option, trial in trials if option[0].paradigm == paradigm)
        return study


def _counts(options: Iterable[Option]) -> Counter[str]:
    """Paradigm -> how many of the options it has."""
    return Counter(option[0].paradigm for option in options)
