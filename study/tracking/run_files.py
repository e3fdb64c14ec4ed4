"""What MLflow shows of a cell that trained: its heat maps, and where it looks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from study.tasks import TASKS, modality
from study.tracking.heat_map_image import heatmap_svg
from study.tracking.looks import looks_page


def heat_map(row: Mapping[str, Any], last: pd.DataFrame) -> dict[str, bytes]:
    """The heat maps of the splits with a known foreground.

    Args:
        row: of the cell, of `study.results.CELLS_SCHEMA`.
        last: its last evaluations, a row a split.
    """
    kind = modality(row["task"])
    bins = len(kind.heatmap_edges) - 1
    maps = zip(last["split"], last["heatmap"], strict=True)
    heatmaps = {split: np.reshape(each, (bins, bins)) for split, each in maps if each is not None}
    return {"heatmap.svg": heatmap_svg(heatmaps, kind)} if heatmaps else {}


def heat_map_and_looks(row: Mapping[str, Any], last: pd.DataFrame) -> dict[str, bytes]:
    """The same, and a page of inputs with where the cell looks."""
    warning = TASKS[row["task"]].warning
    files = heat_map(row, last)
    for text in last["examples"].dropna():  # of the test split
        page = looks_page(json.loads(text), row["schedule"], warning)
        files["where-it-looks.html"] = page.encode()
    return files
