"""Asynchronous successive halving (Li et al. 2018, https://arxiv.org/abs/1810.05934).

It judges *options* (a schedule with all its seeds), not cells: an option with one censored seed
cannot be chosen, so halving the cells of a group could leave it without an option. Cells that
confirm a chosen option are not judged. The first seed
that reaches a rung decides for its option; a stopped option stops all its seeds. The best option
at a rung always goes on, so a group keeps one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from study.cell.work import CONFIRM

if TYPE_CHECKING:
    from ray.tune.schedulers import ASHAScheduler

GRACE_PERCENT = 20
"""The first rung. At a tenth of the budget cells still rank by how fast they start."""

REDUCTION_FACTOR = 3
"""A rung lets the best third go on. So the rungs are at 20 and 60 % of the budget, both among the
usual ten evaluations; a rung near the end would give up results and save nothing."""

_PERCENT, _STOP = "percent", "STOP"


@dataclass(frozen=True)
class _Option:
    """Stands for a Tune trial; the scheduler reads only its id."""

    trial_id: str


class Judge:
    """Decides whether a cell goes on, by Tune's ASHA within each paradigm of a comparison.

    The scheduler's time is compute, in per cent of the budget. Verdicts depend only on the rows
    and their order. A hybrid is compared by the phase that it is in.

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
        """Whether the cell stops here; never at the end of the budget, where it saves nothing.

        Args:
            row: an evaluation: `comparison_id`, `paradigm`, `schedule` (the text in the results),
                `stage`, `budget_fraction` and the metric on the validation split. A row that was
                judged before (a resumed cell reports again) counts once.
        """
        if row["budget_fraction"] >= 1 or row["stage"] == CONFIRM:
            return False
        if self._is_among_the_worse(row):
            self._stopped.add(_key(row))
        return _key(row) in self._stopped

    def prime(self, evaluations: pd.DataFrame) -> None:
        """Fills the rungs with an earlier run's evaluations and keeps its stopped options stopped.

        Args:
            evaluations: of any splits, joined with their cells, as
                `results.cells().merge(results.evaluations(), on="cell_id")` gives them.
        """
        rows = evaluations[evaluations["split"] == "validation"]
        rows = rows[rows["stage"].ne(CONFIRM)]
        rows = rows.sort_values(["finished_at", "cell_id", "budget_fraction"])
        for row in rows.to_dict("records"):
            if row["budget_fraction"] < 1:
                self._is_among_the_worse(row)
        # The earlier run's verdicts stand, though the order of its reports is not known.
        censored = rows[rows["status"] == "censored"]
        self._stopped |= {_key(row) for row in censored.to_dict("records")}

    def _is_among_the_worse(self, row: Mapping[Any, Any]) -> bool:
        value = float(row[self._metric])
        if not math.isfinite(value):  # a cell that diverges ends by itself
            return False
        scheduler, option = self._scheduler(row), self._options.get(_key(row))
        if option is None:
            option = self._options[_key(row)] = _Option(row["schedule"])
            # This draws from NumPy's global generator, harmlessly: there is only one bracket.
            scheduler.on_trial_add(None, option)
        # Rounded, so that a tenth of the budget does not miss its rung by the last bit.
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
                # Else a second report at a rung would count at the rung below.
                stop_last_trials=False,
            )
        return self._schedulers[group]


def _key(row: Mapping[Any, Any]) -> tuple[str, str, str]:
    return row["comparison_id"], row["paradigm"], row["schedule"]
