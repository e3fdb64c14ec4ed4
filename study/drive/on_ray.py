"""Runs a study on Ray, on this machine or a cluster; in this process if no Ray starts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from study.cell.version import source_digest
from study.drive.launcher import Launch, Launcher, Trained
from study.hardware import gpu_count
from study.launch.cluster import NoRay, ray_session
from study.launch.here import Pace
from study.launch.watching import Watch
from study.launch.workplace import Workplace
from study.plan.describe import describe
from study.plan.plan import Plan
from study.plan.planning import divided
from study.request import Request
from study.terminal.command import importing

if TYPE_CHECKING:
    from study.search.search import Search


class OnRay(Launcher):
    """Runs all cells of a study.

    Args:
        request: what was asked for.
        place: where they run.
        search: suggests options; None: they are those of a grid.
    """

    def __init__(self, request: Request, place: Workplace, search: Search | None) -> None:
        super().__init__(request, place)
        self._search = search

    def taken(self, plans: Sequence[Plan]) -> Sequence[Plan]:
        return plans

    def divide(self, plan: Plan) -> Plan:
        return divided(self.request, plan, self.place.cluster)

    def describe(self, plans: Sequence[Plan]) -> str:
        about, price = self.request.about, self.request.price_per_hour
        return "\n".join(describe(plan, about, price) for plan in plans)

    def close(self, trained: Trained) -> int:
        """Prints results, writes the report and MLflow's summaries, and lists failures."""
        with importing():
            from study.drive.closing import close

        if self._search and not trained.bug:
            print(self._search.summary(self.request.select))
        return close(self.request, self.place, trained)

    @contextlib.contextmanager
    def launched(self, plans: Sequence[Plan], watch: Watch) -> Iterator[Launch]:
        """Gives what runs a stage.

        Raises:
            NoRay: and a search or a scheduler needs it.
        """
        with contextlib.ExitStack() as stack:
            try:
                launch = stack.enter_context(self.on_ray(plans, watch))
            except NoRay as error:
                if self._search or self.request.scheduler:
                    need = "--search and --scheduler need it: run the command again when it can"
                    raise NoRay(f"{error}. {need} start.") from None
                watch.progress.note(f"{error}; cells train in this process, one after the other")

                def launch(plan: Plan) -> bool:
                    left = self.run_here(plan, watch, Pace(lambda job: 0.0))
                    return not (left or watch.stopped)

            yield launch

    @contextlib.contextmanager
    def on_ray(self, plans: Sequence[Plan], watch: Watch) -> Iterator[Launch]:
        """Gives what runs a stage on the cluster, or else on a Ray of this machine.

        Raises:
            NoRay: it does not start.
        """
        watch.progress.note(f"starting Ray's workers on {plans[-1].how.where}")  # most of the time
        results, cluster = self.place.results, self.place.cluster
        origin = results.origin()
        if cluster is not None:
            cluster.require(results.url, origin)
        source = source_digest() if cluster else None
        cores = max(plan.how.concurrent * plan.how.threads for plan in plans)
        own = ray_session(cores, watch.progress.note, gpu_count())
        with contextlib.nullcontext(cluster.ray) if cluster else own as ray:
            with importing():
                from study.launch.tune import run_trials

            def launch(plan: Plan) -> bool:
                gpus = plan.how.gpus_per_trial
                if gpus is None:
                    gpus = 1 if ray.cluster_resources().get("GPU") else 0
                # Of what is suggested, else one worker would start after the other.
                most = plan.how.concurrent if plan.searches else None
                run_trials(
                    self.suggestions(plan, watch) if plan.searches else plan.jobs,
                    replace(self.work(plan), origin=origin, source=source, gpu=gpus > 0),
                    watch,
                    gpus_per_trial=gpus,
                    max_concurrent=self.request.max_concurrent or most,
                    max_retries=self.request.max_retries,
                    scheduler=self.scheduler(),
                )
                return not watch.stopped

            yield launch

    def suggestions(self, plan: Plan, watch: Watch) -> Any:
        """What hands Tune the options of the search."""
        from study.search.under_tune import Suggestions

        assert self._search  # the plan says so
        seconds = plan.to_come.groupby("label")["alone"].mean()
        return Suggestions(self._search, watch, lambda cell: seconds[cell.label])

    def scheduler(self) -> Any:
        """What stops options early; None: nothing does."""
        if not self.request.scheduler:
            return None
        from study.search.over_seeds import recorded
        from study.search.under_tune import Halving

        there = self.place.survey.statuses  # not of a directory that holds nothing
        earlier = recorded(self.place.results) if there else None
        return Halving(self.request.judged_by, earlier)
