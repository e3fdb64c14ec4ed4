"""Runs the jobs of a stage as trials of Ray Tune, on this machine or a cluster.

A trial does a job and never raises: it tells why it failed. So an error in Tune is a lost worker,
which Tune tries again. To be imported once Ray has its settings (`study.launch.cluster`).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from study import parts
from study.cell.work import Job, Work
from study.hardware import give_back_memory
from study.kinds import KINDS
from study.launch.failures import failure_of, failure_of_trial
from study.launch.run_job import run_job
from study.launch.watching import RECORD_SECONDS, Watch
from study.storage.hashed import hashed

TOLD_EVERY = 1.0
"""Seconds between two evaluations that the driver is told of: each costs it a millisecond, half of
all that a short cell costs it."""


def run_trials(
    jobs: Sequence[Job] | Searcher,
    work: Work,
    watch: Watch,
    *,
    gpus_per_trial: float,
    max_concurrent: int | None = None,
    max_retries: int = 3,
    scheduler: TrialScheduler | None = None,
) -> None:
    """Runs jobs until all have ended, or a failure stops the study.

    Args:
        jobs: to run; or what suggests them, as configurations of `Job.to_config`.
        work: what they have in common.
        watch: told of their events.
        gpus_per_trial: GPUs of a trial.
        max_concurrent: most trials at a time; None: as many as find room.
        max_retries: how often a trial whose worker was lost is tried again.
        scheduler: stops trials early; None: all run to their end.

    Raises:
        KeyboardInterrupt: Ctrl-C; recorded cells stay.
    """
    trial = functools.partial(do, work=work)
    space, search = {}, None
    if isinstance(jobs, Searcher):
        search = jobs
    else:
        configs = [job.to_config() for job in jobs]
        # Numbers, as Tune copies the whole grid for each of its points.
        space["number"] = tune.grid_search(list(range(len(configs))))
        space["job"] = tune.sample_from(lambda config: configs[config["number"]])
    with _scratch(work.results) as storage, contextlib.suppress(_Stopped):
        tune.Tuner(
            tune.with_resources(trial, {"cpu": work.threads, "gpu": gpus_per_trial}),
            param_space=space,
            tune_config=tune.TuneConfig(
                num_samples=-1 if search else 1,
                search_alg=search,
                scheduler=scheduler,
                max_concurrent_trials=max_concurrent,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name=work.study,
                storage_path=storage,
                callbacks=[_Told(watch)],
                failure_config=tune.FailureConfig(max_failures=max_retries),
                verbose=0,
            ),
        ).fit()


@contextlib.contextmanager
def _scratch(results: str) -> Iterator[str]:
    """A folder on the driver for Tune's own files, which are never read.

    Workers write nothing there. Files that a killed driver left are removed.
    """
    name = hashed(results.encode())
    folder = Path(tempfile.gettempdir(), f"attention-study-{os.getuid()}-{name}")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:  # another user's
        folder = Path(tempfile.mkdtemp(prefix="attention-study-"))
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def do(config: Mapping[str, Any], work: Work) -> None:
    """Does a job; tells why it failed instead of raising."""
    report = Report(config["job"])
    failure = None
    try:
        parts.load(work.parts)  # before cells that name them
        run_job(Job.of_config(config["job"], KINDS[work.kind].cell), work, report)
    except Exception as error:
        failure = failure_of(error)
    if report.stopped:
        report.is_recorded.set()
        raise SystemExit(0)  # as Tune did
    report.catch_up()
    if failure is not None:  # outside the except clause, which holds on to tensors
        if not failure.ends_process:
            give_back_memory()
        if failure.kind == "worker lost":  # Tune tries the trial again, in another process
            tune.report({"event": "note", "text": failure.reason})
        else:
            tune.report({"event": "failure", "kind": failure.kind, "text": failure.text})
        if failure.ends_process:
            os._exit(1)


class Report:
    """Passes a job's events to Tune; takes its word to stop as an answer.

    Evaluations carry what schedulers look at: budget_percent, and accuracy and saif, means over
    the job's cells. Of those of a job that nobody watches only some are told.
    """

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._watched = job["watched"]
        self._told_at = -math.inf
        self._kept: dict[str, Any] | None = None
        self.stopped = False
        self.is_recorded = threading.Event()

    def __call__(self, event: dict[str, Any]) -> bool:
        if event["event"] == "evaluation":
            now = time.monotonic()
            if not self._watched and now - self._told_at < TOLD_EVERY:
                self._kept = event
                return False
            self._told_at, self._kept = now, None
            # Rounded, so that a tenth of the budget does not miss its rung by the last bit.
            event["budget_percent"] = round(100 * event["budget_fraction"], 9)
        elif event["event"] == "ended":
            self.catch_up()
        return self._tell(event)

    def catch_up(self) -> None:
        """Tells of an evaluation that was left out."""
        if self._kept is not None:
            self._tell(self._kept)
            self._kept = None

    def _tell(self, event: dict[str, Any]) -> bool:
        if not self.stopped:
            try:
                tune.report(event)
            except SystemExit:  # Tune's way to end the thread of a trial
                if not (self._watched and event["event"] == "evaluation"):
                    raise  # with its loop, not by a scheduler's verdict
                self.stopped = True
                # Where no other trial follows, it ends this process, too.
                atexit.register(self.is_recorded.wait, RECORD_SECONDS)
        return self.stopped


class _Stopped(BaseException):
    """Leaves Tune at once, as Ctrl-C does: what a failure stops is not to be recorded."""


class _Told(tune.Callback):
    """Passes what Tune tells on."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles it, and never reads that

    def on_trial_start(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
        self._watch.started(trial.config["job"]["ids"][: trial.config["job"]["first"]])

    def on_trial_result(
        self, iteration: int, trials: list, trial: Any, result: dict, **_: Any
    ) -> None:
        self._watch.told(trial.config["job"]["ids"], result)
        if self._watch.stopped:
            raise _Stopped

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
        self._watch.completed(trial.config["job"]["ids"])

    def on_trial_recover(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
        self._watch.lost(trial.config["job"]["ids"])

    def on_trial_error(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
        self._watch.failed(trial.config["job"]["ids"], failure_of_trial(trial))
        if self._watch.stopped:
            raise _Stopped
