"""Writes scores and orders of removal as files, and as text for people."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from study import terminal
from study.prune.network_file import Network
from study.prune.scoring import Scored
from study.storage.storage import Storage

_SCORES, _ORDER = "scores.csv", "order.json"


def write(found: Scored, file: Path, out: Storage) -> None:
    """Writes scores.csv and order.json, which names the file, each whole or not at all.

    Raises:
        ResultsError: they cannot be written.
    """
    rows = io.StringIO()
    csv.writer(rows, lineterminator="\n").writerows(
        [
            ["layer", "head", *found.scores, *(f"removed_{name}" for name in found.scores)],
            *_rows(found),
        ]
    )
    out.write(_SCORES, rows.getvalue().encode())
    order = {
        "file": str(file),
        "by": found.by,
        "order": {name: [found.places[h] for h in order] for name, order in found.orders.items()},
        "theory": found.theory,
        "missing": found.missing,
    }
    lines = ",\n".join(f'  "{name}": {json.dumps(value)}' for name, value in order.items())
    out.write(_ORDER, f"{{\n{lines}\n}}\n".encode())


def text(found: Scored, network: Network, out: Storage, chosen: bool) -> str:
    """The table of the heads, in the order of removal, and what to know of it.

    Args:
        found: the scores.
        network: whose they are.
        out: where they are written.
        chosen: whether the held-out samples chose the theory's temperature.
    """
    order = found.orders[found.by]
    rows, kept = _rows(found), set(range(sum(found.heads))) - set(order)
    header = ["layer", "head", *found.scores, *(f"removed by {name}" for name in found.scores)]
    table = terminal.tabulated(header, [_cells(rows[head]) for head in (*order, *sorted(kept))])
    sentences = [
        f"Remove by {found.by} (layer.head): "
        f"{', '.join('{}.{}'.format(*found.places[head]) for head in order)}; each layer keeps "
        "its last head."
        if order
        else "Nothing can be removed: each layer has one head, which it keeps."
    ]
    if theory := found.theory:
        held_out = int(network.held_out.sum())
        sentences.append(
            f"theory: {terminal.counted(theory['num_paths'], 'path', form=',')} at width "
            f"{theory['width']:,}, solved on {len(network.held_out) - held_out:,} samples; right "
            f"of {held_out:,} held out: {100 * theory['accuracy_held_out']:.1f} %, at temperature "
            f"{theory['temperature']:g}{' (chosen on these)' if chosen else ''}."
        )
        if theory["accuracy_held_out"] <= 0.5:
            sentences.append("That is no better than a guess, so the theory's order means little.")
    sentences += [f"No {name}: {reason}." for name, reason in found.missing.items()]
    if network.ignored:
        sentences.append(f"Ignored, as they have no role: {', '.join(network.ignored)}.")
    sentences.append(f"Written: {out.path(_SCORES)} and {out.path(_ORDER)}")
    return "\n".join([*table, *map(terminal.sentence, sentences)])


def _rows(found: Scored) -> list[list[Any]]:
    """A row a head: layer, head, scores, and the step at which each removes it; "" if it stays."""
    steps = [
        {head: step for step, head in enumerate(order, start=1)} for order in found.orders.values()
    ]
    return [
        [
            *place,
            *(float(scores[head]) for scores in found.scores.values()),
            *(step.get(head, "") for step in steps),
        ]
        for head, place in enumerate(found.places)
    ]


def _cells(row: Sequence[Any]) -> list[str]:
    """A row for people."""
    return [f"{each:.3g}" if isinstance(each, float) else str(each) or "-" for each in row]
