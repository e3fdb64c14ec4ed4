"""Scores by class, and which class carries a difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.digest.classes import carried
from analysis.digest.compare import Comparison
from study.results import Results
from tests.made_up.comparisons import make_cell, make_results, write

CLASSES, IMAGES, SEEDS = ("bird", "car", "ship"), 60, 8
LABELS = np.repeat(CLASSES, IMAGES)
HELD = np.column_stack([np.arange(len(LABELS)), np.arange(len(LABELS)) % 50 + 1_000])


def packed(flags: np.ndarray) -> bytes:
    return np.packbits(flags).tobytes()


def record(
    results: Results,
    paradigm: str,
    shares: tuple[float, ...],
    labels: np.ndarray | None = LABELS,
    seeds: range = range(SEEDS),
) -> None:
    """Of each class a share is in SAIF, and all is right."""
    rng = np.random.default_rng(len(paradigm))
    for seed in seeds:
        saif = rng.random(len(LABELS)) < np.repeat(shares, IMAGES)
        every = packed(np.full(len(LABELS), True))
        bits = {
            **dict.fromkeys(("instance_right", "instance_known"), every),
            "instance_saif": packed(saif),
            "instance_bits": [("focus", packed(saif))],
            "num_evaluated": len(LABELS),
        }
        share, cell = float(saif.mean()), make_cell(paradigm, seed=seed)
        write(results, cell, 1.0, share, base_images=HELD, labels=labels, bits=bits)


def compared(
    folder: Path,
    lvml: tuple[float, ...],
    soft: tuple[float, ...],
    labels: np.ndarray | None = LABELS,
) -> Comparison:
    results = make_results(folder)
    record(results, "lvml", lvml, labels)
    record(results, "soft", soft, labels)
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
    others = parts["difference"].drop("bird").mean()
    assert parts.loc["bird", ["rest_low", "rest", "rest_high"]].is_monotonic_increasing
    assert parts.loc["bird", "rest"] == pytest.approx(others)
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


def test_seeds_without_classes_are_told_by_others_and_those_without_numbers_by_none(tmp_path):
    """Of an earlier version; diverged before the first evaluation; all of them diverged."""
    results = make_results(tmp_path)
    record(results, "lvml", (0.9, 0.8, 0.8))
    record(results, "soft", (0.1, 0.7, 0.7), labels=None)
    for seed in range(SEEDS):
        write(results, make_cell("hard", seed=seed), status="diverged", points=())
    write(results, make_cell("soft", seed=SEEDS), status="diverged", points=())
    record(results, "lvml", (0.9, 0.8, 0.8), seeds=range(SEEDS, SEEDS + 1))
    (found,) = analysis.compare_results(results)
    assert set(found.classes["paradigm"]) == {"lvml", "soft"}
    assert {"hard", "soft"} <= {*found.paired["second"]}
    assert "lvml" in str(found)


def test_a_difference_that_is_another_if_classes_weigh_the_same_has_no_parts(tmp_path):
    labels = np.where(np.arange(len(LABELS)) < 160, "bird", "car")
    found = compared(tmp_path, (0.9, 0.9, 0.1), (0.6, 0.6, 0.9), labels)
    assert found.paired.query("metric == 'saif'")["verdict"].isin(["better", "undecided"]).all()
    assert found.class_parts.empty


def test_where_classes_were_not_recorded_nothing_is_said_of_them(tmp_path):
    found = compared(tmp_path, (0.9, 0.9, 0.9), (0.1, 0.9, 0.9), labels=None)
    assert found.paired.query("metric == 'saif'")["verdict"].tolist() == ["better"]
    assert found.classes.empty
    assert found.class_parts.empty
