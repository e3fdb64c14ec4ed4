"""The base images of instances in a results directory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import analysis
from study.results import Results, ResultsError
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.instances import marked

IMAGES = np.array([[3, 1, 1], [2, 0, 1], [3, 2, 0]])
BITS = {name: bytes([0b10100000]) for name in ("instance_right", "instance_saif")}
BITS["instance_known"] = bytes([0b11100000])


def recorded(folder: Path) -> Results:
    results = make_results(folder)
    for seed in (0, 1):
        write(results, make_cell(seed=seed), base_images=IMAGES, bits=BITS)
    return results


def test_cells_share_one_file_that_a_table_has_again(tmp_path):
    results = recorded(tmp_path)
    (file,) = (tmp_path / "instances").iterdir()
    table = analysis.load(results)
    held = table.dropna(subset="instances")
    assert held["split"].tolist() == ["test"] * 2
    assert set(held["instances"]) == {file.stem}
    for row in held.to_dict("records"):
        assert row["base_images"].tolist() == IMAGES.ravel().tolist()
        assert marked(row | {"num_evaluated": 3}, "right").tolist() == [True, False, True]
    assert table.drop(held.index)["base_images"].isna().all()
    again = pd.read_parquet(file)["base_images"]
    np.testing.assert_array_equal(np.stack(again), IMAGES)


@pytest.mark.parametrize("damage", ["removed", "cut", "another"])
def test_without_the_file_there_is_no_verdict(tmp_path, damage):
    """It would be easier over seeds alone."""
    results = recorded(tmp_path)
    (file,) = (tmp_path / "instances").iterdir()
    if damage == "removed":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-20])
    else:
        write(results, make_cell(seed=2), base_images=IMAGES[::-1], bits=BITS)
        (other,) = {*(tmp_path / "instances").iterdir()} - {file}
        other.rename(file)
    assert analysis.load(results)["base_images"].isna().any()
    with pytest.raises(ResultsError, match=f"{file.name} is missing or damaged"):
        analysis.compare_results(results)
    write(results, make_cell(seed=3), base_images=IMAGES, bits=BITS)  # who has them mends it
    assert file.exists()
    assert analysis.load(results).dropna(subset="instances")["base_images"].notna().any()
