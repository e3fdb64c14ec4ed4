"""Asynchronous successive halving (Li et al. 2018, https://arxiv.org/abs/1810.05934).

What is judged is an *option* (a schedule with all its seeds), not a cell: an option with a single
censored seed cannot be chosen, so halving the cells of a group would leave it without any option.
An option is judged at a rung by the first of its seeds that arrives there; when it is stopped, all
its seeds are. The best option at a rung always goes on, so a group keeps one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from ray.tune.schedulers import ASHAScheduler

GRACE_PERCENT = 20
"""The first rung: at a tenth of the budget cells still rank by how fast they start."""

REDUCTION_FACTOR = 3
"""A rung lets the best third go on. The rungs are then at 20 and 60 % of the budget, both among
the usual ten evaluations; a rung near the end would give up results and save nothing."""

_PERCENT, _STOP = "percent", "STOP"


@dataclass(frozen=True)
class _Option:
    """Stands for a Tune trial, of which the scheduler reads the id alone."""

    trial_id: str


class Judge:
    """Decides whether a cell goes on, by Tune's ASHA within each paradigm of a comparison.

    Compute, in per cent of the budget, is what the scheduler takes for time. Verdicts depend on
    the rows and their order alone. A hybrid is compared by the phase that it is in.

    Args:
        metric: of the validation split, `accuracy` or `saif`; more is better.
        grace_percent: per cent of the budget below which no cell is stopped.
        reduction_factor: a rung lets the best 1/reduction_factor of the options go on.
    """

    def __init__(
        self,
        metric: str = "accuracy",
        grace_percent: int = GRACE_PERCENT,
        reduction_factor: float = REDUCTION_FACTOR,
    ) -> None:
        self._metric = metric
        self._grace_percent = grace_percent
        self._reduction_factor = reduction_factor
        self._schedulers: dict[tuple[str, str], ASHAScheduler] = {}
        self._options: dict[tuple[str, str, str], _Option] = {}
        self._stopped: set[tuple[str, str, str]] = set()

    def verdict(self, row: Mapping[str, Any]) -> bool:
        """Whether the cell stops here.

        Args:
            row: an evaluation: `comparison_id`, `paradigm`, `schedule` (the text that the results
                hold), `budget_fraction` and the metric on the validation split. One that was
                judged before (a resumed cell reports again) counts once.

        Returns:
            True for stop; never at the end of the budget, where stopping saves nothing.
        """
        if row["budget_fraction"] >= 1:
            return False
        if self._is_among_the_worse(row):
            self._stopped.add(_key(row))
        return _key(row) in self._stopped

    def prime(self, evaluations: pd.DataFrame) -> None:
        """Goes on where an earlier run ended: its rungs are filled, its stopped options stay so.

        Args:
            evaluations: recorded ones joined with their cells, of any splits, as
                `results.cells().merge(results.evaluations(), on="cell_id")` gives them.
        """
        rows = evaluations[evaluations["split"] == "validation"]
        rows = rows.sort_values(["finished_at", "cell_id", "budget_fraction"])
        for row in rows.to_dict("records"):
            if row["budget_fraction"] < 1:
                self._is_among_the_worse(row)
        # What the earlier run decided stands, though the order of its reports is not known.
        censored = rows[rows["status"] == "censored"]
        self._stopped |= {_key(row) for row in censored.to_dict("records")}

    def _is_among_the_worse(self, row: Mapping[Any, Any]) -> bool:
        value = float(row[self._metric])
        if not math.isfinite(value):  # a cell that diverges ends by itself
            return False
        scheduler, option = self._scheduler(row), self._options.get(_key(row))
        if option is None:
            option = self._options[_key(row)] = _Option(row["schedule"])
            # Draws a bracket from NumPy's global generator, but there is only one to draw.
            scheduler.on_trial_add(None, option)
        # Tenths of the budget must not miss their rung by the last bit.
        percent = round(100 * float(row["budget_fraction"]), 9)
        result = {_PERCENT: percent, self._metric: value}
        return scheduler.on_trial_result(None, option, result) == _STOP

    def _scheduler(self, row: Mapping[Any, Any]) -> ASHAScheduler:
        from ray.tune.schedulers import ASHAScheduler

        group = (row["comparison_id"], row["paradigm"])
        if group not in self._schedulers:
            self._schedulers[group] = ASHAScheduler(
                time_attr=_PERCENT,
                metric=self._metric,
                mode="max",
                max_t=100,
                grace_period=self._grace_percent,
                reduction_factor=self._reduction_factor,
                brackets=1,
                # Else a second report at a rung would be entered at the rung below.
                stop_last_trials=False,
            )
        return self._schedulers[group]


def _key(row: Mapping[Any, Any]) -> tuple[str, str, str]:
    return row["comparison_id"], row["paradigm"], row["schedule"]
