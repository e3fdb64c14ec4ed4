"""Search beyond grids: Optuna suggests schedules, each trained over the same seeds.

What is searched is paradigm, learning rates and switch point, between the least and the greatest
value that the study declares (or `--set` gives); all else has one value, so that every cell is of
one comparison. Optuna hears the mean over seeds of a validation metric at the end of the budget,
as the results hold it. The Optuna study lies in `optuna.db` in `Results.databases`, where
optuna-dashboard opens it and a second run continues it.

The paradigm is searched like a number, so a search spends more on a paradigm that does well: to
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
from study.search.space import LABELS, Space, improved, in_order
from study.storage.urls import sqlite_url
from study.terminal.command import importing

if TYPE_CHECKING:
    import optuna

DATABASE = "optuna.db"
MOST_REFUSED = 100
"""So many suggestions in a row that cannot run end a search."""

# Names of what is stored with an Optuna trial.
_POINT, _REASON, _RETRY_OF = "point", "reason", "retry_of"


@dataclass
class _Suggestion:
    """One that is being trained.

    Attributes:
        number: of its Optuna trial.
        cells: one a seed.
        waiting: ids of the cells that have not ended.
        failed: whether one of them failed.
    """

    number: int
    cells: list[Cell]
    waiting: set[str]
    failed: bool = False


class Search:
    """Optuna's suggestions, each trained over the same seeds.

    Which cell is trained where is not its business: `more` gives the cells of one further
    suggestion, and `ended` hears how each of them ended. Only one process may search in a results
    directory at a time (`Results.lock`).

    Suggestion number k draws from a seed of its own, wherever a search was interrupted. If
    `optuna.db` is lost the search starts anew; its first suggestions, which are random ones, are
    then the same as before, so their cells are found in the results.

    Args:
        name: of the study; with what makes suggestions comparable (settings, seeds, objective,
            paradigms) it names the Optuna study, so another budget or objective is another one in
            the same file.
        results: the results directory, prepared.
        axes: as `study.plan.axes.resolve` gives them.
        make_cell: point (axis -> value) -> cell; RequestError or ValueError where it cannot run.
        objective: one or both of `OBJECTIVES`.
        num_samples: suggestions in total, over all runs of this search; one that failed in an
            earlier run is tried again in its own place.

    Raises:
        RequestError: a space that cannot be searched, no point of it can run, or `optuna.db` is
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
        """Whether all suggestions have been asked for: `more` has nothing further to give."""
        return self._count >= self._num_samples

    @property
    def cells(self) -> list[Cell]:
        """Of every suggestion so far that counts, of earlier runs, too."""
        return list(self._cells.values())

    def more(self) -> list[Cell]:
        """The cells of one further suggestion, one a seed, without those handed out before.

        What an earlier run left unfinished comes first, then what failed in it. The caller tells
        of cells that the results hold already with `ended`, at once.

        Returns:
            Empty when no suggestion is left to ask for.

        Raises:
            RequestError: none of many suggestions in a row can run, or `optuna.db` is damaged.
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
        """Hears that a cell ended; tells Optuna when it was the last one of a suggestion.

        Args:
            cell_id: of a cell that `more` gave; hearing of it again changes nothing.
            status: done, diverged or censored: it is recorded in the results; failed: it is not.

        Raises:
            ValueError: the cell is none that `more` gave.
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
        """For print at the end: the best suggestion or the Pareto front, counts, how to look.

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
                f"The search improved {improved(self._objective)}; SAIF uses the hidden "
                f"foreground. The tables show what validation {LABELS[select]} chose (--select)."
            )
        return "\n".join([*lines, f"search: uvx optuna-dashboard {shlex.quote(self._url)}"])

    def _best(self) -> list[str]:
        rows = sorted(self._study.best_trials, key=lambda trial: [-v for v in trial.values])
        if len(self._objective) == 1:
            rows, head = rows[:1], "best suggestion:"
        else:
            head = "Pareto front: no suggestion is better in both."
        header = [f"{metric} %" for metric in self._objective] + ["schedule"]
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
        """Of the cells of this search; it depends neither on the schedule nor on the seed."""
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
        """Finds what earlier runs did, left unfinished and failed at."""
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
            RequestError: it cannot run; Optuna has been told.
            ValueError: the same.
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
            constant_liar=True,  # suggestions that are still in training keep others away
        )
        trial = self._study.ask()
        point = self._space.suggest(trial)
        cells = self._cells_or_fail(trial.number, point)
        # From here on a killed search takes the suggestion up again.
        trial.set_user_attr(_POINT, point)
        return trial.number, cells

    def _repeat(self, failed: optuna.trial.FrozenTrial) -> int:
        """A suggestion like one that failed in an earlier run; its number.

        It is recorded in one transaction. `enqueue_trial` and `ask` need one for the waiting
        trial, one to start it and one a parameter: a run that is killed in between leaves half a
        suggestion, which no later run could take up.
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
        """Counts a suggestion; its cells that have not been handed out.

        Two suggestions may round to the same cells, which are then trained once.
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
        """Tells Optuna of a suggestion of which all cells have ended."""
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
            # What it had reached before it was stopped; the sampler ranks by it.
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
    """``12 suggestions: 10 done, 1 pruned, 1 failed``, and how many never became cells."""
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
    """Says on one line what to do about a database that cannot be used."""
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
