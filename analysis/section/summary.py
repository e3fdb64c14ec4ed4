"""What MLflow shows of a comparison: a summary of each of its groups, as plain values.

This package logs nothing: `study.tracking.tracker` makes one run of each summary. Four of them
side by side in MLflow's comparison view say what the report's table says.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

import pandas as pd

from analysis.section.claim import Claim, Verdict
from analysis.section.picture import Picture

DIGITS = 4
"""Decimals of a metric: MLflow's table of runs shows all that it is given."""

Curve = Sequence[tuple[float, float]]
"""(training FLOPs, value), by increasing compute."""


Draw = Callable[[], Mapping[str, bytes]]
"""Gives files, path -> content; draws each once."""


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """One paradigm of one comparison, or one network of attention paths, over its seeds.

    Attributes:
        key: ``<comparison_id>/<paradigm>``, unique over all comparisons.
        comparison_id: id of the comparison.
        name: for people, e.g. ``digits m=10 lvml (9a57718f)``.
        note: Markdown: the comparison's table, and which numbers are unknown.
        params: the group's setting and chosen option as text, and the verdicts of the paired
            tests (`saif_better_than`, `saif_worse_than`, `saif_undecided_against`, the same for
            `accuracy`); missing ones are absent.
        metrics: at the cut on the test split: `saif`, `accuracy` and `foreground_attention_mean`
            (fractions), `loss` (nats), of text the measures of plausibility, each with its
            `<metric>_low` and `<metric>_high`; the standard errors of SAIF and accuracy over
            seeds, images and background images, `<metric>_seed_se`, `<metric>_image_se` and
            `<metric>_background_se`; `n_seeds`, `n_diverged`, `n_images`, `n_backgrounds`.
            Rounded to four decimals; the table `summary.csv` among the files is exact. Finite
            numbers only: unknown ones (bounds with one seed, the loss of a diverged one) are
            absent here and named in the note.
        curves: `test/saif` and `test/accuracy`, means over seeds, each with `_low` and `_high`
            (fractions), against training FLOPs; finite points only.
        digest: changes when any number of the comparison changes, wherever it is shown.
    """

    key: str
    comparison_id: str
    name: str
    note: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    curves: Mapping[str, Curve]
    digest: str
    _draw: Draw = field(repr=False)

    def files(self) -> Mapping[str, bytes]:
        """Path -> content of figures (PNG) and tables (CSV, Markdown), drawn on the first call."""
        return self._draw()


def plain_summary(
    key: str,
    comparison_id: str,
    name: str,
    note: str,
    params: Mapping[str, str],
    metrics: Mapping[str, float],
    curves: Mapping[str, Curve],
    draw: Draw,
) -> GroupSummary:
    """A summary of learning dynamics; the arguments are the attributes of `GroupSummary`.

    Args:
        key: with a ``/`` in it.
        comparison_id: shared by summaries that are shown all or none.
        name, note, params: see `GroupSummary`.
        metrics: those that are not finite are left out and named in the note.
        curves: points that are not finite are left out.
        draw: gives the files, when they are asked for.
    """
    known = {n: round(v, DIGITS) for n, v in metrics.items() if math.isfinite(v)}
    unknown = [n for n in metrics if n not in known]
    finite = {
        n: [(float(x), float(y)) for x, y in points if math.isfinite(x) and math.isfinite(y)]
        for n, points in curves.items()
    }
    note += f"\n\nNot known: {', '.join(unknown)}." if unknown else ""
    exact = {n: v for n, v in metrics.items() if n in known}
    held = json.dumps([params, exact, finite, note], sort_keys=True)
    return GroupSummary(
        key=key,
        comparison_id=comparison_id,
        name=name,
        note=note,
        params=dict(params),
        metrics=known,
        curves={n: points for n, points in finite.items() if points},
        digest=hashlib.sha256(held.encode()).hexdigest()[:16],
        _draw=draw,
    )


def claim_counts(claims: Iterable[Claim]) -> dict[str, float]:
    """Metrics of a study: in how many settings each claim has each verdict.

    Verdicts that occur nowhere count 0, so that a later report replaces every number.
    """
    counts = Counter((claim.name, claim.verdict) for claim in claims)
    names = dict.fromkeys(name for name, _ in counts)
    return {
        f"claims/{name}/{verdict}": float(counts[name, verdict])
        for name in names
        for verdict in get_args(Verdict)
    }


def run_files(tables: Mapping[str, pd.DataFrame], drawn: Sequence[Picture]) -> dict[str, bytes]:
    """Path -> content of tables (CSV), pictures (PNG) and their captions, as runs hold them."""
    files = {
        f"tables/{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items()
    }
    files |= {f"figures/{p.name}.png": p.png for p in drawn}
    captions = "\n".join(f"# {p.title} ({p.name}.png)\n\n{p.caption}\n" for p in drawn)
    return files | {"figures/captions.md": captions.encode()}
