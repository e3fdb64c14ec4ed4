"""Search beyond grids: Optuna suggests schedules, each trained over the same seeds.

A search varies paradigm, learning rates and switch point, between the least and the greatest value
that the study declares (or `--set` gives). All other axes have one value, so that all cells belong
to one comparison. Optuna is told the mean over seeds of a validation metric at the end of the
budget, read from the results. The Optuna study is kept in `optuna.db` in `Results.databases`;
optuna-dashboard opens it there, and a second run continues it.

The paradigm is searched like a number, so a search spends more on a paradigm that does well. To
compare paradigms at equal effort, search each by itself (`--set paradigm=NAME`).
"""

from __future__ import annotations

import contextlib
import json
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from search_spaces.base import By, Values
from study.cell import Cell
from study.cell.seeds import stream_seed
from study.errors import RequestError
from study.results import Results
from study.search.outcomes import last_before_censored, seed_means
from study.search.space import Space, in_order
from study.storage.urls import sqlite_url
from study.terminal.command import importing

if TYPE_CHECKING:
    import optuna

DATABASE = "optuna.db"
MOST_REFUSED = 100
"""Suggestions in a row that cannot run and so end a search."""

# Attributes of an Optuna trial.
_POINT, _REASON, _RETRY_OF = "point", "reason", "retry_of"


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

    Suggestion number k draws from its own seed, even after an interruption. If `optuna.db` is
    lost, the search starts anew; its first suggestions are random and so the same as before, and
    their cells are found in the results.

    Args:
        name: of the study. The Optuna study is named by it and by what makes suggestions
            comparable (settings, seeds, objective, paradigms), so another budget or objective is
            another Optuna study in the same file.
        results: the results directory, prepared.
        axes: as `study.plan.axes.resolve` gives them.
        make_cell: point (axis -> value) -> cell; RequestError or ValueError if it cannot run.
        objective: one or both of `OBJECTIVES`.
        num_samples: suggestions in total, over all runs of this search. One that failed in an
            earlier run is tried again and counts once.

    Raises:
        RequestError: the space cannot be searched, none of its points can run, or `optuna.db` is
            damaged.
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
    ) -> None:
        self._space = Space.of(axes)
        self._results = results
        self._make_cell = make_cell
        self._objective = in_order(objective)
        self._num_samples = num_samples
        self._name = name
        self._path = results.databases() / DATABASE
        self._url = sqlite_url(self._path)
        self._open_suggestions: dict[int, _Suggestion] = {}
        self._statuses: dict[str, str | None] = {}  # of the cells handed out, None before the end
        self._cells: dict[str, Cell] = {}
        comparison_id = self._comparison_id()
        with _readable(self._path):
            self._storage, self._study = self._open(comparison_id)
            self._recall()

    @property
    def exhausted(self) -> bool:
        """Whether `more` has given all suggestions."""
        return self._count >= self._num_samples

    @property
    def cells(self) -> list[Cell]:
        """The cells of every suggestion that counts so far, earlier runs included."""
        return list(self._cells.values())

    def more(self) -> list[Cell]:
        """The cells of the next suggestion, one a seed, without cells handed out before.

        Suggestions that an earlier run left unfinished come first, then those that failed in it.
        The caller calls `ended` at once for cells that the results already hold.

        Returns:
            Empty if no suggestion is left.

        Raises:
            RequestError: `MOST_REFUSED` suggestions in a row cannot run; `optuna.db` is damaged.
        """
        refused = 0
        with _readable(self._path):
            while not self.exhausted:
                try:
                    number, cells = self._next()
                except (RequestError, ValueError) as error:
                    refused += 1
                    if refused == MOST_REFUSED:
                        raise RequestError(
                            f"the last {refused} suggestions of the search cannot run: {error}. "
                            "Change the ranges with --set."
                        ) from error
                    continue
                new = self._take(number, cells)
                if new:
                    return new
        return []

    def ended(self, cell_id: str, status: str) -> None:
        """Notes that a cell ended; tells Optuna if it was the last one of its suggestion.

        Args:
            cell_id: of a cell that `more` gave; a second call changes nothing.
            status: done, diverged or censored if the results hold the cell, else failed.

        Raises:
            ValueError: `more` did not give this cell.
            RequestError: results or `optuna.db` are damaged.
        """
        if cell_id not in self._statuses:
            raise ValueError(f"cell {cell_id} is of no suggestion")
        self._statuses[cell_id] = status
        with _readable(self._path):
            for suggestion in list(self._open_suggestions.values()):
                if cell_id in suggestion.waiting:
                    suggestion.waiting.discard(cell_id)
                    suggestion.failed |= status == "failed"
                    self._settle(suggestion)

    def summary(self, select: str = "accuracy") -> str:
        """The lines printed at the end: counts, best suggestion or Pareto front, dashboard.

        Args:
            select: the metric by which the tables' options were chosen among all suggestions.
        """
        with _readable(self._path):
            trials = self._study.get_trials(deepcopy=False)
            lines = [_counts(trials)]
            if any(trial.state.name == "COMPLETE" for trial in trials):
                lines += self._best()
        if "saif" in self._objective:
            lines.append(
                f"The search improved {self._space.improved(self._objective)}; SAIF uses the "
                "hidden foreground. The tables show what validation "
                f"{self._space.label(select)} chose (--select)."
            )
        return "\n".join([*lines, f"search: uvx optuna-dashboard {shlex.quote(self._url)}"])

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

    def _open(self, comparison_id: str) -> tuple[optuna.storages.RDBStorage, optuna.Study]:
        with importing():
            import optuna
            from sqlalchemy.pool import NullPool

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        key = json.dumps([comparison_id, self._objective, self._space.key], sort_keys=True)
        digest = f"{stream_seed('search', self._name, key):016x}"[:8]
        title = f"{self._name} {'+'.join(self._objective)} {comparison_id[:8]} {digest}"
        # A dashboard may hold the database for a moment; no connection stays open in between.
        engine = {"poolclass": NullPool, "connect_args": {"timeout": 60}}
        template = self._url.replace("{", "{{").replace("}", "}}")  # Optuna formats it
        storage = optuna.storages.RDBStorage(template, engine_kwargs=engine)
        study = optuna.create_study(
            storage=storage,
            study_name=title,
            directions=["maximize"] * len(self._objective),
            load_if_exists=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names([f"validation {metric}" for metric in self._objective])
        return storage, study

    def _recall(self) -> None:
        """Finds the ended, unfinished and failed suggestions of earlier runs."""
        trials = self._study.get_trials(deepcopy=True)
        ended = [trial for trial in trials if trial.state.name in ("COMPLETE", "PRUNED")]
        running = [trial for trial in trials if trial.state.name == "RUNNING"]
        retried = {trial.user_attrs.get(_RETRY_OF) for trial in trials}
        self._count = len(ended)
        self._left = [trial for trial in running if _POINT in trial.user_attrs]
        self._failed = [
            trial
            for trial in trials
            if trial.state.name == "FAIL"
            and _POINT in trial.user_attrs
            and trial.number not in retried
        ]
        for trial in ended:
            cells = self._cells_of(trial.user_attrs[_POINT])
            self._cells |= {cell.id: cell for cell in cells}
        for trial in running:
            if _POINT not in trial.user_attrs:  # it never became a cell
                self._tell_failed(trial.number, "interrupted while it was suggested")

    # --- one suggestion

    def _next(self) -> tuple[int, list[Cell]]:
        """Number and cells of the next suggestion.

        Raises:
            RequestError, ValueError: it cannot run; Optuna has been told.
        """
        if self._left:
            trial = self._left.pop(0)
            return trial.number, self._cells_or_fail(trial.number, trial.user_attrs[_POINT])
        if self._failed:
            trial = self._failed.pop(0)
            number = self._repeat(trial)
            return number, self._cells_or_fail(number, trial.user_attrs[_POINT])
        return self._ask()

    def _ask(self) -> tuple[int, list[Cell]]:
        import optuna

        number = len(self._study.get_trials(deepcopy=False))
        # A sampler a suggestion: one that is seeded once would repeat itself in the next run.
        self._study.sampler = optuna.samplers.TPESampler(
            seed=stream_seed("search", self._name, number) % 2**32,
            constant_liar=True,  # keeps new suggestions away from those still in training
        )
        trial = self._study.ask()
        point = self._space.suggest(trial)
        cells = self._cells_or_fail(trial.number, point)
        # From here on the next run takes the suggestion up again if this one is killed.
        trial.set_user_attr(_POINT, point)
        return trial.number, cells

    def _repeat(self, failed: optuna.trial.FrozenTrial) -> int:
        """Repeats a suggestion that failed in an earlier run; returns the new number.

        It is recorded in one transaction. `enqueue_trial` and `ask` take several, and a run killed
        between them would leave half a suggestion, which no later run could take up.
        """
        import optuna

        self._study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params=failed.params,
                distributions=failed.distributions,
                user_attrs={_POINT: failed.user_attrs[_POINT], _RETRY_OF: failed.number},
            )
        )
        return self._study.get_trials(deepcopy=False)[-1].number

    def _cells_of(self, point: Mapping[str, Any]) -> list[Cell]:
        return [
            self._make_cell({**self._space.fixed, **point, "seed": seed})
            for seed in self._space.seeds
        ]

    def _cells_or_fail(self, number: int, point: Mapping[str, Any]) -> list[Cell]:
        try:
            return self._cells_of(point)
        except (RequestError, ValueError) as error:
            self._tell_failed(number, str(error))
            raise

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
        suggestion = _Suggestion(number, cells, waiting, failed)
        self._open_suggestions[number] = suggestion
        self._settle(suggestion)
        return new

    def _settle(self, suggestion: _Suggestion) -> None:
        """Tells Optuna of a suggestion once all its cells have ended."""
        import optuna

        if suggestion.waiting:
            return
        del self._open_suggestions[suggestion.number]
        if suggestion.failed:
            self._tell_failed(suggestion.number, "a cell failed")
            return
        ids = [cell.id for cell in suggestion.cells]
        cells, evaluations = self._results.cells(ids), self._results.evaluations(ids)
        if not (cells["status"] == "censored").any():
            values = seed_means(cells, evaluations, self._objective)
            if np.isfinite(values).all():
                self._study.tell(suggestion.number, values)
            else:
                self._tell_failed(suggestion.number, "a metric has no value")
        elif len(self._objective) == 1:
            step, value = last_before_censored(cells, evaluations, self._objective[0])
            # The sampler ranks pruned suggestions by this value.
            trial_id = self._trial_id(suggestion.number)
            self._storage.set_trial_intermediate_value(trial_id, step, value)
            self._study.tell(suggestion.number, state=optuna.trial.TrialState.PRUNED)
        else:
            self._tell_failed(suggestion.number, "stopped early, with two objectives")

    def _tell_failed(self, number: int, reason: str) -> None:
        import optuna

        self._storage.set_trial_user_attr(self._trial_id(number), _REASON, reason)
        self._study.tell(number, state=optuna.trial.TrialState.FAIL)

    def _trial_id(self, number: int) -> int:
        study_id = self._storage.get_study_id_from_name(self._study.study_name)
        return self._storage.get_trial_id_from_study_id_trial_number(study_id, number)


def _counts(trials: Sequence[optuna.trial.FrozenTrial]) -> str:
    """``12 suggestions: 10 done, 1 pruned, 1 failed``, and how many were never trained."""
    retried = {trial.user_attrs.get(_RETRY_OF) for trial in trials}
    tried = [t for t in trials if _POINT in t.user_attrs and t.number not in retried]
    states = Counter(trial.state.name for trial in tried)
    names = {
        "COMPLETE": "done",
        "PRUNED": "pruned",
        "FAIL": "failed",
        "RUNNING": "unfinished",
    }
    parts = [f"{states[state]} {name}" for state, name in names.items() if states[state]]
    refused = sum(_POINT not in trial.user_attrs for trial in trials)
    also = f"; {refused} more were never trained" if refused else ""
    return f"{len(tried)} suggestions: {', '.join(parts) or 'none'}{also}"


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns errors of the database into a RequestError that says what to do."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        cause = error.__cause__ or error
        first = str(cause).splitlines()[0]
        raise RequestError(
            f"cannot use the search's database {path} ({first}). If it is damaged, move it away: "
            "the search then starts anew, and finished cells stay."
        ) from error
