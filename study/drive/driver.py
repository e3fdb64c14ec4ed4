"""Drives a study: its missing cells train stage by stage, as far as results make them known."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pandas as pd

from study import tasks
from study.drive.launcher import Launcher, Trained, record_failures
from study.errors import RequestError
from study.kinds import KINDS
from study.launch.watching import RECORD_SECONDS, Watch
from study.launch.workplace import Workplace
from study.plan.networks_first import with_networks
from study.plan.plan import Plan
from study.plan.stages import staged
from study.results import ResultsError
from study.terminal import counted
from study.terminal.progress import Progress
from study.terminal.working import duration, working
from study.tracking.tracker import Tracker, open_tracker


@dataclass(frozen=True)
class Study:
    """A study while it runs: networks before what takes them apart, tuning before confirming.

    Attributes:
        known: gives the plan of the cells that a grid, or a search until now, makes known.
        launcher: runs them.
        confirm: seeds that confirm the chosen options; empty: the study has one stage.
        select: the validation metric that chooses.
    """

    known: Callable[[], Plan]
    launcher: Launcher
    confirm: tuple[int, ...]
    select: str

    def plans(self, failed: Collection[str] = ()) -> list[Plan]:
        """What this command has to run, one plan after the other, beside what the place holds.

        Args:
            failed: ids of cells that are not to be tried again.

        Raises:
            RequestError: see `study.plan.stages.staged`, or what it needs is not there.
        """
        place = self.launcher.place
        plan = staged(self.known(), place, self.confirm, self.select, failed)
        return self.launcher.divided(with_networks(plan, place, failed))

    def ends_with(self, stage: Plan) -> bool:
        """Whether nothing becomes known by a stage that has run, so that none follows."""
        return stage.kind == self.known().kind and stage.to_come.empty


def train(study: Study, plans: Sequence[Plan]) -> Trained:
    """Runs the missing cells of a study, stage after stage, while MLflow logs them.

    Args:
        study: its place is prepared.
        plans: as it gave them.

    Raises:
        RequestError: too few resources, or the results directory cannot be written any more.
        KeyboardInterrupt: Ctrl-C or SIGTERM; recorded cells stay.
    """
    launcher, place = study.launcher, study.launcher.place
    uri = "none" if place.shared else launcher.request.tracking
    with working("opening MLflow"):
        tracker = open_tracker(place.results, plans[-1].study, uri)
    score = tasks.modality(study.known().runnable["cell"].iloc[0].task).score
    progress = Progress(max(plan.how.concurrent for plan in plans), score=score)
    watch = Watch(
        progress,
        on_ended=lambda cell_id, status: tracker.log_cells({cell_id: status}),
        # Not before, as a trial that is tried again finds its cells by files of their own.
        on_completed=lambda ids: place.merge(ids, progress.note),
    )
    _log(tracker, plans, place)
    plans = run_stages(study, plans, watch)
    for failure in watch.failures:
        if failure.kind == "request":
            raise RequestError(failure.text)
    record_failures(launcher, plans, watch)
    _log(tracker, plans, place)
    if not (watch.stopped or place.shared):
        place.results.sweep()  # a worker may have been killed as it wrote
        for kind in {plan.kind for plan in plans}:
            KINDS[kind].sweep(place.results.storage, place.finished)
    return Trained(plans, watch.failures, tracker)


def run_stages(study: Study, plans: Sequence[Plan], watch: Watch) -> Sequence[Plan]:
    """Runs the missing cells of a study, stage after stage.

    Args:
        study: its place is surveyed after each stage.
        plans: as it gave them.
        watch: told of what the jobs tell.

    Returns:
        The plans beside what the results directory holds at the end.

    Raises:
        ResultsError: the directory has lost cells, or cannot be read.
    """
    progress, place = watch.progress, study.launcher.place
    _expect(plans, watch)
    if not any(plan.open for plan in plans):
        return plans
    with progress.shown(), study.launcher.launched(plans, watch) as launch:
        while stage := next((plan for plan in plans if plan.open), None):
            progress.note(_stage_line(stage, progress))
            if not launch(stage):
                break
            _look(place, watch, stage)
            failed = [cell_id for cell_id, end in watch.statuses.items() if end == "failed"]
            if study.ends_with(stage):
                plans = [*plans[:-1], stage.resumed({*place.finished, *failed})]
            else:
                plans = study.plans(failed)
            _expect(plans, watch)
    return plans


def _log(tracker: Tracker, plans: Sequence[Plan], place: Workplace) -> None:
    """Logs what the directory holds of these plans, whoever trained it."""
    held = place.finished
    tracker.log_cells({c.id: held[c.id] for plan in plans for c in plan.cells if c.id in held})


def _look(place: Workplace, watch: Watch, stage: Plan) -> None:
    """Looks at what the directory holds now; refuses to go on if it has lost cells."""
    failed = {cell_id for cell_id, end in watch.statuses.items() if end == "failed"}
    deadline = time.monotonic() + RECORD_SECONDS
    # A worker may still be recording what a scheduler stopped, and some file systems that nodes
    # share list a folder as it was up to a minute ago.
    for again in itertools.count():
        place.survey = place.results.survey()
        held = place.survey.statuses
        missing = watch.statuses.keys() - held.keys() - failed
        if not missing or place.survey.damaged or time.monotonic() > deadline:
            break
        if again == 1:
            cells = counted(len(missing), "cell")
            watch.progress.note(f"waiting up to {RECORD_SECONDS} s until the disk lists {cells}")
        time.sleep(0.5)
    gone = sorted(cell_id for cell_id in missing if watch.statuses[cell_id] != "censored")
    of_stage = {cell.id for cell in stage.to_run}
    if of_stage and not of_stage & (held.keys() | failed):
        gone.append(min(of_stage))
    if gone:
        place.results.records(gone)  # refuses a damaged file that may hold them
        raise ResultsError(
            f"{place.results.url} has lost cell {gone[0]}, which was recorded there. Bring the "
            "directory back: the same command goes on where this one ended."
        )


def _expect(plans: Sequence[Plan], watch: Watch) -> None:
    done = pd.concat([plan.known.loc[plan.known["done"], "id"] for plan in plans])
    to_come = pd.concat([plan.to_come["alone"] for plan in plans])
    watch.progress.expect(
        [cell for plan in plans for cell in plan.to_run],
        pd.concat([plan.seconds for plan in plans]).to_dict(),
        finished=int((~done.isin(watch.statuses)).sum()),
        to_come=len(to_come),
        seconds_to_come=float(to_come.sum()),
    )


def _stage_line(plan: Plan, progress: Progress) -> str:
    """Which stage begins, what was chosen for it, and how long the rest takes."""
    rows = plan.tuning(plan.to_come) if plan.left.empty else plan.left
    others, confirming = len(plan.tuning(rows)), plan.confirming(rows)["cell"]
    what = []
    if others:
        stage = "tuning" if plan.confirm or plan.watched else plan.kind
        what.append(f"{stage}: {counted(others, 'cell')}")
    if len(confirming):
        options = ", ".join(dict.fromkeys(cell.schedule.text for cell in confirming))
        what.append(f"confirming {options}: {counted(len(confirming), 'cell')}")
    if left := progress.seconds_left():
        what.append(f"{duration(left)} left")
    return ", ".join(what)
