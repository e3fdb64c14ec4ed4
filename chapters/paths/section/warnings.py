"""Sentences on what is missing from the numbers of a setting, or unusual about them."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator

import pandas as pd

from analysis.forms import listed
from chapters.paths.heads.heads_cell import METHODS, RULES, SOLVED
from chapters.paths.posterior.posterior_cell import THEORY
from chapters.paths.section.networks import (
    LONGER_CHAINS,
    NETWORK,
    network_text,
    of_network,
    scorer_text,
)
from chapters.paths.section.settings import Setting, vectors
from chapters.paths.section.trained import Trained
from study.terminal import counted


@functools.singledispatch
def sentences(setting: Setting) -> list[str]:
    """What must be said beside the numbers of theory beside sampling."""
    return [*_of_networks(setting), *_of_shorter_chains(setting)]


@sentences.register
def of_trained(setting: Trained) -> list[str]:
    """What must be said beside the numbers of trained networks, in the order of the work."""
    return [
        *_of_training(setting),
        *_of_missing_cells(setting),
        *_of_outdated(setting),
        *_of_networks(setting),
        *_of_rules(setting),
        *_of_temperature(setting),
    ]


def _named(names: Iterable[str], rows: pd.DataFrame) -> str:
    """``theory N=10 seed 5 (the saddle's residual is 0.02), ...``: cells that ended early."""
    texts = [
        f"{name} seed {row['seed']} ({row['status_reason'] or 'no reason recorded'})".strip()
        for name, row in zip(
            names, rows.fillna({"status_reason": ""}).to_dict("records"), strict=True
        )
    ]
    return ", ".join(texts)


def _of_networks(setting: Setting) -> Iterator[str]:
    cells = setting.cells
    diverged = cells[(cells["status"] == "diverged") & ~cells["method"].isin(RULES)]
    if len(diverged):
        networks = map(network_text, diverged.to_dict("records"))
        yield f"Diverged cells are in no mean: {_named(networks, diverged)}."
    if unconverged := Counter(map(network_text, setting.unconverged.to_dict("records"))):
        names = [f"{name} ({count} of its seeds)" for name, count in unconverged.items()]
        yield f"Chains that have not converged are in no mean: {', '.join(names)}; {LONGER_CHAINS}"


def _of_shorter_chains(setting: Setting) -> Iterator[str]:
    if shorter := len(setting.recorded) - len(setting.cells):
        yield (
            "Of a network that was sampled several times, the cell with the most draws is shown; "
            f"not shown: {shorter}."
        )


# --- trained networks


def _of_training(setting: Trained) -> Iterator[str]:
    if setting.trained.empty:
        yield "The cells that trained these networks are not recorded here."
    for status, words in (("diverged", "diverged"), ("censored", "were stopped early")):
        rows = setting.trained[setting.trained["status"] == status]
        if len(rows):
            yield f"Networks that {words} are in no mean: {_named([''] * len(rows), rows)}."
    unknown = setting.networks[setting.networks["without_head"].map(len) == 0]
    if len(unknown):
        yield f"Not known without each of their heads: networks of {_seeds(unknown['seed'])}."


def _of_missing_cells(setting: Trained) -> Iterator[str]:
    cells, trained = setting.cells, set(setting.networks["seed"])
    if cells.empty and not trained:
        yield (
            "No network trained to its end, so there is nothing to score. Take another learning "
            "rate, with --set lr=..."
        )
    elif cells.empty:
        yield (
            "No heads are scored yet: of theory, limit, pruning and rules there is no cell. Run "
            "the study again to go on."
        )
    else:
        methods = set(cells["method"])
        missing = [
            name if name == THEORY else scorer_text(name)
            for name in METHODS
            if name not in methods
        ]
        if missing:
            yield f"There is no cell of {listed(missing)}."
        without: dict[str, list[str]] = {}
        for network in cells[NETWORK].drop_duplicates().itertuples(index=False):
            if lacking := trained - set(of_network(cells, *network)["seed"]):
                without.setdefault(_seeds(lacking), []).append(scorer_text(*network[:2]))
        for seeds, names in without.items():
            yield f"Trained, but without a cell of {listed(names)}: networks of {seeds}."


def _of_outdated(setting: Trained) -> Iterator[str]:
    rows = setting.outdated.to_dict("records")
    names = [f"{scorer_text(r['method'], r['network_width'])} seed {r['seed']}" for r in rows]
    if names:
        yield (
            "Their network has trained again since, to other weights, so these cells are in no "
            f"number: {', '.join(names)}. Move their files away and run the study again."
        )


def _of_rules(setting: Trained) -> Iterator[str]:
    cells = setting.cells
    early = cells[(cells["status"] != "done") & ~cells["method"].isin(SOLVED)]
    if len(early):
        yield f"Cells without numbers: {_named(early['method'], early)}."


def _of_temperature(setting: Trained) -> Iterator[str]:
    if setting.chosen_on_test:
        yield (
            "The temperature was chosen on the test episodes, as published, and the limit's among "
            "five instead of ten: accuracies of theory and limit are optimistic, and so are the "
            "scores and orders that follow from them. So nothing is decided here."
        )
    cells, texts = setting.cells[setting.cells["method"].isin(SOLVED)], []
    for (method, width, _), rows in cells.groupby(NETWORK, sort=False):
        pairs = [*zip(vectors(rows["temperatures"]), rows["temperature"], strict=True)]
        for end, which in ((min, "least"), (max, "largest")):
            at_end = (len(tried) > 1 and math.isclose(end(tried), own) for tried, own in pairs)
            if count := sum(at_end):
                name = scorer_text(method, width)
                texts.append(f"{name} the {which} in {count} of {counted(len(rows), 'cell')}")
    if texts:
        yield (
            "The temperature is at an end of those that were tried, so that one beyond may be "
            f"better: {', '.join(texts)}."
        )


def _seeds(seeds: Iterable[int]) -> str:
    """``seed 3``, ``seeds 3 and 5``."""
    names = [str(seed) for seed in sorted(seeds)]
    return f"seed{'s' * (len(names) > 1)} {listed(names)}"
