"""What MLflow shows of a comparison: a summary of each of its groups, as plain values.

This package logs nothing: `study.tracking.tracker` makes one run of each summary. Four of them
side by side in MLflow's comparison view say what the report's table says.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import pandas as pd

from analysis.choice import PLAUSIBILITY, SUMMARISED
from analysis.claims import Claim, Verdict
from analysis.comparison import Comparison
from analysis.figures import METRIC_LABELS, learning_curve
from analysis.groups import paradigm_order
from analysis.pictures import Picture, pictures
from analysis.rationales import share_sentences
from analysis.tables import comparison_markdown, number

_SPLIT = "test"
_MEASURED = [*SUMMARISED, *PLAUSIBILITY, "saif_iqm", "accuracy_iqm"]
_INVERSE = {"better": "worse", "worse": "better"}
_DIGITS = 4
"""Decimals of a metric: MLflow's table of runs shows all that it is given."""

Curve = Sequence[tuple[float, float]]
"""(training FLOPs, value), by increasing compute."""


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """One paradigm of one comparison, its chosen option summarised over the seeds.

    Attributes:
        key: ``<comparison_id>/<paradigm>``, which no other group of any comparison has.
        comparison_id: of the comparison.
        name: for people, e.g. ``digits m=10 lvml (9a57718f)``.
        note: Markdown: the comparison's table, and which numbers are not known.
        params: the group's setting and chosen option as text, and the verdicts of the paired
            tests (`saif_better_than`, `saif_worse_than`, `saif_undecided_against`, the same for
            `accuracy`); what it does not have is absent.
        metrics: at the cut on the test split: `saif`, `accuracy` and `foreground_attention_mean`
            (fractions), `loss` (nats), of text the measures of plausibility, each with its
            `<metric>_low` and `<metric>_high`; `saif_iqm` and `accuracy_iqm` likewise; `n_seeds`
            and `n_diverged`. Rounded to four decimals; the table `summary.csv` among the files is
            exact. Finite numbers only: what is not known (bounds with one seed, the loss of a
            diverged one) is absent here and named in the note.
        curves: `test/saif` and `test/accuracy`, means over seeds, each with `_low` and `_high`
            (fractions), against training FLOPs; finite points only.
        digest: changes when a number of the comparison does, wherever it is shown.
    """

    key: str
    comparison_id: str
    name: str
    note: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    curves: Mapping[str, Curve]
    digest: str
    _draw: Callable[[], Mapping[str, bytes]] = field(repr=False)

    def files(self) -> Mapping[str, bytes]:
        """Path -> content of figures (PNG) and tables (CSV, Markdown), drawn on the first call."""
        return self._draw()


def group_summaries(
    comparison: Comparison, drawn: Sequence[Picture] | None = None
) -> list[GroupSummary]:
    """One summary a paradigm, in the order of the comparison's table.

    Args:
        comparison: as `analysis.comparison.compare` gives it.
        drawn: its pictures, where they are at hand.

    Returns:
        None for a paradigm that has no option which can be chosen.
    """
    curves = _curves(comparison)
    if comparison.summary.empty:
        return []
    table = "\n\n".join([_markdown(comparison), *share_sentences(comparison)])
    numbers = [table.to_csv(index=False) for table in _tables(comparison).values()]
    draw = functools.cache(lambda: _files(comparison, drawn))
    found = []
    for row in comparison.summary.to_dict("records"):
        paradigm = str(row["paradigm"])
        params = _params(row) | _of_text(comparison.settings)
        params |= {"saif_threshold": number(comparison.threshold)}
        params |= _verdicts(comparison.paired, paradigm)
        values = _metrics(row)
        known = {n: round(value, _DIGITS) for n, value in values.items() if math.isfinite(value)}
        unknown = [name for name in values if name not in known]
        note = table + (f"\n\nNot known: {', '.join(unknown)}." if unknown else "")
        mine = curves.get(paradigm, {})
        held = json.dumps([params, known, mine, note, numbers], sort_keys=True)
        found.append(
            GroupSummary(
                key=f"{row['comparison_id']}/{paradigm}",
                comparison_id=str(row["comparison_id"]),
                name=f"{comparison.name} {paradigm} ({row['comparison_id'][:8]})",
                note=note,
                params=params,
                metrics=known,
                curves=mine,
                digest=hashlib.sha256(held.encode()).hexdigest()[:16],
                _draw=draw,
            )
        )
    return found


def plain_summary(
    key: str,
    comparison_id: str,
    name: str,
    note: str,
    params: Mapping[str, str],
    metrics: Mapping[str, float],
    curves: Mapping[str, Curve],
    draw: Callable[[], Mapping[str, bytes]],
) -> GroupSummary:
    """A summary of learning dynamics; the arguments are the attributes of `GroupSummary`.

    Args:
        key: with a ``/`` in it.
        comparison_id: what several summaries have in common that are shown all or none.
        name, note, params: see `GroupSummary`.
        metrics: what is not finite is left out and named in the note.
        curves: points that are not finite are left out.
        draw: gives the files, when they are asked for.
    """
    known = {n: round(v, _DIGITS) for n, v in metrics.items() if math.isfinite(v)}
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
        _draw=functools.cache(draw),
    )


def claim_counts(claims: Iterable[Claim]) -> dict[str, float]:
    """Metrics of a study: in how many settings each claim has each verdict.

    Also those that it has nowhere, 0, so that a later report replaces every number of this one.
    """
    counts = Counter((claim.name, claim.verdict) for claim in claims)
    names = dict.fromkeys(name for name, _ in counts)
    return {
        f"claims/{name}/{verdict}": float(counts[name, verdict])
        for name in names
        for verdict in get_args(Verdict)
    }


def _params(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """What differs first: the comparison view shows them in this order, or by name."""
    option = {"lr": number(row["lr"])}
    if not pd.isna(row["switch_point"]):
        option |= {"last_lr": number(row["last_lr"]), "switch_point": number(row["switch_point"])}
    budget = f"{number(row['budget_amount'])} {row['budget_unit']}"
    return {
        "paradigm": str(row["paradigm"]),
        **option,
        "options_tried": str(row["num_options"]),
        "chosen_by": f"validation {row['select']}",
        **{name: str(row[name]) for name in ("task", "m", "n", "architecture", "batch_size")},
        "budget": budget,
        "cut": number(row["cut"]),
    }


def _of_text(settings: Mapping[str, Any]) -> dict[str, str]:
    names = ("label_rule", "rationale_rule", "min_count", "inference")
    return {name: str(settings[name]) for name in names if name in settings}


def _metrics(row: Mapping[Hashable, Any]) -> dict[str, float]:
    names = [f"{metric}{end}" for metric in _MEASURED for end in ("", "_low", "_high")]
    values = {name: float(row[name]) for name in names if name in row}
    counts = {"n_seeds": row["num_seeds"], "n_diverged": row["num_diverged"]}
    return values | {name: float(value) for name, value in counts.items()}


def _verdicts(paired: pd.DataFrame, paradigm: str) -> dict[str, str]:
    """What the paired tests say of one paradigm, e.g. ``saif_better_than``: ``hard, soft``."""
    found: dict[str, list[str]] = {}
    for row in paired.to_dict("records"):
        verdict, other = str(row["verdict"]), str(row["second"])
        if paradigm == row["second"]:
            verdict, other = _INVERSE.get(verdict, verdict), str(row["first"])
        if paradigm in (row["first"], row["second"]):
            end = "than" if verdict in _INVERSE else "against"
            found.setdefault(f"{row['metric']}_{verdict}_{end}", []).append(other)
    return {name: ", ".join(paradigm_order(others)) for name, others in found.items()}


def _curves(comparison: Comparison) -> dict[str, dict[str, Curve]]:
    """Paradigm -> name -> curve."""
    found: dict[str, dict[str, Curve]] = {}
    for metric in METRIC_LABELS:
        table = learning_curve(comparison.evaluations, metric, _SPLIT)
        # A mean over other seeds than before would look like progress.
        table = table[table["num_seeds"] == table["num_cells"]]
        for paradigm, rows in table.groupby("paradigm"):
            for column, end in (("mean", ""), ("low", "_low"), ("high", "_high")):
                finite = rows[np.isfinite(rows[column])]
                points = zip(finite["compute_flops"], finite[column], strict=True)
                curve = sorted((float(x), float(y)) for x, y in points)
                if curve:
                    found.setdefault(str(paradigm), {})[f"{_SPLIT}/{metric}{end}"] = curve
    return found


def _files(comparison: Comparison, drawn: Sequence[Picture] | None) -> dict[str, bytes]:
    """What all groups of a comparison show, by path."""
    drawn = pictures(comparison) if drawn is None else drawn
    text = _markdown(comparison).encode()
    return run_files(_tables(comparison), drawn) | {"tables/comparison.md": text}


def _markdown(comparison: Comparison) -> str:
    return comparison_markdown(
        comparison.summary, threshold=comparison.threshold, name=comparison.name
    )


def _tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    return {
        "summary": comparison.summary,
        "paired": comparison.paired,
        "options": comparison.options,
        "effort": comparison.effort,
    }


def run_files(tables: Mapping[str, pd.DataFrame], drawn: Sequence[Picture]) -> dict[str, bytes]:
    """Path -> content of tables (CSV), pictures (PNG) and their captions, as runs hold them."""
    files = {
        f"tables/{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items()
    }
    files |= {f"figures/{p.name}.png": p.png for p in drawn}
    captions = "\n".join(f"# {p.title} ({p.name}.png)\n\n{p.caption}\n" for p in drawn)
    return files | {"figures/captions.md": captions.encode()}
