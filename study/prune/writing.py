"""Writes scores and orders of removal as files, and as text for people."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from study import terminal
from study.errors import RequestError
from study.prune.scoring import Scored
from study.storage.storage import Storage

SCORES_FILE, ORDER_FILE = "scores.csv", "order.json"
_WHAT = "the folder of the scores"


def require_place(out: Path) -> None:
    """Refuses to go on where nothing can be written, before the theory is solved.

    Raises:
        RequestError: a file is in the way, or the folder is not writable.
    """
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise RequestError(
            f"{there} is a file: nothing can be written to {out}. Choose --out DIR."
        )
    for name in (SCORES_FILE, ORDER_FILE):
        if (out / name).is_dir():
            raise RequestError(f"{out / name} is a directory. Move it, or choose --out DIR.")
    Storage(there, _WHAT).probe("")


def write(found: Scored, out: Path) -> None:
    """Writes scores.csv and order.json, each whole or not at all.

    Raises:
        ResultsError: they cannot be written.
    """
    storage = Storage(out, _WHAT)
    storage.make("")
    storage.write(SCORES_FILE, _csv(found).encode())
    lines = [f'  "{name}": {json.dumps(value)}' for name, value in _order(found).items()]
    storage.write(ORDER_FILE, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def text(found: Scored, out: Path) -> str:
    """The table of the heads, in the order of removal, and what to know of it."""
    return "\n".join([*_table(found), *map(terminal.sentence, _sentences(found, out))])


def _csv(found: Scored) -> str:
    """A row a head: layer, head, scores, and the step at which each score removes it."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = list(found.scores)
    writer.writerow(["layer", "head", *names, *(f"removed_{name}" for name in names)])
    for number, place in enumerate(found.places):
        values = [float(found.scores[name][number]) for name in names]
        writer.writerow([*place, *values, *(_step(found, name, number) for name in names)])
    return file.getvalue()


def _step(found: Scored, name: str, number: int) -> str:
    """The step at which a score removes a head, from 1; empty if it stays."""
    order = found.orders[name]
    return str(order.index(number) + 1) if number in order else ""


def _order(found: Scored) -> dict[str, Any]:
    """What order.json holds."""
    theory = found.theory
    return {
        "by": found.by,
        "order": {
            name: [list(found.places[head]) for head in order]
            for name, order in found.orders.items()
        },
        "theory": None
        if theory is None
        else {
            "width": theory.width,
            "temperature": theory.temperature,
            "readout": found.readout,
            "residual": theory.residual,
            "accuracy_held_out": theory.accuracy,
            "num_paths": theory.paths,
        },
        "missing": dict(found.missing),
    }


def _table(found: Scored) -> list[str]:
    """Heads in the order of removal, those that stay last."""
    names = list(found.scores)
    header = ["layer", "head", *names, *(f"removed by {name}" for name in names)]
    first = found.orders[found.by]
    kept = [number for number in range(len(found.places)) if number not in first]
    cells = [
        [
            *map(str, found.places[number]),
            *(f"{found.scores[name][number]:.3g}" for name in names),
            *(_step(found, name, number) or "-" for name in names),
        ]
        for number in (*first, *kept)
    ]
    return terminal.tabulated(header, cells)


def _sentences(found: Scored, out: Path) -> list[str]:
    """What the table does not say."""
    order = ", ".join("{}.{}".format(*found.places[head]) for head in found.orders[found.by])
    if order:
        said = [f"Remove by {found.by} (layer.head): {order}; each layer keeps its last head."]
    else:
        said = ["Nothing can be removed: each layer has one head, which it keeps."]
    if theory := found.theory:
        paths = "1 path" if theory.paths == 1 else f"{theory.paths:,} paths"
        chosen = " (chosen on these)" if theory.chosen else ""
        said.append(
            f"theory: {paths} at width {theory.width:,}, solved on {theory.solved_on:,} samples; "
            f"right of {theory.held_out:,} held out: {100 * theory.accuracy:.1f} %, at "
            f"temperature {theory.temperature:g}{chosen}."
        )
    said += [f"No {name}: {reason}." for name, reason in found.missing.items()]
    if found.ignored:
        said.append(f"Ignored, as they have no role: {', '.join(found.ignored)}.")
    return [*said, f"Written: {out / SCORES_FILE} and {out / ORDER_FILE}"]
