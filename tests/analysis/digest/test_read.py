"""`load` joins evaluations with their cells and loses no cell."""

from __future__ import annotations

import analysis
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA
from tests.made_up.comparisons import POINTS, SPLITS, make_cell, make_results, write

HELD = ("base_images", "labels")


def test_one_row_a_cell_evaluation_and_split(tmp_path):
    results = make_results(tmp_path)
    first, _ = (write(results, make_cell(seed=seed)) for seed in range(2))
    table = analysis.load(tmp_path)
    assert set(table.columns) == {*CELLS_SCHEMA.names, *EVALUATIONS_SCHEMA.names, *HELD}
    assert len(table) == 2 * len(POINTS) * len(SPLITS)
    assert not table.duplicated(["cell_id", "budget_fraction", "split"]).any()
    some = analysis.load(tmp_path, [first.id, "no-such-cell"])
    assert some["cell_id"].tolist() == [first.id] * len(POINTS) * len(SPLITS)


def test_a_cell_without_evaluations_stays(tmp_path):
    write(make_results(tmp_path), make_cell(), status="diverged", points=())
    table = analysis.load(tmp_path)
    assert len(table) == 1
    assert table[["split", "compute_flops"]].isna().all(axis=None)
