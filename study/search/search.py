"""Search beyond grids: Optuna suggests options, each trained over the same seeds.

A search varies learning rates and switch point of each paradigm, between the least and the
greatest value that the study declares (or `--set` gives). All other axes have one value, so that
all cells belong to one comparison. Each paradigm has an Optuna of its own, which is told the mean
over seeds of a validation metric at the end of the budget, and gets as many suggestions. What was
tried is read from the results, whichever command trained it, and an option of which a killed run
has recorded some seeds is the next one's first. What Optuna suggests follows from what was tried.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from study import tasks
from study.cell import Cell
from study.cell.seeds import stream_seed
from study.cell.work import Job
from study.errors import RequestError
from study.kinds import KINDS
from study.launch.workplace import Workplace
from study.plan.plan import Plan, ToCome
from study.plan.planning import laid_out
from study.request import OBJECTIVES, Request
from study.search.space import Space
from study.terminal import counted
from study.terminal.command import importing

if TYPE_CHECKING:
    import optuna

MOST_REFUSED = 100
"""Suggestions in a row that cannot run and so end a search."""

NAMES = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed"}
"""How a suggestion ended, by Optuna's name of the state."""


@dataclass(eq=False)
class Option:
    """What was suggested, or trained by other means, within the space of a search.

    Attributes:
        cells: one a seed.
        searched: axis -> value.
        trial: Optuna's; None: it did not suggest it in this run, and does not know of it yet.
        told: what Optuna was told of how it ended; None: it is in training, or left to train.
    """

    cells: tuple[Cell, ...]
    searched: Mapping[str, float]
    trial: optuna.Trial | None = None
    told: optuna.trial.FrozenTrial | None = None

    @property
    def paradigm(self) -> str:
        return self.cells[0].paradigm

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(cell.id for cell in self.cells)


def searched(request: Request) -> Plan:
    """The plan of a search of which nothing is known but examples, and how many cells are to come.

    Raises:
        RequestError: nothing is searched, an example cannot run, or data is not at hand.
    """
    space = Space.of(request.axes)
    plan = laid_out(request, space.examples())
    num_samples = request.num_samples or 0
    count = sum(space.shares(num_samples).values()) * len(space.seeds)
    return replace(
        plan,
        cells=(),
        search=space.describe(num_samples, request.metrics),
        to_come=(ToCome(plan.cells, count),),
    )


@dataclass(eq=False, kw_only=True)
class Search:
    """The options of a search: those that were tried, and Optuna's next ones.

    Args:
        name: of the study.
        place: where it runs.
        space: what is searched.
        make_cell: point (axis -> value) -> cell; RequestError if it cannot run.
        objective: one or both of `OBJECTIVES`, in their order.
        num_samples: options a paradigm, over all runs of this search.

    Raises:
        RequestError: none of the space's examples can run.
    """

    name: str
    place: Workplace
    space: Space
    make_cell: Callable[[Mapping[str, Any]], Cell]
    objective: Sequence[str]
    num_samples: int

    def __post_init__(self) -> None:
        self._shares = Counter(self.space.shares(self.num_samples))
        self._options: dict[frozenset[str], Option] = {}
        self._studies: dict[str, optuna.Study] = {}
        self._running: dict[str, Option] = {}
        self._finished = self.place.finished
        self._look()

    @classmethod
    def of(cls, request: Request, plan: Plan, place: Workplace) -> Search:
        """The search that a request asks for, whose plan `searched` gave."""
        maker = KINDS[plan.kind].maker(lambda task, options: plan.facts[task, options])
        return cls(
            name=plan.study,
            place=place,
            space=Space.of(request.axes),
            make_cell=maker.runnable,
            objective=request.metrics,
            num_samples=request.num_samples or 0,
        )

    def known(self, plan: Plan) -> Plan:
        """The plan of a search with the options that were tried, and as many to come as are left.

        Args:
            plan: as `searched` gave it.
        """
        cells = tuple(self.cells)
        maker = KINDS[plan.kind].maker(lambda task, options: plan.facts[task, options])
        (examples,) = plan.to_come
        count = self.left * len(self.space.seeds)
        return replace(
            plan,
            cells=cells,
            flops={**plan.flops, **{cell.id: maker.flops(cell) for cell in cells}},
            to_come=(replace(examples, count=count),) if count else (),
        )

    @property
    def cells(self) -> list[Cell]:
        """The cells of every option that was tried to its end."""
        return [cell for option in self._tried for cell in option.cells]

    @property
    def left(self) -> int:
        """How many options are still to be suggested, or to be trained to their end."""
        return (self._shares - _counts(self._tried)).total()

    @property
    def _tried(self) -> list[Option]:
        return [option for option in self._options.values() if option.told]

    def next(self, trial_id: str) -> Job | None:
        """What a trial is to train; None: nothing is left.

        Raises:
            RequestError: `MOST_REFUSED` suggestions in a row cannot run.
        """
        running = self._running.values()
        waiting = (o for o in self._options.values() if not o.told and o not in running)
        option = next(waiting, None) or self._suggested()
        if option is None:
            return None
        self._running[trial_id] = option
        missing = tuple(cell for cell in option.cells if cell.id not in self._finished)
        return Job((missing,), watched=True)

    def ended(self, trial_id: str, statuses: Mapping[str, str], last: Mapping[str, Any]) -> None:
        """Tells Optuna how the option of a trial ended.

        Args:
            trial_id: given to `next`.
            statuses: cell id -> how it ended.
            last: the last evaluation of an option without statuses, which a scheduler stopped:
                budget_percent, accuracy and saif. Empty: it failed.
        """
        option = self._running.pop(trial_id)
        if "failed" in map(statuses.get, option.ids):
            self._tell(option)
        elif option.ids <= self._finished.keys() | statuses.keys():
            self._settle([option])
        elif percent := round(last.get("budget_percent", 0)):
            self._tell(option, [last[metric] for metric in self.objective], percent)
        else:
            self._tell(option)

    def summary(self, select: str = "accuracy") -> str:
        """The lines printed at the end: counts, best options or Pareto front.

        Args:
            select: the metric by which the tables' options were chosen among all.
        """
        ends = Counter(option.told.state.name for option in self._tried if option.told)
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
        trials = [trial for study in self._studies.values() for trial in study.best_trials]
        if not trials:
            return
        if len(self.objective) > 1:
            yield "Pareto front of each paradigm: no suggestion is better in both."
        else:
            yield "best suggestion of each paradigm:"
        header = [f"{self.space.label(metric)} %" for metric in self.objective]
        yield "  ".join(["", *header, "schedule"])
        for trial in sorted(trials, key=lambda trial: trial.values, reverse=True):
            numbers = [
                f"{100 * value:<{len(name)}.1f}"
                for name, value in zip(header, trial.values, strict=True)
            ]
            yield "  ".join(["", *numbers, trial.user_attrs["schedule"]])

    # --- what was tried

    def _look(self) -> None:
        """Finds the options that were tried, or of which some cells are recorded."""
        for cell in self._recorded():
            with contextlib.suppress(RequestError):  # it lies outside of the space
                option = self._option(cell.paradigm, self.space.nearest(cell))
                if cell.id in option.ids:
                    self._options.setdefault(option.ids, option)
        if over := [each for each in self._options.values() if each.ids <= self._finished.keys()]:
            self._settle(over)

    def _recorded(self) -> Iterator[Cell]:
        """The cells of the results that this search could have trained."""
        rows = self.place.survey.cells
        compared = rows["comparison_id"].eq(self._comparison_id())
        rows = rows[compared & rows["seed"].isin(self.space.seeds)]
        if rows.empty:  # the directory may not be there yet
            return
        texts = self.place.results.cells(rows["cell_id"], ["cell_id", "cell"])["cell"]
        yield from (Cell.from_dict(json.loads(text)) for text in sorted(texts))

    def _comparison_id(self) -> str:
        """The comparison id of all cells of this search, whatever their schedule and seed."""
        for point in self.space.examples():
            with contextlib.suppress(RequestError):
                return self.make_cell(point).comparison_id
        raise RequestError("nothing to run in this search. Change the ranges with --set.")

    def _option(self, paradigm: str, searched: Mapping[str, float]) -> Option:
        points = [self.space.point(paradigm, searched, seed) for seed in self.space.seeds]
        return Option(tuple(map(self.make_cell, points)), searched)

    def _settle(self, options: Sequence[Option]) -> None:
        """Tells Optuna of options whose cells have all ended."""
        scores = self._last_scores({cell.id for option in options for cell in option.cells})
        for option in options:
            mine = scores[scores.index.isin(option.ids)]
            complete = len(mine) == len(option.ids)  # of what failed nothing is recorded
            stopped = mine[mine["status"] == "censored"]
            percent = 100
            if len(stopped):
                mine, percent = stopped, round(100 * stopped["budget_fraction"].max())
            means = [float(mine[metric].mean()) for metric in self.objective]
            is_known = complete and not np.isnan(means).any()  # perhaps no foreground is
            self._tell(option, means if is_known else (), percent)

    def _last_scores(self, ids: Iterable[str]) -> pd.DataFrame:
        """Status and last validation metrics of cells, by their ids; a diverged one guesses."""
        results = self.place.results
        rows = results.evaluations(ids, ["cell_id", "split", "budget_fraction", *OBJECTIVES])
        rows = rows[rows["split"] == "validation"].sort_values("budget_fraction")
        last = rows.drop_duplicates("cell_id", keep="last").set_index("cell_id")
        cells = results.cells(ids, ["cell_id", "status", "num_classes"])
        scores = cells.set_index("cell_id").join(last)
        diverged = scores["status"] == "diverged"
        guess = tasks.modality(self.space.fixed["task"]).guess(scores["num_classes"])
        for metric, guessed in guess.items():
            scores.loc[diverged, metric] = guessed
        return scores

    def _tell(self, option: Option, means: Sequence[float] = (), percent: int = 100) -> None:
        """Tells Optuna how an option ended.

        The sampler ranks what was stopped by how far it came, and by its value there.

        Args:
            option: that ended.
            means: over its seeds, of the metrics that are improved; none: it failed.
            percent: of the budget, at which it was stopped or was done.
        """
        trial = option.trial or self._ask(option.paradigm, option.searched)
        trial.set_user_attr("schedule", option.cells[0].schedule.text)
        if not means:
            option.told = trial.study.tell(trial, state=_state("FAIL"))
        elif percent < 100:
            trial.report(means[0], percent)
            option.told = trial.study.tell(trial, state=_state("PRUNED"))
        else:
            option.told = trial.study.tell(trial, means)

    # --- what comes next

    def _suggested(self) -> Option | None:
        """A new option that can run, of the paradigm with the fewest; None: all have enough."""
        counts = _counts(self._options.values())
        short = self._shares - counts
        if not short:
            return None
        paradigm = min(short, key=lambda name: counts[name])
        ranges = self.space.ranges(paradigm)
        for _ in range(MOST_REFUSED):
            trial = self._ask(paradigm)
            values = {axis: each.rounded(trial.params[axis]) for axis, each in ranges.items()}
            reason = "they were tried before"
            try:
                option = self._option(paradigm, values)
                if self._options.setdefault(option.ids, option) is option:
                    option.trial = trial
                    return option
            except RequestError as error:
                reason = str(error)
            trial.study.tell(trial, state=_state("FAIL"))
        raise RequestError(
            f"the last {MOST_REFUSED} suggestions of the search cannot run: {reason}. "
            "Change the ranges with --set."
        )

    def _ask(self, paradigm: str, known: Mapping[str, float] | None = None) -> optuna.Trial:
        """A trial of Optuna's study of a paradigm, of known values or of those it suggests."""
        with importing():
            import optuna

        if paradigm not in self._studies:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
            self._studies[paradigm] = optuna.create_study(
                directions=["maximize"] * len(self.objective)
            )
        study = self._studies[paradigm]
        number = len(study.get_trials(deepcopy=False))
        # Anew for each, so that what a killed run suggested is suggested, and goes on.
        seed = stream_seed("search", self.name, paradigm, number) % 2**32
        # The liar keeps new suggestions away from those still in training.
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        if known:
            study.enqueue_trial(dict(known))
        return study.ask(
            {
                axis: optuna.distributions.FloatDistribution(each.low, each.high, log=each.log)
                for axis, each in self.space.ranges(paradigm).items()
            }
        )


def _counts(options: Iterable[Option]) -> Counter[str]:
    """Paradigm -> how many of the options it has."""
    return Counter(option.paradigm for option in options)


def _state(name: str) -> optuna.trial.TrialState:
    from optuna.trial import TrialState

    return TrialState[name]
