"""One-shot images: networks that are trained, a theory of their attention, and pruned heads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import pandas as pd

from analysis.section.section import Chapter, Question
from chapters.paths.section import beside, means
from chapters.paths.section import pruned as pruning
from chapters.paths.section.networks import NETWORK, of_network, scorer_text
from chapters.paths.section.paths_section import Part, Paths, PathsSection
from chapters.paths.section.pruned import REMOVAL
from chapters.paths.section.trained import Trained, read
from study.results import Results


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[PathsSection]:
    """One section a setting; arguments and errors as of `theory_section.find`."""
    return [PathsSection(_HEADS, each) for each in read(results, results.cells(cell_ids))]


def _without_paths(make: Callable[[Trained], pd.DataFrame]) -> Callable[[Trained], pd.DataFrame]:
    """The table without a column that is ``all`` in every row."""
    return lambda setting: make(setting).drop(columns="paths")


def _parts(setting: Trained) -> Iterator[Part]:
    """The trained networks of each learning rate, and every scorer."""
    shared = {"task": setting.task, "heads": "/".join(map(str, setting.heads))}
    if len(setting.cells):
        shared["n"] = f"{setting.cells['n'].iloc[0]:g}"
    if choice := setting.facts.get("temperature_choice"):
        shared["temperature_choice"] = choice
    trained, networks, areas = (
        make(setting) for make in (pruning.trained, pruning.networks, pruning.areas)
    )
    for row in trained.to_dict("records"):
        rate = f"{row['lr']:g}"
        name = f"trained lr {rate}" if len(trained) > 1 else "trained"
        metrics = {"accuracy": row["accuracy_test"], "loss": row["loss_test"]}
        params = {"paradigm": "soft", "lr": rate, **shared}
        yield Part(name, params, {**metrics, "n": float(row["num_seeds"])})
    areas = areas[areas["order"] == REMOVAL]
    for scorer in setting.cells[NETWORK].drop_duplicates().itertuples(index=False):
        method, width, _ = scorer
        metrics = {}
        for row in of_network(networks, *scorer).to_dict("records"):
            metrics = {name: row[name] for name in pruning.MEASURES}
            metrics |= {"temperature": row["temperature_median"], "n": float(row["num_seeds"])}
        for row in of_network(areas, *scorer).to_dict("records"):
            metrics = {"n": float(row["num_seeds"]), **metrics, "area": row["area"]}
        params = {"method": str(method), "network_width": f"{width:g}", **shared}
        yield Part(scorer_text(method, width), params, metrics)


_HEADS = Paths(
    Chapter("one-shot images", "One-shot images", has_published=True),
    study="one-shot",
    says=(
        "A transformer is trained by gradient descent to tell which of two labelled images a "
        "third one matches, of characters that it has never seen. Then the theory of attention "
        "paths is solved on the attention that it learned, and gives every head a score: how much "
        "of the order parameter U passes through it. Is a network of finite width better than the "
        "limit, and does the score say which heads can go? Heads are removed from the trained "
        "network, which is not trained again, by the score and by simple rules."
    ),
    method=(
        "A seed draws the characters of each split, the episodes and the initial weights: it is a "
        "network, and networks are the sample. Intervals are t intervals over networks, and "
        "differences are paired by network. All seeds split the same characters anew, so their "
        "test splits overlap: what is decided holds for further splits of these characters, not "
        "for other characters.",
        "Theory: the order parameter U at the saddle point of its action, with the attention that "
        "the network learned; its predictor is that of a Gaussian process. Limit: the same with U "
        "the identity.",
        "Score of a head: sum of |U| over the pairs of paths that pass it, divided by the "
        "largest. Pruning: the head is set to zero in the trained network, whose layer divides by "
        "the square root of the remaining heads, and nothing is trained again; every layer keeps "
        "a head.",
        "Random: the mean over 1,000 random orders. Greedy: removes next the head whose removal "
        "leaves the best validation accuracy. Bound: the best of all sets of each size on the "
        "split itself.",
        "Verdicts: the area under the curve, the mean accuracy without 0, 1, ..., K heads, by "
        "theory minus by each other order. A row is decided if its test holds after Holm's "
        "correction over the table (p < 0.05) and there are at least 6 networks; a lost network "
        "counts against either verdict.",
    ),
    tables_of={
        "heads-trained": pruning.trained,
        "heads-networks": _without_paths(pruning.networks),
        "heads-paired": pruning.paired,
        "heads-pruning": _without_paths(pruning.pruning),
        "heads-areas": _without_paths(pruning.areas),
        "heads-positions": pruning.positions,
        "heads-ranks": pruning.ranks,
        "heads-correlations": pruning.correlations,
        "heads-order-parameters": lambda setting: means.order_parameters(
            pruning.by_score(setting)
        ),
        "heads-overlaps": means.overlaps,
        "heads-published": beside.beside_published,
    },
    parts=_parts,
)
