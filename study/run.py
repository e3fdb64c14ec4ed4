"""The command `python -m study.run STUDY`: request, plan, training, report."""

from __future__ import annotations

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
    if request.then == "show":
        print("\n".join(shown(request)))
        return DONE
    if request.shard:
        with importing(), working("starting"):
            from study.shards.run_shard import run_shard

        return run_shard(request, request.shard, began)
    with importing(), working("starting"):
        from study.concluding.choice import Choice
        from study.concluding.closing import close
        from study.drive import dry_run, opened, train
        from study.plan.course import Course
        from study.plan.describe import describe
        from study.plan.planning import divider, planned

    with opened(request) as place:
        with working("planning"):
            grid = planned(request)
            if request.trains:
                place.prepare()
            divide = divider(request, place.cluster)
            course = Course(request, grid, place, Choice(request, place), divide)
            plans = course.plans()
            texts = [describe(each, request.about, request.price_per_hour) for each in plans]
        for text in texts:
            print(text, flush=True)
        if request.then == "plan":
            for damage in place.survey.damaged:
                print(f"note: {damage.name} is damaged ({damage.reason}); a run sets it aside")
            return DONE
        if request.then == "dry run":
            dry_run(request, plans)
            return DONE
        return close(request, plans[-1], place, train(request, course, plans, place))


if __name__ == "__main__":
    run_as_command(main)
