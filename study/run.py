"""The command `python -m study.run STUDY`: request, plan, stages, conclusion."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

from study.terminal.command import DONE, guarded, importing, run_as_command
from study.terminal.working import working


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done, 1 cells failed, 2 unusable request."""
    stopped = "stopped; the same command goes on where this one ended"
    return guarded("study.run", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    began = time.monotonic()
    with importing():
        from study.run_options import requested, shown

    request = requested(argv)  # before the imports of PyTorch and pandas, which take seconds
    if request.verb == "show":
        print("\n".join(shown(request)))
        return DONE
    with importing(), working("starting"):
        from study.drive.again import again
        from study.drive.as_shard import AsShard
        from study.drive.driver import Study, train
        from study.drive.dry_run import dry_run
        from study.drive.on_ray import OnRay
        from study.drive.opened import opened
        from study.plan.planning import planned

        if request.search:
            from study.search.search import Search, searched

    if request.again:
        return again(request.again, request.results, request.space.name, request.places)
    with working("planning"):
        grid = searched(request) if request.search else planned(request)
    if request.verb == "dry run":
        return dry_run(request, grid)
    with opened(request) as place:
        with working("planning"):
            if request.verb == "plan":
                place.look()
            else:
                place.prepare()
            search = Search.of(request, grid, place) if request.search else None
            launcher = (
                AsShard(request, place, request.shard, began)
                if request.shard
                else OnRay(request, place, search)
            )
            known = functools.partial(search.known, grid) if search else lambda: grid
            study = Study(known, launcher, request.confirm, request.select)
            plans = study.plans()
        print(launcher.describe(plans), flush=True)
        if request.verb == "plan":
            for damage in place.survey.damaged:
                print(f"note: {damage.name} is damaged ({damage.reason}); a run sets it aside")
            return DONE
        return launcher.close(train(study, plans))


if __name__ == "__main__":
    run_as_command(main)
