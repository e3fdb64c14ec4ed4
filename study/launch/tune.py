"""Distributes cells over Ray Tune: one trial a pack of cells, workers reused between trials.

Tune finds the resources, starts the workers and notices when one is lost. What runs next, and what
becomes of what failed, `study.launch.jobs` decides: Tune asks it for every trial, by way of a
search algorithm. A trial does not raise: it reports why it failed, so all that Tune itself calls
an error is a worker that was lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.cell.events import Report
from study.cell.work import Work
from study.errors import RequestError
from study.hardware import give_back_memory
from study.launch.cluster import ray_session
from study.launch.failures import Failure, _failure_of_trial, failure_of
from study.launch.fork_points import ForkPoints
from study.launch.jobs import Job, Jobs, Resources, Source
from study.launch.nodes import Cluster
from study.launch.running import Running
from study.launch.trial import train_cells
from study.storage.storage import Storage
from study.terminal.command import importing
from study.terminal.progress import Progress

Train = Callable[[Work, Report], object]

PENDING_TRIALS = 64
"""Workers that may be starting at the same time on a cluster."""


def launch(
    jobs: Sequence[Job],
    work: Work,
    resources: Resources,
    progress: Progress,
    on_cell: Callable[[str], str],
    cluster: Cluster | None = None,
    max_retries: int = 3,
    source: Source | None = None,
    judge: Any = None,
    train: Train = train_cells,
) -> list[Failure]:
    """Carries out the jobs of a study.

    Args:
        jobs: to begin with.
        work: what all trials have in common.
        resources: what they take.
        progress: told of every start, evaluation and end.
        on_cell: called on the driver with the id of each cell that is recorded; gives its status.
        cluster: to train on; None starts Ray on this machine and stops it after.
        max_retries: how often a trial whose worker was lost is tried again.
        source: of further cells while the study runs.
        judge: decides which cells to stop, see `study.search.halving.Judge`; None: all go to their
        end. train: what a trial runs.

    Returns:
        The cells that were given up, and the bug that stopped the study, if one did.

    Raises:
        RequestError: too few resources, or the results directory cannot be written any more.
        KeyboardInterrupt: Ctrl-C; what is recorded stays.
    """
    queue = Jobs(jobs, max_retries, source)
    forks = ForkPoints(Storage(work.results), jobs)
    running = Running(queue, progress, on_cell, forks, source)
    train_on_ray(work, resources, running, cluster, judge, train)
    for failure in queue.failures:
        if failure.kind == "request":
            raise RequestError(failure.text)
    return queue.failures


def train_on_ray(
    work: Work,
    resources: Resources,
    running: Running,
    cluster: Cluster | None,
    judge: Any,
    train: Train,
) -> None:
    """Runs trials until the jobs are over; the arguments are those of `launch`."""
    session = ray_session(resources.concurrent * work.threads)
    with (
        contextlib.nullcontext(cluster.ray) if cluster else session as ray,
        _scratch(work.results) as storage,
    ):
        with importing():
            from ray import tune

        gpus = resources.gpus_per_trial
        if gpus is None:
            gpus = 1 if ray.cluster_resources().get("GPU") else 0
        pending = PENDING_TRIALS if cluster else resources.concurrent
        os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(pending)
        judging = ray.remote(num_cpus=0)(_Judging).remote(judge) if judge else None
        tune.Tuner(
            tune.with_resources(_trainable(train, judging), {"cpu": work.threads, "gpu": gpus}),
            param_space=dataclasses.replace(work, gpu=gpus > 0).to_dict(),
            tune_config=tune.TuneConfig(
                num_samples=-1,
                search_alg=_search_algorithm(
                    tune.search.Searcher, running, resources.max_concurrent
                ),
                scheduler=_scheduler(tune.schedulers.FIFOScheduler, running),
                reuse_actors=True,
                trial_name_creator=_trial_name,
                trial_dirname_creator=_trial_name,
            ),
            run_config=tune.RunConfig(
                name=work.study,
                storage_path=storage,
                callbacks=[
                    _observer(tune.Callback, running),
                    _silence(tune.progress_reporter.TrialProgressCallback),
                ],
                failure_config=tune.FailureConfig(max_failures=0),
                stop=_stopper(tune.Stopper, running.jobs),
                verbose=0,
            ),
        ).fit()


@contextlib.contextmanager
def _scratch(results: str) -> Iterator[str]:
    """A folder of the driver's for Tune's own files, from which nothing is ever read.

    Workers have nothing to write there. What a killed driver left is removed.
    """
    name = hashlib.sha256(results.encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"attention-study-{os.getuid()}-{name}")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:  # someone else's
        folder = Path(tempfile.mkdtemp(prefix="attention-study-"))
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _trainable(train: Train, judging: Any) -> Callable[[dict[str, Any]], None]:
    def trial(config: dict[str, Any]) -> None:
        import ray
        from ray import tune

        def report(event: dict[str, Any]) -> bool:
            tune.report(event)
            if judging is None or event["event"] != "evaluation":
                return False
            try:
                return ray.get(judging.verdict.remote(event))
            except ray.exceptions.RayActorError:
                return False  # its node was lost: all cells go on

        carry_out(train, Work.from_dict(config), report)

    return trial


def carry_out(train: Train, work: Work, report: Report) -> None:
    """A trial; it does not raise, but reports why it failed."""
    failure = None
    try:
        train(work, report)
    except Exception as error:
        failure = failure_of(error)
    if failure is not None:  # here nothing holds on to its tensors any more
        give_back_memory()
        report({"event": "failure", "kind": failure.kind, "text": failure.text})


class _Judging:
    """A judge in a process of its own, which all workers ask."""

    def __init__(self, judge: Any) -> None:
        self._judge = judge

    def verdict(self, event: Mapping[str, Any]) -> bool:
        return self._judge.verdict(event)


def _trial_name(trial: Any) -> str:
    return trial.config["name"]


# Tune pickles what it is given, classes included, though nothing is ever read from that: below,
# objects are attributes, which are left out, and methods refer to modules alone.


def _search_algorithm(base: Any, running: Running, max_concurrent: int | None) -> Any:
    """Hands Tune the jobs, one by one; `base` is `ray.tune.search.Searcher`."""

    class Algorithm(base):
        def __getstate__(self) -> dict[str, Any]:
            return {}

        def suggest(self, trial_id: str) -> Any:
            if self.max_concurrent and len(self.running.job) >= self.max_concurrent:
                return None
            job = self.running.start(trial_id)
            if job is None:
                return self.FINISHED if self.running.jobs.over else None
            cells = [cell.to_dict() for cell in job.cells]
            name = f"{job.ids[0]}-{trial_id}"
            return {"name": name, "cells": cells, "fork_steps": list(job.fork_steps)}

        def on_trial_complete(self, trial_id: str, *_: Any, **__: Any) -> None:
            pass  # the observer is told more

        def save(self, checkpoint_path: str) -> None:
            pass

        def restore(self, checkpoint_path: str) -> None:
            pass

    algorithm = Algorithm()
    algorithm.running, algorithm.max_concurrent = running, max_concurrent
    return algorithm


def _scheduler(base: Any, running: Running) -> Any:
    """First come, first served; `base` is `ray.tune.schedulers.FIFOScheduler`.

    That one looks through all trials, ended ones too, at every event of every trial. Here they are
    let go of before the next one starts.
    """

    class Scheduler(base):
        def __getstate__(self) -> dict[str, Any]:
            return {}

        def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
            _let_go_of_ended(tune_controller._tune_controller)

        def choose_trial_to_run(self, tune_controller: Any) -> Any:
            live = tune_controller.get_live_trials()
            pending = {trial.trial_id: trial for trial in live if trial.status == "PENDING"}
            in_order = (pending[i] for i in self.running.job if i in pending)
            return next(in_order, None)

    scheduler = Scheduler()
    scheduler.running = running
    return scheduler


def _let_go_of_ended(controller: Any) -> None:
    """Takes from Tune the trials that ended, each with its cells, its last event and its task.

    It would keep them to the end of the study: for its own report, which nobody reads, in a list
    of what is pending, which it shortens where no worker is, and with the workers that were asked
    for where one was reused.
    """
    for ended in (controller._stopped_trials, controller._failed_trials):
        controller._live_trials -= ended  # where failed ones stay
        controller._trials_to_cache -= ended
        for trials in (controller._trials, controller._pending_trials_list):
            trials[:] = [trial for trial in trials if trial not in ended]
        ended.clear()
    workers = controller._actor_manager
    asked, tasks = (
        workers._pending_actors_to_attrs,
        workers._pending_actors_to_enqueued_actor_tasks,
    )
    for worker in tasks.keys() - asked.keys():
        del tasks[worker]


def _stopper(base: Any, jobs: Jobs) -> Any:
    """Stops all trials where a failure stops the study; `base` is `ray.tune.Stopper`."""

    class Stopper(base):
        def __getstate__(self) -> dict[str, Any]:
            return {}

        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            return self.jobs.stopped

    stopper = Stopper()
    stopper.jobs = jobs
    return stopper


def _observer(base: Any, running: Running) -> Any:
    """Takes back from Tune what ended or failed; `base` is `ray.tune.Callback`."""

    class Observer(base):
        def __getstate__(self) -> dict[str, Any]:
            return {}

        def on_trial_start(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
            self.running.started(trial.trial_id)

        def on_trial_result(
            self, iteration: int, trials: list, trial: Any, result: dict, **_: Any
        ) -> None:
            self.running.told(trial.trial_id, result)

        def on_trial_complete(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
            self.running.completed(trial.trial_id)

        def on_trial_error(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
            self.running.lost(trial.trial_id, _failure_of_trial(trial))

    observer = Observer()
    observer.running = running
    return observer


def _silence(base: Any) -> Any:
    """Takes the place of Tune's own printer, which keeps all trials, ended ones too.

    `base` is `ray.tune.progress_reporter.TrialProgressCallback`.
    """

    class Silence(base):
        def log_result(self, *_: Any, **__: Any) -> None:
            pass

        def on_trial_complete(self, *_: Any, **__: Any) -> None:
            pass

    return Silence()
