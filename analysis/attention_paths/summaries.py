"""What MLflow shows of attention paths: a summary of each network, for its comparison page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.attention_paths.means import MEASURES
from analysis.attention_paths.networks import NETWORK, of_network
from analysis.attention_paths.settings import Setting
from analysis.attention_paths.words import network_text
from analysis.section.claim import Claim
from analysis.section.summary import claims_note, summary_run
from study.tracking.runs import Files, Run

_PARAMS = ("variant", "sigma_perp", "n", "tokens", "temperature", "heads")


def summaries(
    setting: Setting,
    networks: pd.DataFrame,
    agreement: pd.DataFrame,
    claims: Sequence[Claim],
    files: Files,
) -> list[Run]:
    """One summary a network that has a seed.

    Args:
        setting: the setting.
        networks: as `analysis.attention_paths.means.networks` gives them.
        agreement: as `analysis.attention_paths.agreement.agreement` gives it.
        claims: of the setting.
        files: gives the files of the section.
    """
    shared = {name: _text(setting.first[name]) for name in _PARAMS}
    found = []
    for row in networks[networks["num_seeds"] > 0].to_dict("records"):
        name = network_text(row).replace(",", "")
        metrics = {column: float(row[column]) for column in MEASURES} | {
            "n": float(row["num_seeds"])
        }
        found.append(
            summary_run(
                key=f"{setting.id}/{name}",
                what=name,
                where=f"attention-paths {setting.variant}",
                note=claims_note(claims),
                params={**{column: _text(row[column]) for column in NETWORK}, **shared},
                metrics=metrics | _agreement(agreement, row),
                files=files,
            )
        )
    return found


def _agreement(agreement: pd.DataFrame, network: Any) -> dict[str, float]:
    """How a sampled network agrees with theory; empty for others."""
    mine = of_network(agreement, *(network[name] for name in NETWORK))
    names = ("predictor_error", "accuracy_difference", "r_hat", "effective_sample_size")
    return {name: float(row[name]) for row in mine.to_dict("records") for name in names}


def _text(value: Any) -> str:
    """A column's value as a parameter: ``1000``, ``inf``, ``plain``."""
    return value if isinstance(value, str) else f"{value:g}"
