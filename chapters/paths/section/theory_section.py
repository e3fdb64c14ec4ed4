"""Theory beside sampling: networks that are solved and sampled, not trained."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.section.section import Chapter, Question, Section
from chapters.paths.posterior.posterior_cell import LIMIT, THEORY
from chapters.paths.section.means import order_parameters, overlaps
from chapters.paths.section.networks import NETWORK, line, network_text, of_network
from chapters.paths.section.setting_section import section_of, summary, told
from chapters.paths.section.settings import Setting
from chapters.paths.section.theory.theory_claims import claims
from chapters.paths.section.theory.theory_pictures import pictures
from chapters.paths.section.theory.theory_published import beside_prototype
from chapters.paths.section.theory.theory_settings import MEASURES, agreement, networks, read
from study.results import Results
from study.tracking.runs import Run

CHAPTER = Chapter("attention paths", "Attention paths", has_published=True)

_PARAMS = ("variant", "sigma_perp", "n", "tokens", "temperature", "heads")
_AGREEMENT = ["predictor_error", "accuracy_difference", "r_hat", "effective_sample_size"]


def find(
    results: Results, cell_ids: Collection[str], question: Question
) -> list[Section[Setting]]:
    """One section a setting: plain, noisy, own.

    Args:
        results: the directory.
        cell_ids: ids of these cells, at least one.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: see `chapters.paths.section.theory.theory_settings.read`.
    """
    return [_section(setting) for setting in read(results, results.cells(cell_ids))]


def _section(setting: Setting) -> Section[Setting]:
    return section_of(
        CHAPTER,
        "theory",
        setting,
        label=setting.variant,
        facts=_tell(setting),
        claims=claims(setting),
        draw=pictures,
        tabulate=_tables,
        summarise=_summaries,
    )


def _tell(setting: Setting) -> Mapping[str, Any]:
    table = networks(setting)
    there = table[table["num_seeds"] > 0]
    return told(
        setting,
        "theory_gaps",
        networks=table,
        theory=line(there, THEORY).to_dict("records"),
        limits=there[there["method"] == LIMIT].set_index("paths")["accuracy"],
        agreement=agreement(setting),
        beside=beside_prototype(setting),
    )


def _tables(setting: Setting) -> dict[str, pd.DataFrame]:
    return {
        "attention-paths-networks": networks(setting),
        "attention-paths-agreement": agreement(setting),
        "attention-paths-order-parameters": order_parameters(setting),
        "attention-paths-overlaps": overlaps(setting),
        "attention-paths-prototype": beside_prototype(setting),
    }


def _summaries(section: Section[Setting]) -> Iterator[Run]:
    """A run of each network that has a seed; of sampled ones with how theory agrees."""
    setting = section.subject
    shared = {name: setting.recorded[name].iloc[0] for name in _PARAMS}
    for row in networks(setting).query("num_seeds > 0").to_dict("records"):
        metrics = {name: row[name] for name in MEASURES} | {"n": row["num_seeds"]}
        network = {name: row[name] for name in NETWORK}
        for other in of_network(agreement(setting), *network.values()).to_dict("records"):
            metrics |= {name: other[name] for name in _AGREEMENT}
        params = {
            name: value if isinstance(value, str) else f"{value:g}"
            for name, value in {**network, **shared}.items()
        }
        yield summary(section, network_text(row).replace(",", ""), params, metrics)
