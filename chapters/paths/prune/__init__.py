"""The command `attention-study prune FILE`: scores the heads of a network that a user brings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from chapters.paths.prune.prune_options import SUFFIXES, parser
from study import terminal
from study.errors import RequestError
from study.terminal.command import DONE, guarded, importing


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done or 2 unusable request."""
    return guarded("chapters.paths.prune", lambda: _run(argv), "stopped; no file is half written")


def _run(argv: Sequence[str] | None) -> int:
    args = parser().parse_args(argv)
    file = _readable(args.file)
    with importing():
        import pandas as pd

        from chapters.paths.heads import pruning
        from chapters.paths.prune.network_file import read
        from chapters.paths.prune.scoring import scored
        from study.storage.storage import Storage

    arrays, ignored = read(file)
    out = Storage(args.out or file.with_name(f"{file.stem}-heads"), "the folder of the scores")
    out.require_writable()  # before the theory takes its time
    table, missing, theory = scored(arrays, args.by, args.width, args.temperature, args.readout)
    heads = table.groupby("layer").size().tolist()
    scores = list(table.columns[2:])
    by = args.by or scores[0]
    orders = {}
    for name in scores:
        order = pruning.by_score(table[name], heads)
        table[f"removed_{name}"] = pd.Series(range(1, len(order) + 1), order, "Int64")
        orders[name] = table.loc[order, ["layer", "head"]].to_numpy().tolist()
    facts = {"file": str(file), "by": by, "order": orders, "theory": theory, "missing": missing}
    out.make("")
    out.write("scores.csv", table.to_csv(index=False).encode())
    out.write("order.json", f"{json.dumps(facts)}\n".encode())

    shown = table.sort_values(f"removed_{by}")
    shown[scores] = shown[scores].map("{:.3g}".format)
    cells = shown.astype("string").fillna("-").to_numpy().tolist()
    print(*terminal.tabulated(list(shown.columns), cells), sep="\n")
    said = [f"In the order of removal by {by}; each layer keeps its last head."]
    if theory:
        said.append(
            f"theory: {terminal.counted(theory['num_paths'], 'path')} at width {args.width} and "
            f"temperature {theory['temperature']:g}; right on "
            f"{theory['accuracy_held_out']:.1%} of the {arrays['held_out'][0].sum()} held-out "
            "samples"
            f"{'' if args.temperature else ', which chose the temperature'}."
        )
        if theory["accuracy_held_out"] <= 0.5:
            said.append("That is no better than a guess, so the theory's order means little.")
    said += [f"No {name}: {reason}." for name, reason in missing.items()]
    if ignored:
        said.append(f"Ignored, as they have no role: {', '.join(ignored)}.")
    said.append(f"Written to {out.url}: scores.csv and order.json")
    print(*map(terminal.sentence, said), sep="\n")
    return DONE


def _readable(name: str) -> Path:
    """The file that the command is given.

    Raises:
        RequestError: it does not exist or is of another kind.
    """
    file = Path(name)
    if file.suffix.lower() not in SUFFIXES:
        raise RequestError(
            f"{file} does not end in {' or '.join(SUFFIXES)}. See `attention-study prune --help` "
            "for what such a file holds."
        )
    if not file.exists():
        raise RequestError(f"{file}: there is no such file.")
    return file
