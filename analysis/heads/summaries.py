"""What MLflow shows of one-shot images: a summary of the networks and of each scorer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.heads.means import MEASURES, REMOVAL
from analysis.heads.methods import SCORER, of_scorer, scorer_text
from analysis.heads.settings import Setting
from analysis.section.claim import Claim
from analysis.section.summary import claims_note, summary_run
from study.tracking.runs import Files, Run


def summaries(
    setting: Setting,
    trained: pd.DataFrame,
    networks: pd.DataFrame,
    areas: pd.DataFrame,
    claims: Sequence[Claim],
    files: Files,
) -> list[Run]:
    """One summary of the trained networks of each learning rate, and one a scorer with a seed.

    Args:
        setting: the setting.
        trained, networks, areas: as `analysis.heads.means` gives them.
        claims: of the setting.
        files: gives the files of the section.
    """
    shared = {"task": setting.task, "heads": "/".join(map(str, setting.heads))}
    if len(setting.cells):
        shared["n"] = f"{setting.cells['n'].iloc[0]:g}"
    if "temperature_choice" in setting.facts:
        shared["temperature_choice"] = setting.facts["temperature_choice"]
    parts = [*_of_training(trained), *_of_scorers(setting, networks, areas)]
    return [
        summary_run(
            key=f"{setting.id}/{name}",
            what=name,
            where=f"one-shot {setting.task}",
            note=claims_note(claims),
            params=params | shared,
            metrics=metrics,
            files=files,
        )
        for name, params, metrics in parts
    ]


_Part = tuple[str, dict[str, str], dict[str, float]]
"""Name, parameters and metrics of a summary."""


def _of_training(trained: pd.DataFrame) -> Iterator[_Part]:
    for row in trained[trained["num_seeds"] > 0].to_dict("records"):
        rate = f" lr {row['lr']:g}" if len(trained) > 1 else ""
        metrics = {"accuracy": float(row["accuracy_test"]), "loss": float(row["loss_test"])}
        metrics |= _counts(row)
        yield f"trained{rate}", {"paradigm": "soft", "lr": f"{row['lr']:g}"}, metrics


def _of_scorers(setting: Setting, networks: pd.DataFrame, areas: pd.DataFrame) -> Iterator[_Part]:
    scorers = setting.cells[SCORER].drop_duplicates()
    removal = areas[areas["order"] == REMOVAL]
    for method, width in scorers.itertuples(index=False):
        metrics: dict[str, float] = {}
        for row in of_scorer(networks, method, width).to_dict("records"):
            metrics = {column: float(row[column]) for column in MEASURES}
            metrics |= {"temperature": float(row["temperature_median"]), **_counts(row)}
        for row in of_scorer(removal, method, width).to_dict("records"):
            metrics = {**_counts(row), **metrics, "area": float(row["area"])}
        if metrics.get("n"):
            params = {"method": str(method), "network_width": f"{width:g}"}
            yield scorer_text(method, width), params, metrics


def _counts(row: Any) -> dict[str, float]:
    return {"n": float(row["num_seeds"])}
