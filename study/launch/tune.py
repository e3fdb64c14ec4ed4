"""Distributes cells over Ray Tune: one trial a pack of cells, workers reused between trials.

Tune finds the resources, starts the workers and notices when one is lost. `study.launch.job_queue`
decides what runs next and whether a failed job is tried again; a search algorithm hands its jobs
to Tune. A trial never raises: it reports why it failed. So an error in Tune is a lost worker.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study import parts
from study.cell.events import Report
from study.cell.work import Work
from study.errors import RequestError
from study.hardware import give_back_memory
from study.kinds import KINDS
from study.launch.cluster import ray_session
from study.launch.failures import Failure, failure_of, failure_of_trial
from study.launch.fork_points import ForkPoints
from study.launch.job_queue import Job, Jobs, Resources, Source
from study.launch.nodes import Cluster
from study.launch.running import OnCell, Running
from study.launch.trial import train_cells
from study.storage.storage import Storage
from study.terminal.command import importing
from study.terminal.progress import Progress

Train = Callable[[Work, Report], object]

PENDING_TRIALS = 64
"""Workers that may be starting at the same time on a cluster."""

TOLD_EVERY = 1.0
"""Seconds between two evaluations of a cell that the driver is told of."""


def launch(
    jobs: Sequence[Job],
    work: Work,
    resources: Resources,
    progress: Progress,
    on_cell: OnCell,
    cluster: Cluster | None = None,
    max_retries: int = 3,
    source: Source | None = None,
    judge: Any = None,
    train: Train = train_cells,
) -> list[Failure]:
    """Runs the jobs of a study.

    Args:
        jobs: the first ones.
        work: what all trials have in common.
        resources: what the trials take.
        progress: told of every start, evaluation and end.
        on_cell: see `study.launch.running.OnCell`.
        cluster: to train on; None starts Ray on this machine and stops it after.
        max_retries: how often a trial whose worker was lost is tried again.
        source: of further jobs while the study runs.
        judge: stops cells early, see `study.search.halving.Judge`; None: all run to their end.
        train: what a trial runs.

    Returns:
        Failures of the cells that were given up, and the bug that stopped the study, if any.

    Raises:
        RequestError: too few resources, or the results directory cannot be written any more.
        KeyboardInterrupt: Ctrl-C; recorded cells stay.
    """
    forks = ForkPoints(Storage(work.results))
    queue = Jobs(jobs, max_retries, source, forks.expect)
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
    """Runs trials until the jobs are over; arguments as for `launch`."""
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
    """A folder on the driver for Tune's own files, which are never read.

    Workers write nothing there. Files that a killed driver left are removed.
    """
    name = hashlib.sha256(results.encode()).hexdigest()[:16]
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


def _trainable(train: Train, judging: Any) -> Callable[[dict[str, Any]], None]:
    def trial(config: dict[str, Any]) -> None:
        import ray
        from ray import tune

        tell = Sparing(tune.report)

        def report(event: dict[str, Any]) -> bool:
            tell(event)
            if judging is None or event["event"] != "evaluation":
                return False
            try:
                return ray.get(judging.verdict.remote(event))
            except ray.exceptions.RayActorError:
                return False  # the judge's node was lost: all cells go on

        carry_out(lambda: train(_work(config), report), report)
        tell.the_last()

    return trial


class Sparing:
    """Passes events on, but of the evaluations of a cell one a second only, and the last one.

    Each costs the driver a millisecond, half of all that a short cell costs it.

    Args:
        send: takes what is passed on.
        clock: in seconds.
    """

    def __init__(
        self,
        send: Callable[[dict[str, Any]], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._clock = clock
        self._sent_at: dict[str, float] = {}
        self._kept: dict[str, dict[str, Any]] = {}

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] == "evaluation":
            cell_id, now = event["cell_id"], self._clock()
            if now - self._sent_at.get(cell_id, -math.inf) < TOLD_EVERY:
                self._kept[cell_id] = event
                return
            self._sent_at[cell_id] = now
            self._kept.pop(cell_id, None)
        self._send(event)

    def the_last(self) -> None:
        """Passes on the last evaluation of each cell, at the end of a trial."""
        for event in self._kept.values():
            self._send(event)


def _work(config: dict[str, Any]) -> Work:
    """The work of a trial, whose cells may name parts that this process has not imported yet."""
    parts.load(parts.PartFile(*each) for each in config["parts"])
    parts.load_installed()
    return Work.of_plain(config, KINDS[config["kind"]].cell)


def carry_out(trial: Callable[[], object], report: Report) -> None:
    """Runs a trial; reports why it failed instead of raising."""
    failure = None
    try:
        trial()
    except Exception as error:
        failure = failure_of(error)
    if failure is not None:  # outside the except clause, which holds on to tensors
        if not failure.ends_process:
            give_back_memory()
        report({"event": "failure", "kind": failure.kind, "text": failure.text})
        if failure.ends_process:
            os._exit(1)  # else Tune would give it its next trials


class _Judging:
    """A judge in its own process, which all workers ask."""

    def __init__(self, judge: Any) -> None:
        self._judge = judge

    def verdict(self, event: Mapping[str, Any]) -> bool:
        return self._judge.verdict(event)


def _trial_name(trial: Any) -> str:
    return trial.config["name"]


# Tune pickles the objects below, classes included, though the pickles are never read. So they keep
# their state in attributes, which `__getstate__` leaves out, and methods refer to modules only.


def _search_algorithm(base: Any, running: Running, max_concurrent: int | None) -> Any:
    """Hands Tune the jobs one by one; `base` is `ray.tune.search.Searcher`."""

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
            pass  # the observer learns more

        def save(self, checkpoint_path: str) -> None:
            pass

        def restore(self, checkpoint_path: str) -> None:
            pass

    algorithm = Algorithm()
    algorithm.running, algorithm.max_concurrent = running, max_concurrent
    return algorithm


def _scheduler(base: Any, running: Running) -> Any:
    """First come, first served; `base` is `ray.tune.schedulers.FIFOScheduler`.

    The base looks through all trials, ended ones too, at every event. Here ended ones are dropped
    before the next one starts.
    """

    class Scheduler(base):
        def __getstate__(self) -> dict[str, Any]:
            return {}

        def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
            _forget_ended(tune_controller._tune_controller)

        def choose_trial_to_run(self, tune_controller: Any) -> Any:
            live = tune_controller.get_live_trials()
            pending = {trial.trial_id: trial for trial in live if trial.status == "PENDING"}
            in_order = (pending[i] for i in self.running.job if i in pending)
            return next(in_order, None)

    scheduler = Scheduler()
    scheduler.running = running
    return scheduler


def _forget_ended(controller: Any) -> None:
    """Removes ended trials from Tune, each with its cells, last event and task.

    Tune would keep them until the study ends: for a report that nobody reads, in its list of
    pending trials, and with the requests for workers that a reused one made needless.
    """
    for ended in (controller._stopped_trials, controller._failed_trials):
        controller._live_trials -= ended  # Tune leaves failed ones there
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
    """Stops all trials once a failure stops the study; `base` is `ray.tune.Stopper`."""

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
    """Passes Tune's starts, results, ends and errors on; `base` is `ray.tune.Callback`."""

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
            self.running.lost(trial.trial_id, failure_of_trial(trial))

    observer = Observer()
    observer.running = running
    return observer


def _silence(base: Any) -> Any:
    """Replaces Tune's own printer, which keeps all trials, ended ones too.

    `base` is `ray.tune.progress_reporter.TrialProgressCallback`.
    """

    class Silence(base):
        def log_result(self, *_: Any, **__: Any) -> None:
            pass

        def on_trial_complete(self, *_: Any, **__: Any) -> None:
            pass

    return Silence()
