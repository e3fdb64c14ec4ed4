"""Scores by class, and which class carries a difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.digest.classes import carried
from analysis.digest.compare import Comparison
from tests.made_up.comparisons import make_cell, make_results, write

CLASSES, IMAGES, SEEDS = ("bird", "car", "ship"), 60, 8
LABELS = np.repeat(CLASSES, IMAGES)
HELD = np.column_stack([np.arange(len(LABELS)), np.arange(len(LABELS)) % 50 + 1_000])


def packed(flags: np.ndarray) -> bytes:
    return np.packbits(flags).tobytes()


def compared(
    folder: Path,
    lvml: tuple[float, ...],
    soft: tuple[float, ...],
    labels: np.ndarray | None = LABELS,
) -> Comparison:
    """Of paradigms that have a share of the instances of each class in SAIF, and all right."""
    results, rng = make_results(folder), np.random.default_rng(0)
    for paradigm, shares in (("lvml", lvml), ("soft", soft)):
        for seed in range(SEEDS):
            saif = rng.random(len(LABELS)) < np.repeat(shares, IMAGES)
            every = packed(np.full(len(LABELS), True))
            bits = {
                **dict.fromkeys(("instance_right", "instance_known"), every),
                "instance_saif": packed(saif),
                "instance_bits": [("focus", packed(saif))],
                "num_evaluated": len(LABELS),
            }
            write(
                results,
                make_cell(paradigm, seed=seed),
                accuracy=1.0,
                saif=float(saif.mean()),
                base_images=HELD,
                labels=labels,
                bits=bits,
            )
    (found,) = analysis.compare_results(results)
    return found


def test_scores_of_a_class_are_those_of_its_instances(tmp_path):
    found = compared(tmp_path, (0.9, 0.9, 0.9), (0.2, 0.8, 0.8))
    rows = found.classes.set_index(["paradigm", "class"])
    assert len(rows) == 6
    assert rows["num_instances"].eq(IMAGES).all()
    by_paradigm = rows["saif"].groupby("paradigm").mean()
    means = found.summary.set_index("paradigm")["saif"]
    np.testing.assert_allclose(by_paradigm, means[by_paradigm.index])
    bird = rows.loc["soft", "bird"]
    assert bird["saif_low"] < 0.2 < bird["saif_high"] < 0.4
    assert bird["right_unseen"] == pytest.approx(1 - bird["saif"])
    assert bird[["ftpt", "ffpt"]].tolist() == pytest.approx([bird["saif"], bird["right_unseen"]])
    assert bird[["ftpf", "ffpf"]].eq(0).all()


def test_a_class_that_makes_a_difference_is_said_to_carry_it(tmp_path):
    found = compared(tmp_path, (0.9, 0.8, 0.8), (0.2, 0.7, 0.7))
    parts = found.class_parts.set_index("class")
    assert parts["part"].sum() == pytest.approx(1)
    assert parts["part"].between(parts["low"], parts["high"]).all()
    np.testing.assert_allclose(
        parts["rest"], [parts["difference"].drop(name).mean() for name in parts.index]
    )
    (row,) = carried(found.class_parts).to_dict("records")
    assert (row["metric"], row["class"], row["winner"], row["loser"]) == (
        "saif", "bird", "lvml", "soft",
    )  # fmt: skip
    assert row["low"] < 0.7 / 0.9 < row["high"]
    assert "lvml's lead over soft in SAIF is one class, bird" in str(found)


@pytest.mark.parametrize("soft", [(0.3, 0.3, 0.3), (0.9, 0.9, 0.9)], ids=["even", "none"])
def test_an_even_difference_is_carried_by_none(tmp_path, soft):
    found = compared(tmp_path, (0.9, 0.9, 0.9), soft)
    assert carried(found.class_parts).empty
    assert "one class" not in str(found)


def test_where_classes_were_not_recorded_nothing_is_said_of_them(tmp_path):
    found = compared(tmp_path, (0.9, 0.9, 0.9), (0.1, 0.9, 0.9), labels=None)
    assert found.paired.query("metric == 'saif'")["verdict"].tolist() == ["better"]
    assert found.classes.empty
    assert found.class_parts.empty
