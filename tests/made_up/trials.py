"""Trials of Ray Tune, without Ray: one after the other in this process, on its CPU."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from ray.tune.schedulers import TrialScheduler

from study.cell.work import Job, Work
from study.drive import Launch, recorded, work_of
from study.kinds import KINDS
from study.launch.tune import do
from study.launch.watching import Watch
from study.launch.workplace import Workplace
from study.plan.course import Course
from study.plan.plan import Plan
from study.request import Request
from study.search.under_tune import Halving, Suggestions


@contextlib.contextmanager
def here(
    request: Request, course: Course, plans: Sequence[Plan], place: Workplace, watch: Watch
) -> Iterator[Launch]:
    def launch(plan: Plan) -> bool:
        work = replace(work_of(request, plan), gpu=False)
        judge = Halving(request.judged_by, recorded(place)) if request.scheduler else None
        if search := course.begun_search():
            suggestions = Suggestions(search, watch, lambda _: 1.0)
            _search(suggestions, work, watch, judge)
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
    """Does a job as a trial of Tune's does; the last evaluation that it told of."""
    trial: Any = SimpleNamespace(trial_id=name, config={"job": job.to_config()})
    ids, last = list(job.ids), {}

    def report(event: dict[str, Any]) -> None:
        watch.told(ids, event)
        if event["event"] == "evaluation":
            last.update(event)
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
    return last
