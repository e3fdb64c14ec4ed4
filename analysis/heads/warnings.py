"""Sentences on what is missing from the numbers of a setting, or unusual about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from analysis.attention_paths.answer import warnings as of_paths
from analysis.attention_paths.networks import THEORY
from analysis.heads.measures import vector
from analysis.heads.methods import METHODS, SCORER, SOLVED, of_scorer, scorer_text
from analysis.heads.settings import Setting
from analysis.words import listed
from study.terminal import counted

_ENDED = {"diverged": "diverged", "censored": "were stopped early"}


def warnings(setting: Setting) -> list[str]:
    """What must be said beside the numbers, in the order of the work."""
    return [
        *_of_training(setting),
        *_of_missing_cells(setting),
        *_of_outdated(setting),
        *(of_paths(setting.solved) if len(setting.solved.cells) else []),
        *_of_rules(setting),
        *_of_temperature(setting),
    ]


def _of_training(setting: Setting) -> Iterator[str]:
    if setting.trained.empty:
        yield "The cells that trained these networks are not recorded here."
    for status, words in _ENDED.items():
        rows = setting.trained[setting.trained["status"] == status].to_dict("records")
        if rows:
            names = [f"seed {row['seed']} ({_reason(row['status_reason'])})" for row in rows]
            yield f"Networks that {words} are in no mean: {', '.join(names)}."
    done = setting.networks
    unknown = done[done["without_head"].map(len) == 0] if len(done) else done
    if len(unknown):
        yield f"Not known without each of their heads: networks of {_seeds(unknown['seed'])}."


def _of_missing_cells(setting: Setting) -> Iterator[str]:
    if setting.cells.empty and setting.networks.empty:
        yield (
            "No network trained to its end, so there is nothing to score. Take another learning "
            "rate, with --set lr=..."
        )
        return
    if setting.cells.empty:
        yield (
            "No heads are scored yet: of theory, limit, pruning and rules there is no cell. Run "
            "the study again to go on."
        )
        return
    missing = [name for name in METHODS if name not in set(setting.cells["method"])]
    if missing:
        names = [name if name == THEORY else scorer_text(name) for name in missing]
        yield f"There is no cell of {listed(names)}."
    trained = set(setting.networks["seed"])
    without: dict[str, list[str]] = {}
    there = setting.cells[SCORER].drop_duplicates()
    for method, width in there.itertuples(index=False):
        lacking = trained - set(of_scorer(setting.cells, method, width)["seed"])
        if lacking:
            without.setdefault(_seeds(lacking), []).append(scorer_text(method, width))
    for seeds, names in without.items():
        yield f"Trained, but without a cell of {listed(names)}: networks of {seeds}."


def _of_outdated(setting: Setting) -> Iterator[str]:
    if len(setting.outdated):
        rows = setting.outdated.to_dict("records")
        names = [f"{scorer_text(r['method'], r['network_width'])} seed {r['seed']}" for r in rows]
        yield (
            "Their network has trained again since, to other weights, so these cells are in no "
            f"number: {', '.join(names)}. Move their files away and run the study again."
        )


def _of_rules(setting: Setting) -> Iterator[str]:
    """Diverged or stopped cells of rules; those that solve are named elsewhere."""
    cells = setting.cells
    early = cells[(cells["status"] != "done") & ~cells["method"].isin(SOLVED)]
    if len(early):
        names = [
            f"{row['method']} seed {row['seed']} ({_reason(row['status_reason'])})"
            for row in early.to_dict("records")
        ]
        yield f"Cells without numbers: {', '.join(names)}."


def _of_temperature(setting: Setting) -> Iterator[str]:
    if setting.chosen_on_test:
        yield (
            "The temperature was chosen on the test episodes, as published, and the limit's among "
            "five instead of ten: accuracies of theory and limit are optimistic, and so are the "
            "scores and orders that follow from them. So nothing is decided here."
        )
    cells = setting.solved.cells
    texts = []
    for (method, width), rows in cells.groupby(SCORER, sort=False):
        for end, which in ((min, "least"), (max, "largest")):
            count = sum(
                len(tried) > 1 and math.isclose(end(tried), chosen)
                for tried, chosen in zip(
                    rows["temperatures"].map(vector), rows["temperature"], strict=True
                )
            )
            if count:
                name = scorer_text(method, width)
                texts.append(f"{name} the {which} in {count} of {counted(len(rows), 'cell')}")
    if texts:
        yield (
            "The temperature is at an end of those that were tried, so that one beyond may be "
            f"better: {', '.join(texts)}."
        )


def _reason(reason: object) -> str:
    return str(reason) if isinstance(reason, str) and reason else "no reason recorded"


def _seeds(seeds: Iterable[int]) -> str:
    """``seed 3``, ``seeds 3 and 5``."""
    names = [str(seed) for seed in sorted(seeds)]
    return f"seed{'s' * (len(names) > 1)} {listed(names)}"
