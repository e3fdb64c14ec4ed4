"""Trials of Ray Tune, without Ray: one after the other in this process, on its CPU."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from ray.tune.schedulers import TrialScheduler

from study.cell.work import Job, Work
from study.drive.launcher import Launch, work_of
from study.drive.on_ray import OnRay
from study.kinds import KINDS
from study.launch.tune import do
from study.launch.watching import Watch
from study.plan.plan import Plan
from study.search.under_tune import Suggestions


@contextlib.contextmanager
def here(launcher: OnRay, _: object, watch: Watch) -> Iterator[Launch]:
    def launch(plan: Plan) -> bool:
        work = replace(work_of(launcher.request, plan, launcher.place.results.url), gpu=False)
        judge = launcher.scheduler()
        if plan.searches:
            _search(launcher.suggestions(plan, watch), work, watch, judge)
        else:
            for number, job in enumerate(plan.jobs):
                if not watch.stopped:
                    trial_here(job, work, watch, str(number), judge)
        return not watch.stopped

    yield launch


def _search(
    suggestions: Suggestions, work: Work, watch: Watch, judge: TrialScheduler | None
) -> None:
    for name in map(str, itertools.count()):
        config = suggestions.suggest(name)
        if config == Suggestions.FINISHED or watch.stopped:
            return
        job = Job.of_config(config["job"], KINDS[work.kind].cell)
        last = trial_here(job, work, watch, name, judge)
        suggestions.on_trial_complete(name, last)


def trial_here(
    job: Job, work: Work, watch: Watch, name: str = "0", judge: TrialScheduler | None = None
) -> dict[str, Any]:
    """Does a job as a trial of Tune's does; the last event that it told of."""
    trial: Any = SimpleNamespace(trial_id=name, config={"job": job.to_config()})
    ids, told = list(job.ids), [{}]

    def report(event: dict[str, Any]) -> None:
        watch.told(ids, event)
        told.append(event)
        if judge and judge.on_trial_result(Mock(), trial, event) == TrialScheduler.STOP:
            raise SystemExit

    if judge:
        judge.on_trial_add(Mock(), trial)
    watch.started(ids[: len(job.packs[0])])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ray.tune.report", report)
        with contextlib.suppress(SystemExit):
            do(trial.config, work)
    watch.completed(ids)
    return told[-1]
