"""Search beyond grids: Optuna suggests schedules, each trained over the same seeds.

A search varies paradigm, learning rates and switch point, between the least and the greatest value
that the study declares (or `--set` gives). All other axes have one value, so that all cells belong
to one comparison. Optuna is told the mean over seeds of a validation metric at the end of the
budget, read from the results. It keeps nothing: a second run tells it anew what it suggested,
which a file in the results directory holds, and how that ended.

The paradigm is searched like a number, so a search spends more on a paradigm that does well. To
compare paradigms at equal effort, search each by itself (`--set paradigm=NAME`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from search_spaces.base import By, Values
from study import tasks
from study.cell import Cell
from study.cell.seeds import stream_seed
from study.errors import RequestError, ResultsError
from study.request import OBJECTIVES
from study.results import Results
from study.search.space import Space
from study.terminal import counted
from study.terminal.command import importing

if TYPE_CHECKING:
    import optuna
    from optuna.trial import TrialState

FOLDER = "search"
MOST_REFUSED = 100
"""Suggestions in a row that cannot run and so end a search."""


@dataclass
class _Suggestion:
    """What Optuna suggested: cells, one a seed, and what it was told of them, if anything yet."""

    trial: optuna.Trial
    cells: list[Cell]
    told: TrialState | None = None

    @property
    def ids(self) -> set[str]:
        return {cell.id for cell in self.cells}


class Search:
    """Optuna's suggestions, each trained over the same seeds.

    It trains nothing: `more` gives cells to train, and `ended` takes how each of them ended.

    Suggestion number k draws from its own seed, even after an interruption. It is recorded before
    its cells are given, so a killed run loses none: the next one begins with those whose cells are
    not all recorded. Suggested one by one, all that follow are those of a run without a kill.

    Args:
        name: of the study. A search is known by it and by what makes suggestions comparable
            (settings, seeds, objective, paradigms), so another budget or objective is another
            search in the same results directory.
        results: the results directory, prepared and locked.
        axes: as `study.plan.axes.resolve` gives them.
        make_cell: point (axis -> value) -> cell; RequestError or ValueError if it cannot run.
        objective: one or both of `OBJECTIVES`, in their order.
        num_samples: suggestions in total, over all runs of this search.
        finished: cell id -> status of the cells that need no run, whoever trained them.
        announce: told of each suggestion which cells will run, how many more were done before, and
            how many an earlier suggestion has.

    Raises:
        RequestError: the space cannot be searched, none of its points can run, or the file of
            earlier suggestions is damaged.
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
        finished: Mapping[str, str],
        announce: Callable[[list[Cell], int, int], object],
    ) -> None:
        with importing():
            import optuna

        self._name = name
        self._results = results
        self._space = Space.of(axes)
        self._make_cell = make_cell
        self._objective = objective
        self._num_samples = num_samples
        self._statuses = dict(finished)
        self._announce = announce
        self._given: list[_Suggestion] = []
        self._left: list[_Suggestion] = []
        self._cells: dict[str, Cell] = {}
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(directions=["maximize"] * len(self._objective))
        self._file = f"{FOLDER}/{self._title()}.json"
        results.storage.make(FOLDER)
        self._recorded = self._read()
        could_run = [each for each in self._recorded if "point" in each]
        for suggestion in map(self._recalled, could_run):
            if suggestion.ids <= self._statuses.keys():
                self._give(suggestion)
            else:
                self._left.append(suggestion)
        self._settle()

    @property
    def exhausted(self) -> bool:
        """Whether all suggestions are given."""
        return len(self._given) >= self._num_samples

    @property
    def cells(self) -> list[Cell]:
        """The cells of every suggestion that was given so far, in earlier runs, too."""
        return list(self._cells.values())

    def more(self) -> list[Cell]:
        """The cells to train of the next suggestion that has any; empty: there is none left.

        Raises:
            RequestError: `MOST_REFUSED` suggestions in a row cannot run, or none can be recorded.
        """
        while not self.exhausted:
            missing = self._give(self._left.pop(0) if self._left else self._ask())
            self._settle()
            if missing:
                return missing
        return []

    def ended(self, cell_id: str, status: str) -> None:
        """Notes that a cell ended; tells Optuna if it was the last one of its suggestion.

        Args:
            cell_id: of a cell that `more` gave.
            status: done, diverged or censored if the results hold the cell, else failed.
        """
        self._statuses[cell_id] = status
        self._settle()

    def summary(self, select: str = "accuracy") -> str:
        """The lines printed at the end: counts, best suggestion or Pareto front.

        Args:
            select: the metric by which the tables' options were chosen among all suggestions.
        """
        ends = Counter(each.told.name for each in self._given if each.told)
        names = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed"}
        parts = [f"{ends[end]} {name}" for end, name in names.items() if ends[end]]
        lines = [f"{counted(len(self._given), 'suggestion')}: {', '.join(parts)}"]
        if refused := [each["refused"] for each in self._recorded if "refused" in each]:
            lines[0] += f"; {len(refused)} more cannot run ({refused[-1]})"
        if ends["COMPLETE"]:
            lines += self._best()
        if "saif" in self._objective:
            lines.append(
                f"The search improved {self._space.improved(self._objective)}; SAIF uses the "
                "hidden foreground. The tables show what validation "
                f"{self._space.label(select)} chose (--select)."
            )
        return "\n".join(lines)

    def _best(self) -> list[str]:
        schedules = {each.trial.number: each.cells[0].schedule.text for each in self._given}
        rows = sorted(self._study.best_trials, key=lambda trial: [-v for v in trial.values])
        if len(self._objective) == 1:
            rows, head = rows[:1], "best suggestion:"
        else:
            head = "Pareto front: no suggestion is better in both."
        header = [f"{self._space.label(metric)} %" for metric in self._objective] + ["schedule"]
        table = [
            [f"{value * 100:.1f}" for value in trial.values] + [schedules[trial.number]]
            for trial in rows
        ]
        widths = [max(map(len, column)) for column in zip(header, *table, strict=True)]
        return [
            head,
            *("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in [header, *table]),
        ]

    # --- what was suggested

    def _title(self) -> str:
        """The name of the file: one for all that is comparable, whatever its ranges."""
        comparison_id = self._comparison_id()
        key = json.dumps([comparison_id, self._objective, self._space.key], sort_keys=True)
        digest = f"{stream_seed('search', self._name, key):016x}"[:8]
        return f"{self._name}-{'+'.join(self._objective)}-{comparison_id[:8]}-{digest}"

    def _comparison_id(self) -> str:
        """The comparison id of all cells of this search, whatever their schedule and seed."""
        reasons = []
        for point in self._space.middles():
            try:
                return self._cells_of(point)[0].comparison_id
            except (RequestError, ValueError) as error:
                reasons.append(str(error))
        raise RequestError(f"nothing to run in this search: {'; '.join(dict.fromkeys(reasons))}")

    def _read(self) -> list[dict[str, Any]]:
        """All suggestions so far by their numbers, and why one could not run."""
        storage = self._results.storage
        try:
            recorded = json.loads(storage.read(self._file))
            if not isinstance(recorded, list):
                raise ValueError("it is no list of suggestions")
            return recorded
        except FileNotFoundError:
            return []
        except ValueError as error:  # it was cut
            raise ResultsError(
                f"{storage.path(self._file)} is damaged ({error}). Remove it: the search begins "
                "anew, and its cells stay."
            ) from error

    def _record(self, trial: optuna.Trial, point: Mapping[str, Any]) -> None:
        """Records a suggestion, with Optuna's numbers beside those of its cells, which are round.

        The ranges may be others in the next run.
        """
        from optuna.distributions import distribution_to_json

        ranges = {name: distribution_to_json(each) for name, each in trial.distributions.items()}
        self._recorded.append({"point": point, "params": trial.params, "ranges": ranges})
        text = json.dumps(self._recorded, indent=1)
        self._results.storage.write(self._file, text.encode())

    def _recalled(self, recorded: Mapping[str, Any]) -> _Suggestion:
        """A recorded suggestion, which Optuna makes once more."""
        from optuna.distributions import json_to_distribution

        ranges = {name: json_to_distribution(text) for name, text in recorded["ranges"].items()}
        self._study.enqueue_trial(recorded["params"])
        return _Suggestion(self._study.ask(ranges), self._cells_of(recorded["point"]))

    # --- one suggestion

    def _ask(self) -> _Suggestion:
        """A new suggestion that can run, recorded."""
        import optuna

        for _ in range(MOST_REFUSED):
            number = len(self._recorded)
            # A sampler a suggestion: one that is seeded once would repeat itself in the next run.
            self._study.sampler = optuna.samplers.TPESampler(
                seed=stream_seed("search", self._name, number) % 2**32,
                constant_liar=True,  # keeps new suggestions away from those still in training
            )
            trial = self._study.ask()
            point = self._space.suggest(trial)
            try:
                cells = self._cells_of(point)
            except (RequestError, ValueError) as error:
                reason = error
                self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
                self._recorded.append({"refused": str(error)})
                continue
            self._record(trial, point)
            return _Suggestion(trial, cells)
        raise RequestError(
            f"the last {MOST_REFUSED} suggestions of the search cannot run: {reason}. "
            "Change the ranges with --set."
        ) from reason

    def _cells_of(self, point: Mapping[str, Any]) -> list[Cell]:
        return [
            self._make_cell({**self._space.fixed, **point, "seed": seed})
            for seed in self._space.seeds
        ]

    def _give(self, suggestion: _Suggestion) -> list[Cell]:
        """Counts a suggestion; its cells that are to be trained.

        Two suggestions may round to the same cells, which then train once.
        """
        new = {cell.id: cell for cell in suggestion.cells if cell.id not in self._cells}
        missing = [cell for cell in new.values() if cell.id not in self._statuses]
        self._announce(missing, len(new) - len(missing), len(suggestion.cells) - len(new))
        self._cells |= new
        self._given.append(suggestion)
        return missing

    def _settle(self) -> None:
        """Tells Optuna of the suggestions all of whose cells have ended."""
        over = [
            each for each in self._given if not each.told and each.ids <= self._statuses.keys()
        ]
        if not over:
            return
        ids = {cell.id for each in over for cell in each.cells}
        scores = last_scores(self._results.cells(ids), self._results.evaluations(ids))
        for suggestion in over:
            self._tell(suggestion, scores[scores.index.isin(suggestion.ids)])

    def _tell(self, suggestion: _Suggestion, scores: pd.DataFrame) -> None:
        from optuna.trial import TrialState

        statuses = {self._statuses[cell.id] for cell in suggestion.cells}
        values: list[float] | None = None
        if "failed" in statuses:
            told = TrialState.FAIL
        elif "censored" in statuses:
            told = TrialState.PRUNED
            censored = scores[scores["status"] == "censored"]
            fraction = censored["budget_fraction"].max()
            furthest = censored[censored["budget_fraction"] == fraction]
            # The sampler ranks what was pruned by how far it came, and by this value.
            suggestion.trial.report(_mean(furthest, self._objective[0]), round(100 * fraction))
        else:
            told = TrialState.COMPLETE
            values = [_mean(scores, metric) for metric in self._objective]
            if np.isnan(values).any():  # no foreground is known
                told, values = TrialState.FAIL, None
        self._study.tell(suggestion.trial, values, told)
        suggestion.told = told


def _mean(scores: pd.DataFrame, metric: str) -> float:
    return float(np.mean(scores[metric].to_numpy(float)))


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
