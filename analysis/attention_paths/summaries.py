"""What MLflow shows of attention paths: a summary of each network, for its comparison page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.attention_paths.networks import NETWORK
from analysis.attention_paths.numbers import MEASURES
from analysis.attention_paths.settings import Setting
from analysis.attention_paths.words import network_text
from analysis.section.claim import Claim
from analysis.section.summary import Draw, GroupSummary, plain_summary
from analysis.words import number

_PARAMS = ("variant", "sigma_perp", "n", "tokens", "temperature", "heads")


def summaries(
    setting: Setting,
    networks: pd.DataFrame,
    agreement: pd.DataFrame,
    claims: Sequence[Claim],
    files: Draw,
) -> list[GroupSummary]:
    """One summary a network that has a seed.

    Args:
        setting: the setting.
        networks, agreement: as `analysis.attention_paths.numbers` gives them.
        claims: of the setting.
        files: gives the files of the section.
    """
    note = "\n\n".join(
        f"**{claim.name} {claim.verdict}**: {claim.statement} {claim.measured}" for claim in claims
    )
    shared = {name: _text(setting.first[name]) for name in _PARAMS}
    shared |= {claim.name: claim.verdict for claim in claims}
    found = []
    for row in networks[networks["num_seeds"] > 0].to_dict("records"):
        name = network_text(row).replace(",", "")
        metrics = {
            f"{measure}{end}": float(row[f"{measure}{end}"])
            for measure in MEASURES
            for end in ("", "_low", "_high")
        }
        metrics |= {
            "n_seeds": float(row["num_seeds"]),
            "n_diverged": float(row["num_diverged"]),
            "n_unconverged": float(row["num_unconverged"]),
        }
        found.append(
            plain_summary(
                key=f"{setting.id}/{name}",
                comparison_id=setting.id,
                name=f"attention-paths {setting.variant} {name} ({setting.id[:8]})",
                note=note,
                params={**{column: _text(row[column]) for column in NETWORK}, **shared},
                metrics=metrics | _agreement(agreement, row),
                curves={},
                draw=files,
            )
        )
    return found


def _agreement(agreement: pd.DataFrame, network: Any) -> dict[str, float]:
    """How a sampled network agrees with theory; empty for others."""
    mine = agreement[
        (agreement["method"] == network["method"])
        & (agreement["network_width"] == network["network_width"])
    ]
    names = ("predictor_error", "accuracy_difference", "r_hat", "effective_sample_size")
    return {name: float(row[name]) for row in mine.to_dict("records") for name in names}


def _text(value: Any) -> str:
    """A column's value as a parameter: ``10``, ``inf``, ``plain``."""
    if isinstance(value, str):
        return value
    return "inf" if value == float("inf") else number(float(value))
