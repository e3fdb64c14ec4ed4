"""Search beyond grids: Optuna suggests schedules, each trained over the same seeds.

A search varies paradigm, learning rates and switch point, between the least and the greatest value
that the study declares (or `--set` gives). All other axes have one value, so that all cells belong
to one comparison. Optuna is told the mean over seeds of a validation metric at the end of the
budget, read from the results. The Optuna study is kept in `optuna.db` in `Results.databases`, or
in a PostgreSQL database in which several drivers share it; optuna-dashboard opens either, and a
second run continues it. If it is lost, it is made anew from the results.

The paradigm is searched like a number, so a search spends more on a paradigm that does well. To
compare paradigms at equal effort, search each by itself (`--set paradigm=NAME`).
"""

from __future__ import annotations

import contextlib
import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search_spaces.base import By, Values
from study.cell import Cell
from study.cell.seeds import stream_seed
from study.errors import RequestError
from study.results import Results
from study.search.outcomes import Outcome, outcome_of
from study.search.record import Record, Suggested
from study.search.space import Space, in_order
from study.search.storage import GRACE_SECONDS, SearchStorage, shared_storage
from study.storage.databases import without_password
from study.storage.urls import sqlite_url
from study.terminal import counted

if TYPE_CHECKING:
    import optuna

DATABASE = "optuna.db"
MOST_REFUSED = 100
"""Suggestions in a row that cannot run and so end a search."""

# Attributes of an Optuna trial.
_POINT, _REASON, _RETRY_OF, _DRIVER = "point", "reason", "retry_of", "driver"


class _CannotRun(Exception):
    """A suggestion that cannot run, and why."""


@dataclass
class _Suggestion:
    """A suggestion in training.

    Attributes:
        number: of its Optuna trial.
        cells: one a seed.
        waiting: ids of the cells that have not ended.
        failed: whether a cell failed.
    """

    number: int
    cells: list[Cell]
    waiting: set[str]
    failed: bool = False


class Search:
    """Optuna's suggestions, each trained over the same seeds.

    It trains nothing: `more` gives the cells of the next suggestion, and `ended` takes how each of
    them ended. Only one process may search in a results directory at a time (`Results.lock`).

    Suggestion number k draws from its own seed, even after an interruption. Each is recorded in
    the results directory, too (`study.search.record`). If the database is lost, or lacks some of
    them, they are added to it under their numbers, with what the results hold of them. Suggested
    one by one, all that follow are then those of a search that lost nothing, except where one had
    failed or equalled an earlier one: of those the first is kept.

    Drivers that share a storage count together and take turns, so that nothing is suggested twice.
    Each trains its own suggestions in its own results directory. Those of one that died are taken
    over by the others, who train them from their start.

    Args:
        name: of the study. The Optuna study is named by it and by what makes suggestions
            comparable (settings, seeds, objective, paradigms), so another budget or objective is
            another Optuna study in the same database.
        results: the results directory, prepared.
        axes: as `study.plan.axes.resolve` gives them.
        make_cell: point (axis -> value) -> cell; RequestError or ValueError if it cannot run.
        objective: one or both of `OBJECTIVES`.
        num_samples: suggestions in total, over all runs and drivers of this search. One that
            failed in an earlier run is tried again and counts once.
        storage: URL of a PostgreSQL database that drivers share; None: `optuna.db`.

    Attributes:
        added: suggestions that the database lacked and the results held.
        elsewhere: cells of suggestions that other drivers have trained or train.

    Raises:
        RequestError: the space cannot be searched, none of its points can run, or the database
            is damaged or cannot be reached.
    """

    def __init__(
        self,
        *,
        name: str,
        results: Results,
        axes: Mapping[str, Values | By],
        make_cell: Callable[[Mapping[str, Any]], Cell],
        objective: Sequence[str],
        num_samples: int,
        storage: str | None = None,
    ) -> None:
        self._space = Space.of(axes)
        self._results = results
        self._make_cell = make_cell
        self._objective = in_order(objective)
        self._num_samples = num_samples
        self._name = name
        self._driver = results.origin()
        self._open_suggestions: dict[int, _Suggestion] = {}
        self._statuses: dict[str, str | None] = {}  # of the cells handed out, None before the end
        self._cells: dict[str, Cell] = {}
        self._again: set[int] = set()  # unfinished and failed suggestions of earlier runs
        self._refused: set[int] = set()  # those of them that cannot run any more
        self._count = self.added = self.elsewhere = 0
        comparison_id = self._comparison_id()
        if storage is None:
            path = results.databases() / DATABASE
            self._storage = SearchStorage(sqlite_url(path), str(path))
        else:
            self._storage = shared_storage(storage)
        title = self._title(comparison_id)
        self._record = Record(results.storage, title)
        self._study = self._storage.open(title, self._objective)
        self._storage.act(self._recall)
        self._storage.beat_for(lambda: [self._trial_id(number) for number in self._at_work()])

    @property
    def exhausted(self) -> bool:
        """Whether all suggestions are given, to this driver or to others."""
        return self._count >= self._num_samples

    @property
    def cells(self) -> list[Cell]:
        """The cells of every suggestion that counts so far, earlier runs included.

        Cells that another driver trains in its own directory are not among them.
        """
        return list(self._cells.values())

    def more(self) -> list[Cell]:
        """The cells of the next suggestion, one a seed, without cells handed out before.

        Suggestions that an earlier run left unfinished come first, then those that failed in it
        or that another driver left.
        The caller calls `ended` at once for cells that the results already hold.

        Returns:
            Empty if no suggestion is left.

        Raises:
            RequestError: `MOST_REFUSED` suggestions in a row cannot run; as for `Search`.
        """
        refused = 0
        while not self.exhausted:
            try:
                suggested = self._storage.act(self._next)
            except _CannotRun as error:
                refused += 1
                if refused == MOST_REFUSED:
                    raise RequestError(
                        f"the last {refused} suggestions of the search cannot run: {error}. "
                        "Change the ranges with --set."
                    ) from error
                continue
            if suggested and (new := self._take(*suggested)):
                return new
            self._storage.act(self._settle)
        return []

    def ended(self, cell_id: str, status: str) -> None:
        """Notes that a cell ended; tells Optuna if it was the last one of its suggestion.

        Args:
            cell_id: of a cell that `more` gave; a second call changes nothing.
            status: done, diverged or censored if the results hold the cell, else failed.

        Raises:
            ValueError: `more` did not give this cell.
            RequestError: the results are damaged; as for `Search`.
        """
        if cell_id not in self._statuses:
            raise ValueError(f"cell {cell_id} is of no suggestion")
        self._statuses[cell_id] = status
        for suggestion in self._open_suggestions.values():
            if cell_id in suggestion.waiting:
                suggestion.waiting.discard(cell_id)
                suggestion.failed |= status == "failed"
        if not all(suggestion.waiting for suggestion in self._open_suggestions.values()):
            self._storage.act(self._settle)

    def close(self) -> None:
        """Leaves what has not ended to the next run, and to other drivers."""
        self._storage.close()

    def summary(self, select: str = "accuracy") -> str:
        """The lines printed at the end: counts, best suggestion or Pareto front, dashboard.

        Args:
            select: the metric by which the tables' options were chosen among all suggestions.
        """
        return self._storage.act(lambda: self._summary(select))

    def _summary(self, select: str) -> str:
        trials = self._study.get_trials(deepcopy=False)
        lines = [_counts(trials)]
        if self._storage.shared:
            tried = _tried(trials)
            here = sum(trial.user_attrs.get(_DRIVER) == self._driver for trial in tried)
            lines = [
                f"the whole search, {counted(here, 'suggestion')} of it by this driver:",
                *lines,
            ]
            if any(trial.state.name == "RUNNING" for trial in tried):
                lines.append(
                    "unfinished: other drivers train them, or left them. The same command takes "
                    f"over what has been left for {GRACE_SECONDS} s."
                )
        if any(trial.state.name == "COMPLETE" for trial in trials):
            lines += self._best()
        if "saif" in self._objective:
            lines.append(
                f"The search improved {self._space.improved(self._objective)}; SAIF uses the "
                "hidden foreground. The tables show what validation "
                f"{self._space.label(select)} chose (--select)."
            )
        driver = "--with 'psycopg[binary]' " if self._storage.shared else ""
        url = shlex.quote(without_password(self._storage.url))
        return "\n".join([*lines, f"search: uvx {driver}optuna-dashboard {url}"])

    def _best(self) -> list[str]:
        rows = sorted(self._study.best_trials, key=lambda trial: [-v for v in trial.values])
        if len(self._objective) == 1:
            rows, head = rows[:1], "best suggestion:"
        else:
            head = "Pareto front: no suggestion is better in both."
        header = [f"{self._space.label(metric)} %" for metric in self._objective] + ["schedule"]
        table = [
            [f"{value * 100:.1f}" for value in trial.values] + [self._schedule(trial)]
            for trial in rows
        ]
        widths = [max(map(len, column)) for column in zip(header, *table, strict=True)]
        return [
            head,
            *("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in [header, *table]),
        ]

    def _schedule(self, trial: optuna.trial.FrozenTrial) -> str:
        return self._cells_of(trial.user_attrs[_POINT])[0].schedule.text

    # --- opening

    def _comparison_id(self) -> str:
        """The comparison id of all cells of this search, whatever their schedule and seed."""
        reasons = []
        for point in self._space.middles():
            try:
                return self._cells_of(point)[0].comparison_id
            except (RequestError, ValueError) as error:
                reasons.append(str(error))
        raise RequestError(f"nothing to run in this search: {'; '.join(dict.fromkeys(reasons))}")

    def _title(self, comparison_id: str) -> str:
        """The name of the Optuna study."""
        key = json.dumps([comparison_id, self._objective, self._space.key], sort_keys=True)
        digest = f"{stream_seed('search', self._name, key):016x}"[:8]
        return f"{self._name} {'+'.join(self._objective)} {comparison_id[:8]} {digest}"

    def _recall(self) -> None:
        """Finds the ended, unfinished and failed suggestions of earlier runs."""
        self._look()
        self._add()
        for trial in _tried(self._study.get_trials(deepcopy=False)):
            state = trial.state.name
            if state == "FAIL" or (state == "RUNNING" and self._is_mine(trial)):
                self._again.add(trial.number)
            if self._is_mine(trial):
                self._record.add(_suggested(trial))
                if state == "RUNNING":
                    self._storage.beat(self._trial_id(trial.number))
                if state in ("COMPLETE", "PRUNED"):
                    cells = self._cells_of(trial.user_attrs[_POINT])
                    self._cells |= {cell.id: cell for cell in cells}
        self._look()

    def _add(self) -> None:
        """Adds the recorded suggestions that the database lacks, and how they ended."""
        trials = self._study.get_trials(deepcopy=False)
        known = [trial.user_attrs[_POINT] for trial in trials if _POINT in trial.user_attrs]
        ids: dict[Suggested, list[str]] = {}
        for suggested in self._record.lacking(known):
            with contextlib.suppress(RequestError, ValueError):  # it cannot run any more
                ids[suggested] = [cell.id for cell in self._cells_of(suggested.point)]
        if not ids:
            return
        cells = self._results.cells({i for each in ids.values() for i in each})
        evaluations = self._results.evaluations(cells["cell_id"])
        count = len(trials)
        for suggested, own in ids.items():
            for _ in range(count, suggested.number):  # what never ran is not recorded
                self._study.add_trial(_trial("FAIL", {_REASON: "not recorded"}))
            mine = cells[cells["cell_id"].isin(own)]
            outcome: Outcome | str | None = None
            if len(mine) == len(own):
                rows = evaluations[evaluations["cell_id"].isin(own)]
                outcome = outcome_of(mine, rows, self._objective)
            self._study.add_trial(self._made_anew(suggested, outcome))
            count = max(count, suggested.number) + 1
            self.added += 1

    def _made_anew(
        self, suggested: Suggested, outcome: Outcome | str | None
    ) -> optuna.trial.FrozenTrial:
        """The trial of a recorded suggestion; without an outcome it is yet to be trained."""
        attributes: dict[str, Any] = {_POINT: suggested.point}
        if self._storage.shared:
            attributes[_DRIVER] = self._driver
        if isinstance(outcome, str):
            attributes[_REASON] = outcome
        of_optuna: dict[str, Any] = {
            "params": suggested.params,
            "distributions": suggested.distributions,
        }
        if not isinstance(outcome, Outcome):
            return _trial("FAIL" if outcome else "RUNNING", attributes, **of_optuna)
        if outcome.stopped_at:
            step, value = outcome.stopped_at
            of_optuna |= {"intermediate_values": {step: value}, "value": value}
            return _trial("PRUNED", attributes, **of_optuna)
        return _trial("COMPLETE", attributes, values=outcome.values, **of_optuna)

    def _is_mine(self, trial: optuna.trial.FrozenTrial) -> bool:
        return not self._storage.shared or trial.user_attrs.get(_DRIVER) == self._driver

    def _at_work(self) -> list[int]:
        """Numbers of the suggestions that this driver trains, or will take up."""
        return [*self._open_suggestions, *self._again]

    # --- one suggestion

    def _look(self) -> list[optuna.trial.FrozenTrial]:
        """Reads all trials: which suggestions count, and which of them are to be taken up."""
        self._storage.fail_stale(self._study)
        trials = self._study.get_trials(deepcopy=False)
        for trial in trials:
            if trial.state.name == "RUNNING" and _POINT not in trial.user_attrs:
                # Whoever suggested it has died: as long as one lives, no other looks.
                self._tell_failed(trial.number, "interrupted while it was suggested")
        tried = [trial for trial in _tried(trials) if trial.number not in self._refused]
        left = [t for t in tried if t.number in self._again or _was_left(t)]
        self._left = sorted(left, key=lambda t: (t.state.name != "RUNNING", t.number))
        self._count = len(tried) - len(left)
        others = [t for t in tried if not (self._is_mine(t) or _was_left(t))]
        self.elsewhere = len(others) * len(self._space.seeds)
        return trials

    def _next(self) -> tuple[int, list[Cell]] | None:
        """Number and cells of the next suggestion; None if there is none.

        Raises:
            _CannotRun: it cannot run; Optuna has been told.
        """
        trials = self._look()
        if self.exhausted:
            return None
        if not self._left:
            return self._ask(len(trials))
        trial = self._left[0]
        try:
            cells = self._cells_of(trial.user_attrs[_POINT])
        except (RequestError, ValueError) as error:
            if trial.state.name == "RUNNING":
                self._tell_failed(trial.number, str(error))
            self._again.discard(trial.number)
            self._refused.add(trial.number)
            raise _CannotRun(str(error)) from error
        number = trial.number if trial.state.name == "RUNNING" else self._repeat(trial)
        self._again.discard(trial.number)
        return number, cells

    def _ask(self, number: int) -> tuple[int, list[Cell]]:
        import optuna

        # A sampler a suggestion: one that is seeded once would repeat itself in the next run.
        self._study.sampler = optuna.samplers.TPESampler(
            seed=stream_seed("search", self._name, number) % 2**32,
            constant_liar=True,  # keeps new suggestions away from those still in training
        )
        trial = self._storage.ask(self._study)
        point = self._space.suggest(trial)
        try:
            cells = self._cells_of(point)
        except (RequestError, ValueError) as error:
            self._tell_failed(trial.number, str(error))
            raise _CannotRun(str(error)) from error
        self._begin(trial.number, point)
        return trial.number, cells

    def _repeat(self, failed: optuna.trial.FrozenTrial) -> int:
        """Repeats a suggestion that failed in an earlier run; returns the new number."""
        of_optuna = {"params": failed.params, "distributions": failed.distributions}
        self._study.add_trial(_trial("RUNNING", {_RETRY_OF: failed.number}, **of_optuna))
        number = self._study.get_trials(deepcopy=False)[-1].number
        self._begin(number, failed.user_attrs[_POINT])
        return number

    def _begin(self, number: int, point: Mapping[str, Any]) -> None:
        """Makes a trial a suggestion: from here on it is taken up again if this run is killed."""
        trial_id = self._trial_id(number)
        if self._storage.shared:
            self._storage.rdb.set_trial_user_attr(trial_id, _DRIVER, self._driver)
            self._storage.beat(trial_id)
        self._storage.rdb.set_trial_user_attr(trial_id, _POINT, point)
        self._record.add(_suggested(self._storage.rdb.get_trial(trial_id)))

    def _cells_of(self, point: Mapping[str, Any]) -> list[Cell]:
        return [
            self._make_cell({**self._space.fixed, **point, "seed": seed})
            for seed in self._space.seeds
        ]

    def _take(self, number: int, cells: list[Cell]) -> list[Cell]:
        """Counts a suggestion and returns its cells that have not been handed out.

        Two suggestions may round to the same cells, which then train once.
        """
        self._count += 1
        self._cells |= {cell.id: cell for cell in cells}
        new = [cell for cell in cells if cell.id not in self._statuses]
        self._statuses |= {cell.id: None for cell in new}
        statuses = {cell.id: self._statuses[cell.id] for cell in cells}
        waiting = {cell_id for cell_id, status in statuses.items() if status is None}
        failed = "failed" in statuses.values()
        self._open_suggestions[number] = _Suggestion(number, cells, waiting, failed)
        return new

    def _settle(self) -> None:
        """Tells Optuna of the suggestions all of whose cells have ended."""
        for suggestion in list(self._open_suggestions.values()):
            if not suggestion.waiting:
                self._tell(suggestion)
                del self._open_suggestions[suggestion.number]

    def _tell(self, suggestion: _Suggestion) -> None:
        import optuna

        trial_id = self._trial_id(suggestion.number)
        if self._storage.rdb.get_trial(trial_id).state.is_finished():
            return  # another driver took it over meanwhile, and tells of it
        if suggestion.failed:
            self._tell_failed(suggestion.number, "a cell failed")
            return
        ids = [cell.id for cell in suggestion.cells]
        cells, evaluations = self._results.cells(ids), self._results.evaluations(ids)
        outcome = outcome_of(cells, evaluations, self._objective)
        if isinstance(outcome, str):
            self._tell_failed(suggestion.number, outcome)
        elif outcome.stopped_at:
            # The sampler ranks pruned suggestions by this value.
            self._storage.rdb.set_trial_intermediate_value(trial_id, *outcome.stopped_at)
            self._study.tell(suggestion.number, state=optuna.trial.TrialState.PRUNED)
        else:
            self._study.tell(suggestion.number, outcome.values)

    def _tell_failed(self, number: int, reason: str) -> None:
        import optuna

        self._storage.rdb.set_trial_user_attr(self._trial_id(number), _REASON, reason)
        self._study.tell(number, state=optuna.trial.TrialState.FAIL)

    def _trial_id(self, number: int) -> int:
        rdb = self._storage.rdb
        study_id = rdb.get_study_id_from_name(self._study.study_name)
        return rdb.get_trial_id_from_study_id_trial_number(study_id, number)


def _trial(state: str, attributes: dict[str, Any], **of_optuna: Any) -> optuna.trial.FrozenTrial:
    import optuna

    made = optuna.trial.TrialState[state]
    return optuna.trial.create_trial(state=made, user_attrs=attributes, **of_optuna)


def _suggested(trial: optuna.trial.FrozenTrial) -> Suggested:
    return Suggested(trial.number, trial.user_attrs[_POINT], trial.params, trial.distributions)


def _tried(trials: Sequence[optuna.trial.FrozenTrial]) -> list[optuna.trial.FrozenTrial]:
    """The trials that are suggestions; of one that was tried again, the last."""
    suggestions = [trial for trial in trials if _POINT in trial.user_attrs]
    repeated = {trial.user_attrs.get(_RETRY_OF) for trial in suggestions}
    return [trial for trial in suggestions if trial.number not in repeated]


def _was_left(trial: optuna.trial.FrozenTrial) -> bool:
    """Whether a trial failed for no other reason than that its driver was silent."""
    return trial.state.name == "FAIL" and _REASON not in trial.user_attrs


def _counts(trials: Sequence[optuna.trial.FrozenTrial]) -> str:
    """``12 suggestions: 10 done, 1 pruned, 1 failed``, and how many were never trained."""
    tried = _tried(trials)
    states = Counter(trial.state.name for trial in tried)
    names = {
        "COMPLETE": "done",
        "PRUNED": "pruned",
        "FAIL": "failed",
        "RUNNING": "unfinished",
    }
    parts = [f"{states[state]} {name}" for state, name in names.items() if states[state]]
    refused = sum(_POINT not in trial.user_attrs for trial in trials)
    also = f"; {counted(refused, 'more was', 'more were')} never trained" if refused else ""
    return f"{counted(len(tried), 'suggestion')}: {', '.join(parts) or 'none'}{also}"
