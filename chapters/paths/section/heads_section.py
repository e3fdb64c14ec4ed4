"""One-shot images: networks that are trained, a theory of their attention, and pruned heads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.page.sentences import pair_notes
from analysis.page.tables import p_value, would_decide
from analysis.section.section import Chapter, Question, Section
from chapters.paths.heads.heads_cell import METHODS, RULES, SIMPLE, SOLVED
from chapters.paths.posterior.posterior_cell import LIMIT
from chapters.paths.section.heads.heads_claims import claims
from chapters.paths.section.heads.heads_gaps import at_ends, unscored
from chapters.paths.section.heads.heads_orders import (
    ORDER,
    areas,
    order_text,
    orders,
    paired,
    pruning,
    shown_orders,
)  # fmt: skip
from chapters.paths.section.heads.heads_pictures import pictures
from chapters.paths.section.heads.heads_published import beside_published
from chapters.paths.section.heads.heads_scores import (
    beyond_limit,
    by_score,
    correlation,
    positions,
    ranks,
    scored,
)  # fmt: skip
from chapters.paths.section.heads.heads_settings import (
    MEASURES,
    ON_TEST,
    Trained,
    read,
    solved,
    trained,
)
from chapters.paths.section.means import order_parameters, over_seeds, overlaps
from chapters.paths.section.networks import NETWORK, network_text
from chapters.paths.section.path_pictures import evenly
from chapters.paths.section.setting_section import section_of, summary, told
from study.results import Results
from study.tracking.runs import Run

CHAPTER = Chapter("one-shot images", "One-shot images", has_published=True)

_MOST_COUNTS = 9
"""Numbers of removed heads side by side, so that a page has room for their intervals."""


def find(
    results: Results, cell_ids: Collection[str], question: Question
) -> list[Section[Trained]]:
    """One section a setting; arguments and errors as of `theory_section.find`."""
    return [_section(setting) for setting in read(results, results.cells(cell_ids))]


def _section(setting: Trained) -> Section[Trained]:
    return section_of(
        CHAPTER,
        "heads",
        setting,
        label=setting.name,
        facts=_tell(setting),
        claims=claims(setting),
        draw=pictures,
        tabulate=_tables,
        summarise=_summaries,
    )


_FRAMES = (
    trained,
    solved,
    beyond_limit,
    correlation,
    paired,
    shown_orders,
    ranks,
    positions,
    beside_published,
    unscored,
    at_ends,
)
"""What templates read of a setting, by the names of these functions."""


def _tell(setting: Trained) -> Mapping[str, Any]:
    counts = sorted(set(shown_orders(setting)["removed"]))
    return told(
        setting,
        "heads_gaps",
        **{make.__name__: make(setting) for make in _FRAMES},
        pair_notes=pair_notes(paired(setting)),
        counts=evenly(counts, _MOST_COUNTS),
        methods=METHODS,
        rules=RULES,
        simple=SIMPLE,
        order=ORDER,
        on_test=ON_TEST,
        order_text=order_text,
        p_value=p_value,
        would_decide=would_decide,
    )


def _tables(setting: Trained) -> dict[str, pd.DataFrame]:
    """Those of networks without `paths`, which are all of them."""
    return {
        "heads-trained": trained(setting),
        "heads-networks": solved(setting).drop(columns="paths"),
        "heads-paired": paired(setting),
        "heads-pruning": pruning(setting).drop(columns="paths"),
        "heads-areas": areas(setting).drop(columns="paths"),
        "heads-positions": positions(setting),
        "heads-ranks": ranks(setting),
        "heads-correlations": scored(setting)[["seed", "correlation"]],
        "heads-order-parameters": order_parameters(by_score(setting)),
        "heads-overlaps": overlaps(setting),
        "heads-published": beside_published(setting),
    }


def _summaries(section: Section[Trained]) -> Iterator[Run]:
    """A run of the trained networks of each learning rate, and of every scorer, with a seed."""
    setting, rates = section.subject, trained(section.subject)
    shared = {"task": setting.variant, "heads": "/".join(map(str, setting.heads))}
    if len(setting.cells):
        shared["n"] = f"{setting.cells['n'].iloc[0]:g}"
    if choice := setting.facts.get("temperature_choice"):
        shared["temperature_choice"] = choice
    for row in rates.query("num_seeds > 0").to_dict("records"):
        rate = f"{row['lr']:g}"
        name = f"trained lr {rate}" if len(rates) > 1 else "trained"
        metrics = {"accuracy": row["accuracy_test"], "loss": row["loss_test"]}
        params = {"paradigm": "soft", "lr": rate, **shared}
        yield summary(section, name, params, {**metrics, "n": row["num_seeds"]})
    removed = orders(setting).query("order == 'removal'")[[*NETWORK, "seed", "area"]]
    cells = setting.cells.merge(removed, how="left", on=[*NETWORK, "seed"])
    temperatures = solved(setting).set_index(NETWORK)["temperature_median"].rename("temperature")
    scorers = over_seeds(cells, NETWORK, [*MEASURES, "area"]).join(temperatures, on=NETWORK)
    for row in scorers.query("num_seeds > 0").to_dict("records"):
        names = [*MEASURES, "temperature"] if row["method"] in SOLVED else []
        names += ["area"] if row["method"] != LIMIT else []
        metrics = {"n": row["num_seeds"], **{name: row[name] for name in names}}
        params = {"method": row["method"], "network_width": f"{row['network_width']:g}"}
        yield summary(section, network_text(row), params | shared, metrics)
