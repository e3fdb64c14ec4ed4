"""Distributes cells over Ray Tune: one trial a pack of cells, workers reused between trials.

Tune finds the resources, starts the workers and notices when one is lost. What runs next, and what
becomes of what failed, `study.jobs` decides: Tune asks it for every trial, by way of a search
algorithm. A trial does not raise: it reports why it failed, so all that Tune itself calls an error
is a worker that was lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from study.cluster import ray_session
from study.errors import RequestError
from study.failures import Failure, failure_of
from study.hardware import give_back_memory
from study.jobs import Job, Jobs, Source
from study.nodes import Cluster
from study.plan import Plan
from study.sharing import ForkPoints
from study.storage.storage import Storage
from study.terminal.command import importing
from study.terminal.progress import Progress
from study.trial import Report, train_cells

Train = Callable[[Mapping[str, Any], Report], object]

PENDING_TRIALS = 64
"""Workers that may be starting at the same time on a cluster."""


def launch(
    plan: Plan,
    config: Mapping[str, Any],
    progress: Progress,
    on_cell: Callable[[str], str],
    cluster: Cluster | None = None,
    max_retries: int = 3,
    source: Source | None = None,
    judge: Any = None,
    train: Train = train_cells,
) -> list[Failure]:
    """Trains the plan's cells that are not done.

    Args:
        plan: what to run, with which resources.
        config: what `study.trial.train_cells` takes, but what differs between trials.
        progress: told of every start, evaluation and end.
        on_cell: called on the driver with the id of each cell that is recorded; gives its status.
        cluster: to train on; None starts Ray on this machine and stops it after.
        max_retries: how often a trial whose worker was lost is tried again.
        source: of further cells while the study runs.
        judge: decides which cells to stop, see `study.asha.Judge`; None: all go to their end.
        train: what a trial runs.

    Returns:
        The cells that were given up, and the bug that stopped the study, if one did.

    Raises:
        RequestError: too few resources, or the results directory cannot be written any more.
        KeyboardInterrupt: Ctrl-C; what is recorded stays.
    """
    jobs = Jobs(plan.jobs, max_retries, source)
    forks = ForkPoints(Storage(config["results"]), plan.jobs)
    running = Running(jobs, progress, on_cell, forks, source)
    train_on_ray(plan, config, running, cluster, judge, train)
    for failure in jobs.failures:
        if failure.kind == "request":
            raise RequestError(failure.text)
    return jobs.failures


def train_on_ray(
    plan: Plan,
    config: Mapping[str, Any],
    running: Running,
    cluster: Cluster | None,
    judge: Any,
    train: Train,
) -> None:
    """Runs trials until the jobs are over; the arguments are those of `launch`."""
    session = ray_session(plan.concurrent * plan.threads)
    with (
        contextlib.nullcontext(cluster.ray) if cluster else session as ray,
        _scratch(config["results"]) as storage,
    ):
        with importing():
            from ray import tune

        gpus = plan.gpus_per_trial
        if gpus is None:
            gpus = 1 if ray.cluster_resources().get("GPU") else 0
        pending = PENDING_TRIALS if cluster else plan.concurrent
        os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(pending)
        judging = ray.remote(num_cpus=0)(_Judging).remote(judge) if judge else None
        tune.Tuner(
            tune.with_resources(_trainable(train, judging), {"cpu": plan.threads, "gpu": gpus}),
            param_space={
                **config,
                "threads": plan.threads,
                "gpu": gpus > 0,
                "share": plan.share,
            },
            tune_config=tune.TuneConfig(
                num_samples=-1,
                search_alg=_search_algorithm(tune.search.Searcher, running, plan.max_concurrent),
                scheduler=_scheduler(tune.schedulers.FIFOScheduler, running),
                reuse_actors=True,
                trial_name_creator=_trial_name,
                trial_dirname_creator=_trial_name,
            ),
            run_config=tune.RunConfig(
                name=plan.study,
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

        carry_out(train, config, report)

    return trial


def carry_out(train: Train, config: Mapping[str, Any], report: Report) -> None:
    """A trial; it does not raise, but reports why it failed."""
    failure = None
    try:
        train(config, report)
    except Exception as error:
        failure = failure_of(error)
    if failure is not None:  # here nothing holds on to its tensors any more
        give_back_memory()
        report({"event": "failure", "kind": failure.kind, "text": failure.text})


def config_of(job: Job) -> dict[str, Any]:
    """What `study.trial.train_cells` is told of a job."""
    return {
        "cells": [cell.to_dict() for cell in job.cells],
        "fork_steps": list(job.fork_steps),
    }


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
            return {"name": f"{job.ids[0]}-{trial_id}", **config_of(job)}

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


class Running:
    """The trials that run: what they tell, and what their ends mean for the jobs.

    Args:
        jobs: of the study.
        progress: told of every start, evaluation and end.
        on_cell: as for `launch`.
        forks: removed where no cell needs them any more.
        source: of further cells, told of their ends.

    Attributes:
        job: Tune's id of a trial -> its job.
    """

    def __init__(
        self,
        jobs: Jobs,
        progress: Progress,
        on_cell: Callable[[str], str],
        forks: ForkPoints,
        source: Source | None = None,
    ) -> None:
        self.jobs = jobs
        self.job: dict[str, Job] = {}
        self._progress = progress
        self._on_cell = on_cell
        self._forks = forks
        self._source = source
        self._reported: dict[str, Failure] = {}

    def start(self, trial_id: str) -> Job | None:
        """The job of a new trial, None where there is none for now."""
        try:
            job = self.jobs.take()
        except RequestError as error:  # of the source
            self.jobs.stop(failure_of(error))
            return None
        if job is not None:
            self.job[trial_id] = job
        return job

    def started(self, trial_id: str) -> None:
        """A worker has begun with a trial."""
        for cell_id in self.job[trial_id].ids:
            self._progress.started(cell_id)

    def told(self, trial_id: str, event: Mapping[str, Any]) -> None:
        """An event of `study.trial.Report`, or a failure that the trial reported."""
        match event.get("event"):
            case "evaluation":
                self._progress.evaluated(event)
            case "fork":
                self.jobs.forked(event["cell_id"], event["steps"])
            case "note":
                self._progress.note(event["text"])
            case "failure":
                self._reported[trial_id] = Failure(event["kind"], event["text"])

    def completed(self, trial_id: str) -> None:
        """A trial returned: its cells are recorded, unless it reported a failure."""
        job = self.job.pop(trial_id)
        failure = self._reported.pop(trial_id, None)
        if failure is None:
            try:
                for cell_id in job.ids:
                    self._end(cell_id, self._on_cell(cell_id))
                    self._forks.ended(cell_id)
                self.jobs.ended(job)
                return
            except RequestError as error:  # of the results directory: nothing can be recorded
                failure = failure_of(error)
        self._fail(job, failure)

    def lost(self, trial_id: str, failure: Failure) -> None:
        """A trial's worker is gone."""
        self._reported.pop(trial_id, None)
        self._fail(self.job.pop(trial_id), failure)

    def _fail(self, job: Job, failure: Failure) -> None:
        again = self.jobs.failed(job, failure)
        for cell_id in job.ids:
            if again is None:
                self._end(cell_id, "failed")
            else:
                self._progress.waiting(cell_id)
        if not self.jobs.stopped:  # what stops a study is told at the end
            what = f"{failure.kind} ({failure.reason}); {again or 'given up'}"
            self._progress.note(f"cell {', '.join(job.ids)}: {what}")

    def _end(self, cell_id: str, status: str) -> None:
        self._progress.ended(cell_id, status)
        if self._source is not None:
            self._source.ended(cell_id, status)


def _failure_of_trial(trial: Any) -> Failure:
    """Why Tune calls a trial failed although its code raised nothing.

    Tune keeps the error as text and as a pickle, in a folder that others on this machine could
    write: only the text is read.
    """
    file = trial.error_file
    text = Path(file).read_text() if file and os.path.exists(file) else ""
    if "low on memory" in text:
        return Failure("out of memory", "Ray stopped its worker before the machine ran out")
    if "failed to import on the worker" in text:
        node, why = re.search(r"ip: (\S+)", text), re.search(r"\w*Error: (No module.*)", text)
        return Failure(
            "request",
            f"node {node[1] if node else ''} cannot import this project "
            f"({why[1] if why else 'see its logs'}). Install it there at the same path, with `uv "
            "sync --no-dev --extra cluster`, and start Ray from its environment; or take it out "
            "of the cluster. The same command goes on.",
        )
    if "Traceback" in text:  # of Tune or of the start of a worker
        return Failure("bug", text)
    return Failure("worker lost", "its process or its node died")
