"""What every study promises, and a tiny study of each part to its end."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from search_spaces.base import Preset, SearchSpace
from study import tasks
from study.cell.axis import possible_values
from study.cell.version import code_version
from study.cell.work import Job, Work
from study.check.promises import Promise, facts_at_hand, promise, require, skip_unless
from study.launch.run_job import run_job
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.results import Results
from study.tasks.sources.places import Places
from study.tasks.task import FactsOf

PROMISES: list[Promise] = []


class Study(NamedTuple):
    """A study, and what gives the facts of its tasks' data."""

    space: SearchSpace
    facts_of: FactsOf


_TINY: Mapping[str, Any] = {
    "m": (4,),
    "n": (120,),
    "batch_size": (16,),
    "epochs": (2,),
    "lr": (0.01,),
    "seed": (0,),
    "evaluations": (2,),
    "train_metrics_size": (40,),
    "validation_size": (40,),
    "test_size": (40,),
}


@promise("has a preset quick, and presets whose cells can be laid out", to=PROMISES)
def lays_out(study: Study) -> None:
    space, facts_of = study
    require("quick" in space.presets, "it has no preset quick, which is the default")
    for preset in space.presets:
        make_plan(space, preset, resolve(space, preset, []), facts_of)


@promise("chooses options on other seeds than it confirms them on", to=PROMISES)
def confirms(study: Study) -> None:
    space, confirming = study.space, False
    for name in space.presets:
        axes = resolve(space, name, [])
        fresh, tuned = (
            {*possible_values(axes.get(of, ()))} - {None} for of in ("confirm", "seed")
        )
        both = sorted(fresh & tuned)
        require(not both, f"preset {name} confirms on seeds that it tunes on: {both}")
        confirming |= bool(fresh)
    skip_unless(confirming, "no preset confirms anything")


def tiny_study(paradigm: str, task: str, architecture: str, places: Places) -> None:
    """Plans, trains, evaluates and records one cell.

    Raises:
        Broken: it does not end well.
        Skipped: the data is not at hand.
        RequestError: it cannot run.
    """
    own: dict[str, Any] = {"paradigm": (paradigm,), "architecture": (architecture,)}
    if fixed := tasks.modality(task).fixed_m:
        own["m"] = (fixed,)
    space = SearchSpace("check", task, "", {"quick": Preset("", {**_TINY, **own})})
    plan = make_plan(space, "quick", resolve(space, "quick", []), facts_at_hand(places))
    with tempfile.TemporaryDirectory(prefix="study-check-") as folder:
        results = Results(folder)
        results.prepare()
        work = Work(
            study="check",
            results=folder,
            code_version=code_version(),
            gpu=False,
            places=places,
        )
        run_job(Job(tuple((cell,) for cell in plan.cells)), work)
        rows = results.cells().merge(results.evaluations(), on="cell_id")
    reasons = set(rows["status_reason"].dropna())
    require((rows["status"] == "done").all(), f"its training ended as {', '.join(reasons)}")
    require(rows["loss"].notna().all(), "an evaluation has no loss")
