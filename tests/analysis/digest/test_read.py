"""`load` joins evaluations with their cells and loses no cell."""

from __future__ import annotations

import analysis
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA
from tests.made_up.comparisons import POINTS, SPLITS, make_cell, make_results, write

HELD = ("base_images", "labels")


def test_one_row_a_cell_evaluation_and_split_and_one_of_a_cell_without_evaluations(tmp_path):
    results = make_results(tmp_path)
    lost = write(results, make_cell(seed=1), status="diverged", points=())
    cell = write(results, make_cell())
    table = analysis.load(tmp_path)
    assert set(table.columns) == {*CELLS_SCHEMA.names, *EVALUATIONS_SCHEMA.names, *HELD}
    rows = table.groupby("cell_id")["split"].value_counts(dropna=False)
    assert rows[cell.id].to_dict() == dict.fromkeys(SPLITS, len(POINTS))
    assert len(table) == rows[cell.id].sum() + 1
    some = analysis.load(tmp_path, [lost.id, "no-such-cell"])
    assert some["cell_id"].item() == lost.id
    assert some[["split", "compute_flops"]].isna().all(axis=None)
