"""Asynchronous successive halving (Li et al. 2018, https://arxiv.org/abs/1810.05934).

It judges *options* (a schedule with all its seeds, which train side by side), by their mean: one
with a censored seed cannot be chosen. Each paradigm of a comparison has rungs of its own, and the
best option at a rung always goes on, so a group keeps one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler

from study.cell.work import CONFIRM

GRACE_PERCENT = 20
"""The first rung. At a tenth of the budget cells still rank by how fast they start."""

REDUCTION_FACTOR = 3
"""A rung lets the best third go on. So the rungs are at 20 and 60 % of the budget, both among the
usual ten evaluations; a rung near the end would give up results and save nothing."""


@dataclass(frozen=True)
class _Earlier:
    """Stands for the trial of an option that an earlier run trained; ASHA reads only its id."""

    trial_id: str


class Halving(FIFOScheduler):
    """Tune's ASHA, one for each paradigm of a comparison, over compute in per cent of the budget.

    Trials of other jobs than those of one option run to their end.

    Args:
        metric: of the validation split, `accuracy` or `saif`; more is better.
        earlier: what is recorded, cells joined with their evaluations of any splits, whose options
            take their places in the rungs.
    """

    def __init__(self, metric: str = "accuracy", earlier: pd.DataFrame | None = None) -> None:
        super().__init__()
        self._judged_by = metric
        self._of_group: dict[str, ASHAScheduler] = {}
        if earlier is not None and len(earlier):
            self._place(earlier)

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        if trial.config["job"]["watched"]:
            self._of(trial.config["job"]["group"]).on_trial_add(tune_controller, trial)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: Mapping[str, Any]) -> str:
        job = trial.config["job"]
        # At the end of the budget a stop saves nothing.
        if not job["watched"] or result.get("budget_percent", 100) >= 100:
            return TrialScheduler.CONTINUE
        return self._of(job["group"]).on_trial_result(tune_controller, trial, dict(result))

    def _of(self, group: str) -> ASHAScheduler:
        if group not in self._of_group:
            # It draws from NumPy's global generator, harmlessly: there is only one bracket.
            self._of_group[group] = ASHAScheduler(
                time_attr="budget_percent",
                metric=self._judged_by,
                mode="max",
                max_t=100,
                grace_period=GRACE_PERCENT,
                reduction_factor=REDUCTION_FACTOR,
                brackets=1,
                # Else a second report at a rung would count at the rung below.
                stop_last_trials=False,
            )
        return self._of_group[group]

    def _place(self, earlier: pd.DataFrame) -> None:
        rows = earlier[earlier["split"].eq("validation") & earlier["stage"].ne(CONFIRM)]
        keys = ["comparison_id", "paradigm", "schedule"]
        for key, option in rows.groupby(keys):
            comparison, paradigm, schedule = map(str, cast(tuple, key))
            asha, trial = self._of(f"{comparison}/{paradigm}"), _Earlier(schedule)
            asha.on_trial_add(None, trial)
            means = option.groupby("budget_fraction", as_index=False)[self._judged_by].mean()
            for fraction, mean in means[means["budget_fraction"] < 1].dropna().to_numpy(float):
                result = {"budget_percent": round(100 * fraction, 9), self._judged_by: mean}
                asha.on_trial_result(None, trial, result)
