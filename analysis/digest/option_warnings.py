"""What must be said of options: why some cannot be chosen, and which lie at the edge of a grid."""

from __future__ import annotations

import pandas as pd

from analysis.digest.choose import has_score
from analysis.groups import Select, paradigm_order
from analysis.words import listed, metric_name, number

STOPPED, UNSWITCHED, SEEDS, SCORE = "stopped", "unswitched", "seeds", "score"


def barred(options: pd.DataFrame, select: Select = "accuracy") -> pd.Series:
    """Why each option cannot be chosen.

    Args:
        options: as `analysis.digest.choose.options` gives them, of one comparison.
        select: metric that chooses, see `analysis.digest.choose.choose`.

    Returns:
        A reason an option, with the index of `options`: `STOPPED` (a seed was censored),
        `UNSWITCHED` (a seed was in its first phase at the cut), `SEEDS` (it lacks one that
        another option of its paradigm has), `SCORE` (its validation score is not known), the
        first that applies; empty where it can be chosen.
    """
    reasons = pd.Series("", index=options.index, dtype=object)
    for reason, applies in (
        (SCORE, ~has_score(options, select)),
        (SEEDS, ~options["can_be_chosen"]),
        (UNSWITCHED, options["num_unswitched"] > 0),
        (STOPPED, options["num_censored"] > 0),
    ):
        reasons[applies] = reason
    return reasons


def barred_sentences(
    options: pd.DataFrame, cells: pd.DataFrame, select: Select = "accuracy"
) -> list[str]:
    """One sentence for each paradigm and reason that bars some of its options from the choice.

    Args:
        options, select: see `barred`.
        cells: one row a cell of the comparison, with `task` and `paradigm`.
    """
    reasons = barred(options, select)
    task = str(cells["task"].iloc[0])
    score = f"validation {metric_name(select, task=task)}"
    texts = []
    for name in paradigm_order(cells["paradigm"]):
        mine = reasons[options["paradigm"] == name]
        if mine.empty:
            texts.append(f"{name}: nothing was evaluated on validation, so nothing can be chosen.")
        found = [
            reason for reason in (STOPPED, UNSWITCHED, SEEDS, SCORE) if (mine == reason).any()
        ]
        for reason in found:
            count = int((mine == reason).sum())
            texts.append(f"{name}: {_sentence(reason, count, len(mine), score)}")
        if len(found) > 1 and (mine != "").all():
            texts.append(f"{name}: so no option can be chosen.")
    return texts


def _sentence(reason: str, count: int, of: int, score: str) -> str:
    if count == of:
        every = {
            STOPPED: "every option has a censored seed",
            UNSWITCHED: "no option had switched within the cut",
            SEEDS: "every option lacks seeds that others have, and means over different seeds "
            "are not compared",
            SCORE: f"no option has a known {score}",
        }[reason]
        return f"{every}, so none can be chosen."
    one = count == 1
    some = {
        STOPPED: f"{'was' if one else 'were'} stopped early and cannot be chosen",
        UNSWITCHED: "had not switched within the cut and cannot be chosen",
        SEEDS: f"{'lacks' if one else 'lack'} seeds that others have and cannot be chosen until "
        "they are run",
        SCORE: f"{'has' if one else 'have'} no known {score} and cannot be chosen",
    }[reason]
    return f"{count} of {of} options {some}."


def edge_warnings(options: pd.DataFrame, choice: pd.DataFrame) -> list[str]:
    """One sentence for each end of an axis that is chosen, with the paradigms that chose it.

    The axes are the learning rate, or, of a schedule with phases, the first and last learning rate
    and the switch point.

    Args:
        options: as `analysis.digest.choose.options` gives it, of one comparison.
        choice: as `analysis.choose` gives it.
    """
    chosen_for: dict[str, list[str]] = {}
    for pick in choice.to_dict("records"):
        tried = options[options["paradigm"] == pick["paradigm"]]
        for name, column in _axes(tried).items():
            grid = sorted(tried[column].dropna().unique())
            if len(grid) > 1 and pick[column] in (grid[0], grid[-1]):
                end = "smallest" if pick[column] == grid[0] else "largest"
                text = (
                    f"The {name} {number(pick[column])} chosen for {{}} is the {end} of the "
                    f"{len(grid)} tried: a better one may lie beyond."
                )
                chosen_for.setdefault(text, []).append(str(pick["paradigm"]))
    return [text.format(listed(names)) for text, names in chosen_for.items()]


def _axes(tried: pd.DataFrame) -> dict[str, str]:
    """Name -> column of each axis that was searched in one group."""
    if tried["switch_point"].isna().all():
        return {"learning rate": "lr"}
    switch = {"switch point": "switch_point"}
    if (tried["lr"] == tried["last_lr"]).all():  # one rate for all phases: one warning
        return {"learning rate": "lr"} | switch
    return {"first learning rate": "lr", "last learning rate": "last_lr"} | switch
