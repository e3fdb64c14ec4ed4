"""Search beyond grids: Optuna suggests options, each trained over the same seeds.

A search varies learning rates and switch point of each paradigm, between the least and the
greatest value that the study declares (or `--set` gives). All other axes have one value, so that
all cells belong to one comparison. Each paradigm has an Optuna of its own, which is told the mean
over seeds of a validation metric at the end of the budget, and gets as many suggestions. What was
tried is read from the results, whichever command trained it. An option whose cells are in training
has a file `search/<hash>.json`, so that a killed run loses none: the next one begins with those.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from study import tasks
from study.cell import Cell
from study.cell.seeds import stream_seed
from study.cell.work import CONFIRM, Job
from study.errors import RequestError
from study.request import OBJECTIVES
from study.results import Results, Survey
from study.search.space import Space
from study.terminal import counted
from study.terminal.command import importing

if TYPE_CHECKING:
    import optuna

FOLDER = "search"
MOST_REFUSED = 100
"""Suggestions in a row that cannot run and so end a search."""

NAMES = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed"}
"""How a suggestion ended, by Optuna's name of the state."""


@dataclass
class Option:
    """What was suggested, or trained by other means, within the space of a search.

    Attributes:
        cells: one a seed.
        point: searched axis -> value.
        state: Optuna's, see `NAMES`; empty: it is in training, or left to train.
        values: means over its seeds of the metrics that are improved; of one that was stopped the
            metric where it was.
        percent: how far it came in its budget.
        trial: Optuna's, of its own suggestion in this run.
    """

    cells: tuple[Cell, ...]
    point: Mapping[str, float]
    state: str = ""
    values: tuple[float, ...] = ()
    percent: int = 100
    trial: optuna.Trial | None = None

    @property
    def paradigm(self) -> str:
        return self.cells[0].paradigm


class Search:
    """The options of a search: those that were tried, and Optuna's next ones.

    Args:
        name: of the study.
        results: its directory.
        space: what is searched.
        make_cell: point (axis -> value) -> cell; RequestError or ValueError if it cannot run.
        objective: one or both of `OBJECTIVES`, in their order.
        num_samples: options a paradigm, over all runs of this search.
    """

    def __init__(
        self,
        *,
        name: str,
        results: Results,
        space: Space,
        make_cell: Callable[[Mapping[str, Any]], Cell],
        objective: Sequence[str],
        num_samples: int,
    ) -> None:
        self.space = space
        self._name = name
        self._results = results
        self._make_cell = make_cell
        self._objective = objective
        self._shares = space.shares(num_samples)
        self._statuses: Mapping[str, str] = {}
        self._options: dict[str, Option] = {}
        self._studies: dict[str, optuna.Study] = {}
        self._running: dict[str, Option] = {}

    @property
    def cells(self) -> list[Cell]:
        """The cells of every option that was tried to its end."""
        return [cell for option in self._options.values() if option.state for cell in option.cells]

    @property
    def left(self) -> int:
        """How many options are still to be suggested, or to be trained to their end."""
        tried = Counter(option.paradigm for option in self._options.values() if option.state)
        return sum(max(0, count - tried[name]) for name, count in self._shares.items())

    def look(self, survey: Survey, finished: Mapping[str, str]) -> None:
        """Finds the options that were tried or are left in training.

        Args:
            survey: of the results directory.
            finished: cell id -> status of the cells that need no run.

        Raises:
            RequestError: none of the space's points can run.
        """
        self._statuses = finished
        self._options, self._studies, self._running = {}, {}, {}
        begun = [*self._in_training()]
        for cell in [*self._recorded(survey), *begun]:
            self._know(cell)
        self._settle(self._options.values())
        ids = {cell.id for cell in begun}
        self._options = {  # of a grid on other seeds some cells may be there, too
            key: option
            for key, option in self._options.items()
            if option.state or ids & {cell.id for cell in option.cells}
        }

    def next(self, trial_id: str) -> Job | None:
        """What a trial is to train; None: nothing is left.

        Raises:
            RequestError: `MOST_REFUSED` suggestions in a row cannot run, or none can be recorded.
        """
        running = {id(option) for option in self._running.values()}
        options = (o for o in self._options.values() if not o.state and id(o) not in running)
        option = next(options, None)
        if option is None and (paradigm := self._whose_turn()):
            option = self._suggested(paradigm)
        if option is None:
            return None
        self._running[trial_id] = option
        missing = tuple(cell for cell in option.cells if cell.id not in self._statuses)
        self._results.storage.make(FOLDER)
        for cell in missing:
            self._results.storage.write(_file(cell), json.dumps(cell.to_dict()).encode())
        return Job((missing,), watched=True)

    def ended(
        self, trial_id: str, statuses: Mapping[str, str], last: Mapping[str, Any] | None = None
    ) -> None:
        """Tells Optuna how the option of a trial ended.

        Args:
            trial_id: given to `next`.
            statuses: cell id -> how it ended.
            last: the last evaluation of an option without statuses, which a scheduler stopped:
                budget_percent, accuracy and saif. Empty: it failed.
        """
        option = self._running.pop(trial_id)
        ids = {cell.id for cell in option.cells}
        self._statuses = {**self._statuses, **{i: statuses[i] for i in ids & statuses.keys()}}
        if ids <= self._statuses.keys():
            self._settle([option])
            return
        option.state = "FAIL"
        if last and last.get("budget_percent"):
            option.state, option.percent = "PRUNED", round(last["budget_percent"])
            option.values = tuple(last[metric] for metric in self._objective)
        self._tell(option)

    def sweep(self) -> None:
        """Removes what tells the next run of options in training, of those that have ended."""
        for option in self._options.values():
            for cell in option.cells if option.state else ():
                self._results.storage.remove(_file(cell))

    def summary(self, select: str = "accuracy") -> str:
        """The lines printed at the end: counts, best options or Pareto front.

        Args:
            select: the metric by which the tables' options were chosen among all.
        """
        ends = Counter(option.state for option in self._options.values() if option.state)
        ended = ", ".join(f"{ends[end]} {name}" for end, name in NAMES.items() if ends[end])
        lines = [f"{counted(sum(ends.values()), 'suggestion')}: {ended}", *self._best()]
        if "saif" in self._objective:
            lines.append(
                f"The search improved {self.space.improved(self._objective)}; SAIF uses the "
                "hidden foreground. The tables show what validation "
                f"{self.space.label(select)} chose (--select)."
            )
        return "\n".join(lines)

    def _best(self) -> Iterator[str]:
        done = [option for option in self._options.values() if option.state == "COMPLETE"]
        done.sort(key=lambda option: option.values, reverse=True)
        best = [option for option in done if not any(_is_better(o, option) for o in done)]
        if not done:
            return
        if len(self._objective) > 1:
            yield "Pareto front of each paradigm: no suggestion is better in both."
        else:
            yield "best suggestion of each paradigm:"
        header = [f"{self.space.label(metric)} %" for metric in self._objective] + ["schedule"]
        table = [
            [f"{value * 100:.1f}" for value in option.values] + [option.cells[0].schedule.text]
            for option in best
        ]
        widths = [max(map(len, column)) for column in zip(header, *table, strict=True)]
        for row in [header, *table]:
            yield "  " + "  ".join(map(str.ljust, row, widths)).rstrip()

    # --- what was tried

    def _recorded(self, survey: Survey) -> Iterator[Cell]:
        """The cells of the results that lie in the space, on its seeds."""
        rows = survey.cells
        rows = rows[rows["comparison_id"] == self._comparison_id()]
        rows = rows[rows["stage"].ne(CONFIRM) & rows["seed"].isin(self.space.seeds)]
        if rows.empty:  # the directory may not be there yet
            return
        texts = self._results.cells(rows["cell_id"], ["cell_id", "cell"])["cell"]
        yield from (Cell.from_dict(json.loads(text)) for text in sorted(texts))

    def _in_training(self) -> Iterator[Cell]:
        """The cells of options that an earlier run began to train."""
        for name in self._results.storage.names(FOLDER):
            try:
                yield Cell.from_dict(json.loads(self._results.storage.read(name)))
            except (FileNotFoundError, ValueError, TypeError, KeyError):
                continue  # another version's: its option is suggested anew

    def _know(self, cell: Cell) -> None:
        """Notes the option of a cell, if it lies in the space."""
        point = self.space.point_of(cell)
        if point is None:
            return
        try:
            cells = self._cells_of(cell.paradigm, point)
        except (RequestError, ValueError):
            return
        if cell.id in {each.id for each in cells}:
            self._options.setdefault(cell.hash_without("seed"), Option(tuple(cells), point))

    def _comparison_id(self) -> str:
        """The comparison id of all cells of this search, whatever their schedule and seed."""
        reasons = []
        for paradigm, point in self.space.middles().items():
            try:
                return self._cells_of(paradigm, point)[0].comparison_id
            except (RequestError, ValueError) as error:
                reasons.append(str(error))
        raise RequestError(f"nothing to run in this search: {'; '.join(dict.fromkeys(reasons))}")

    def _cells_of(self, paradigm: str, point: Mapping[str, Any]) -> list[Cell]:
        return [self._make_cell(full) for full in self.space.full(paradigm, point)]

    def _settle(self, options: Iterable[Option]) -> None:
        """Finds how options ended whose cells have all ended, and tells Optuna."""
        over = [
            option
            for option in options
            if not option.state and all(cell.id in self._statuses for cell in option.cells)
        ]
        if not over:
            return
        ids = {cell.id for option in over for cell in option.cells}
        scores = last_scores(self._results.cells(ids), self._results.evaluations(ids))
        for option in over:
            mine = [cell.id for cell in option.cells]
            self._end(option, scores[scores.index.isin(mine)], {self._statuses[i] for i in mine})
            self._tell(option)

    def _end(self, option: Option, scores: pd.DataFrame, statuses: set[str]) -> None:
        if "censored" in statuses:
            censored = scores[scores["status"] == "censored"]
            fraction = censored["budget_fraction"].max()
            scores = censored[censored["budget_fraction"] == fraction]
            option.percent = round(100 * fraction)
        option.values = tuple(float(scores[metric].mean()) for metric in self._objective)
        option.state = "PRUNED" if "censored" in statuses else "COMPLETE"
        if "failed" in statuses or np.isnan(option.values).any():  # no foreground is known
            option.state = "FAIL"

    def _tell(self, option: Option) -> None:
        """The sampler ranks what was pruned by how far it came, and by its value there."""
        import optuna

        study = self._study_of(option.paradigm)
        if study is None:
            return
        state = optuna.trial.TrialState[option.state]
        values = option.values if option.state == "COMPLETE" else None
        at = {option.percent: option.values[0]} if option.state == "PRUNED" else {}
        if option.trial is None:
            told = optuna.trial.create_trial(
                state=state,
                values=values,
                params=dict(option.point),
                distributions=self.space.ranges(option.paradigm),
                intermediate_values=at,
            )
            study.add_trial(told)
            return
        for percent, value in at.items():
            option.trial.report(value, percent)
        study.tell(option.trial, values, state)

    # --- what comes next

    def _whose_turn(self) -> str | None:
        """Of the paradigms that have not had their share the one with the fewest options."""
        tried = Counter(option.paradigm for option in self._options.values())
        left = [name for name, share in self._shares.items() if tried[name] < share]
        return min(left, key=lambda name: tried[name], default=None)

    def _suggested(self, paradigm: str) -> Option:
        """A new option of a paradigm that can run."""
        study = self._study_of(paradigm)
        for _ in range(MOST_REFUSED):
            trial = study.ask(self.space.ranges(paradigm)) if study else None
            point = self.space.rounded(paradigm, trial.params if trial else {})
            try:
                option = Option(tuple(self._cells_of(paradigm, point)), point, trial=trial)
            except (RequestError, ValueError) as error:
                reason = str(error)
            else:
                key = option.cells[0].hash_without("seed")
                if self._options.setdefault(key, option) is option:
                    return option
                reason = "they were tried before"
            if study and trial:
                study.tell(trial, state=_fail())
        raise RequestError(
            f"the last {MOST_REFUSED} suggestions of the search cannot run: {reason}. "
            "Change the ranges with --set."
        )

    def _study_of(self, paradigm: str) -> optuna.Study | None:
        """Optuna's study of a paradigm; None: it has nothing to search."""
        if paradigm not in self._studies and self.space.ranges(paradigm):
            with importing():
                import optuna

            optuna.logging.set_verbosity(optuna.logging.WARNING)
            # One that is seeded alike in each run would repeat itself.
            tried = sum(option.paradigm == paradigm for option in self._options.values())
            seed = stream_seed("search", self._name, paradigm, tried) % 2**32
            self._studies[paradigm] = optuna.create_study(
                directions=["maximize"] * len(self._objective),
                # The liar keeps new suggestions away from those still in training.
                sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True),
            )
        return self._studies.get(paradigm)


def _fail() -> Any:
    from optuna.trial import TrialState

    return TrialState.FAIL


def _file(cell: Cell) -> str:
    return f"{FOLDER}/{cell.id}.json"


def _is_better(one: Option, other: Option) -> bool:
    """Whether one is at least as good in all, and better in some, within a paradigm."""
    pairs = zip(one.values, other.values, strict=True)
    return (
        one.paradigm == other.paradigm
        and one.values != other.values
        and all(a >= b for a, b in pairs)
    )


def last_scores(cells: pd.DataFrame, evaluations: pd.DataFrame) -> pd.DataFrame:
    """The validation metrics of each cell at its last evaluation, and the budget spent there.

    Args:
        cells: as `Results.cells` gives them.
        evaluations: as `Results.evaluations` gives them.

    Returns:
        One row a cell; of a diverged one with SAIF 0 and accuracy 1/C, or Bleu 0.
    """
    rows = evaluations[evaluations["split"] == "validation"].sort_values("budget_fraction")
    last = rows.drop_duplicates("cell_id", keep="last").set_index("cell_id")
    scores = cells.set_index("cell_id")[["task", "status", "num_classes"]]
    scores = scores.join(last[["budget_fraction", *OBJECTIVES]])
    diverged = scores["status"] == "diverged"
    scores.loc[diverged, "saif"] = 0.0
    guess = scores["task"].map(lambda task: tasks.modality(task).chance) / scores["num_classes"]
    scores.loc[diverged, "accuracy"] = guess
    return scores
