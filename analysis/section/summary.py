"""What MLflow shows of a study: a run of each of what it compares, over its seeds.

Nothing is logged here: `study.tracking` makes the runs. Four of them side by side in MLflow's
comparison view say what the report's table says.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import numpy as np
import pandas as pd

from analysis.figures.style import line_styles
from analysis.rules.claim import Claim, Verdict, tallied
from study.tracking.runs import METRIC_STEP_FLOPS, Files, Point, Run

STATUSES = ("done", "diverged", "censored", "failed")

MOST = 98
"""Summaries of a study: with its own run fewer than 100 at the top, which is as many as MLflow's
views first show."""

DIGITS = 4
"""Decimals of a metric: MLflow's table of runs shows all that it is given."""


def summary_run(
    key: str,
    named: Sequence[str],
    note: str,
    params: Mapping[str, str],
    metrics: Mapping[str, float],
    files: Files,
    curves: Mapping[str, pd.Series] | None = None,
    paradigms: Sequence[str] = (),
    seeds: str = "",
) -> Run:
    """The run of one paradigm in one setting, or of one network, over its seeds.

    Args:
        key: ``<comparison id>/<name>``, unique over all settings.
        named: what it is of, as ``hybrid``, where, and what it reached; without empty ones, they
            are the name, which MLflow cuts.
        note: Markdown, for the run's page; its first line is the answer.
        params: settings, as text.
        metrics: at the cut, and `n`, the seeds; those that are not finite are left out and named
            in the note.
        files: gives the artifacts, when they are asked for.
        curves: metric -> its values by training FLOPs; those that are not finite are left out.
        paradigms: of the setting, each of which has its colour of the report.
        seeds: for the name, ``6 of 12``; by default `n`.
    """
    n = f"n={seeds or format(metrics['n'], 'g')}"
    name = " \N{MIDDLE DOT} ".join(filter(None, [*named, n]))
    known = {name: value for name, value in metrics.items() if math.isfinite(value)}
    unknown = [name for name in metrics if name not in known]
    note += f"\n\nNot known: {', '.join(unknown)}." if unknown else ""
    points = [Point(name, round(value, DIGITS)) for name, value in known.items()]
    for of, curve in (curves or {}).items():
        spent = curve.index.to_numpy(float)  # not known of runs that were recorded without
        finite = curve[np.isfinite(curve.astype(float)) & np.isfinite(spent)]
        points += [
            Point(of, float(y), step=int(x // METRIC_STEP_FLOPS))
            for x, y in zip(finite.index, finite, strict=True)
        ]
    tags = {"role": "summary", "mlflow.note.content": note}
    if paradigm := params.get("paradigm"):
        tags["mlflow.runColor"] = line_styles([*paradigms, paradigm])[paradigm].colour
    said = json.dumps([name, tags, params, known, points], sort_keys=True)
    state = hashlib.sha256(said.encode()).hexdigest()[:16]
    return Run(key, state, name, tags, params, points, files)


def told_apart(runs: Sequence[Run]) -> list[Run]:
    """The first `MOST` runs; names that several have get the ids of their settings."""
    counts = Counter(run.name for run in runs)
    return [
        run.renamed(f"{run.name} ({run.key[:8]})") if counts[run.name] > 1 else run
        for run in runs[:MOST]
    ]


def claims_note(claims: Sequence[Claim]) -> str:
    """Claims with verdicts and numbers, as the note of a run."""
    said = (
        f"**{claim.name} {claim.verdict}** ({claim.setting}): {claim.statement} {claim.measured}"
        for claim in claims
    )
    return "\n\n".join(filter(None, [tallied(claims), *said]))


def counts_of(claims: Iterable[Claim], cells: Iterable[pd.DataFrame]) -> dict[str, float]:
    """Metrics of a study: how many cells ended how, and tests of claims by verdict."""
    statuses = Counter(status for each in cells for status in each["status"])
    verdicts = Counter(claim.verdict for claim in claims)
    counts = {f"cells {name}": float(statuses[name]) for name in STATUSES}
    return counts | {f"claims {name}": float(verdicts[name]) for name in get_args(Verdict)}
