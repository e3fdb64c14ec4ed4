"""What Ray Tune asks while a study runs: which option comes next, and whether one goes on.

Asynchronous successive halving (Li et al. 2018, https://arxiv.org/abs/1810.05934) judges *options*
(a schedule with all its seeds, which train side by side), by their mean: one with a censored seed
cannot be chosen. Each paradigm of a comparison has rungs of its own, and the best option at a rung
always goes on, so a group keeps one.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from study.cell import AnyCell
from study.cell.work import CONFIRM
from study.errors import RequestError
from study.launch.failures import failure_of
from study.launch.watching import Watch
from study.search.over_seeds import means

if TYPE_CHECKING:
    from study.search.search import Search

GRACE_PERCENT = 20
"""The first rung. At a tenth of the budget cells still rank by how fast they start."""

REDUCTION_FACTOR = 3
"""A rung lets the best third go on. So the rungs are at 20 and 60 % of the budget, both among the
usual ten evaluations; a rung near the end would give up results and save nothing."""


class Suggestions(Searcher):
    """Hands Tune the options of a search as trials.

    Args:
        search: gives them.
        watch: told of their cells, and why the search cannot go on; knows how cells ended.
        seconds: of a cell, estimated.
    """

    def __init__(self, search: Search, watch: Watch, seconds: Callable[[AnyCell], float]) -> None:
        super().__init__()
        self._search, self._watch, self._seconds = search, watch, seconds

    def suggest(self, trial_id: str) -> Any:
        try:
            job = self._search.next(trial_id)
        except RequestError as error:
            self._watch.failed((), failure_of(error))
            job = None
        if job is None:
            return Searcher.FINISHED
        self._watch.progress.name(job.cells, {c.id: self._seconds(c) for c in job.cells})
        return {"job": job.to_config()}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        self._search.ended(trial_id, {} if error else result or {})

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles it, and never reads that

    def save(self, checkpoint_path: str) -> None:
        pass


class Halving(FIFOScheduler):
    """Tune's ASHA, one for each paradigm of a comparison, over compute in per cent of the budget.

    Trials of other jobs than those of one option run to their end.

    Args:
        metric: of the validation split, `accuracy` or `saif`; more is better.
        earlier: cells as `recorded` gives them, whose options take their places in the rungs.
    """

    def __init__(self, metric: str = "accuracy", earlier: pd.DataFrame | None = None) -> None:
        super().__init__()
        # It draws from NumPy's global generator, harmlessly: there is only one bracket.
        asha = functools.partial(
            ASHAScheduler,
            time_attr="budget_percent",
            metric=metric,
            mode="max",
            max_t=100,
            grace_period=GRACE_PERCENT,
            reduction_factor=REDUCTION_FACTOR,
            brackets=1,
            # Else a second report at a rung would count at the rung below.
            stop_last_trials=False,
        )
        self._of_group: defaultdict[str, ASHAScheduler] = defaultdict(asha)
        if earlier is not None:
            self._place(earlier, metric)

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        if trial.config["job"]["watched"]:
            self._of_group[trial.config["job"]["group"]].on_trial_add(tune_controller, trial)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: Mapping[str, Any]) -> str:
        job = trial.config["job"]
        # At the end of the budget a stop saves nothing.
        if not job["watched"] or result.get("budget_percent", 100) >= 100:
            return TrialScheduler.CONTINUE
        judge = self._of_group[job["group"]]
        return judge.on_trial_result(tune_controller, trial, dict(result))

    def _place(self, earlier: pd.DataFrame, metric: str) -> None:
        tuning = earlier[earlier["stage"].ne(CONFIRM)]
        options = tuning.groupby(["comparison_id", "paradigm", "schedule"])
        for (comparison, paradigm, schedule), option in options:
            judge = self._of_group[f"{comparison}/{paradigm}"]
            trial = SimpleNamespace(trial_id=schedule)  # ASHA reads nothing else of it
            judge.on_trial_add(None, trial)
            for fraction, mean in means(option, metric).items():
                percent = round(100 * fraction, 9)
                if percent < 100:  # as above
                    judge.on_trial_result(None, trial, {"budget_percent": percent, metric: mean})
