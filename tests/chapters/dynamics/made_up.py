"""What learning dynamics bring to the tests that are for all."""

from __future__ import annotations

from study.cell import Options
from study.results import Results
from tests.chapters.dynamics import focus_results as held
from tests.chapters.dynamics import trajectory_results as trajectories
from tests.made_up.chapters import Brought, Reported
from tests.made_up.layout import Layout
from tests.made_up.tiny_studies import MOSAICS


def fixed_focus(results: Results) -> None:
    """More settings than one section has room for, a paradigm that section 3 does not know."""
    for m in (5, 10, 20):
        held.record_all(results, seeds=1, m=m)
    held.record(results, held.focus_cell("hybrid"), 1 / 3)


def linear_orthogonal(results: Results) -> None:
    trajectories.write_study(results, seeds=2, pairs=((5, 3), (20, 20)))
    trajectories.write(
        results, trajectories.make_cell(seed=9), status="diverged", points=(0, 0.05)
    )


BROUGHT = Brought(
    layouts={
        "linear orthogonal": Layout("linear-orthogonal", None, Options(num_classes=3)),
    },
    studies={
        "fixed focus": f"fixed-focus --set {MOSAICS} task=digits architecture=perceptron seed=0 "
        "alpha=0.2,1",
        "linear orthogonal": f"linear-orthogonal --set {MOSAICS} num_classes=3 seed=0",
    },
    results={
        "fixed focus": Reported(fixed_focus, "chapters.dynamics.section.fixed_focus"),
        "linear orthogonal": Reported(linear_orthogonal, "chapters.dynamics.section.trajectories"),
    },
)
