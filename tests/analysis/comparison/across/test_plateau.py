"""How much sooner lvml leaves the plateau: of curves that a hand can read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.comparison.across.pictures import plateau_pictures
from analysis.comparison.across.plateau import half_time, plateau_blocks, plateaus
from analysis.comparison.compare import Comparison, compare_results
from study.results import Results
from tests.made_up.comparisons import NUM_CLASSES, make_cell, make_results, write

POINTS = tuple(np.linspace(0, 1, 21))
MOSAICS = 8_000  # of a cell
LOG_C = math.log(NUM_CLASSES)


def falling(until: float) -> list[float]:
    """A loss that falls evenly from log C and is half of it at this share of the budget."""
    return [LOG_C * max(0.0, 1 - each / (2 * until)) for each in POINTS]


def compared(
    path: Path, halves: dict[str, Sequence[float]], rate: float = 0.1
) -> list[Comparison]:
    """Paradigm -> when each seed halves its loss; soft at another learning rate, if given."""
    results = make_results(path)
    for paradigm, of_seeds in halves.items():
        lr = rate if paradigm == "soft" else 0.1
        for seed, half in enumerate(of_seeds):
            write(
                results,
                make_cell(paradigm, lr, seed, evaluation_points=POINTS),
                points=POINTS,
                mosaics=MOSAICS,
                curves={"loss": falling(half)},
            )
    return compare_results(results)


def test_the_half_is_interpolated() -> None:
    assert half_time([0, 10, 20], [LOG_C, LOG_C, 0.0], NUM_CLASSES) == pytest.approx(15)
    assert half_time([0, 10], [LOG_C, 0.6 * LOG_C], NUM_CLASSES) == math.inf
    assert half_time([0, 10], [0.1, 2.0], NUM_CLASSES) == 0


def test_the_ratio_is_the_geometric_mean_over_seeds(tmp_path: Path) -> None:
    lvml = (0.1, 0.12, 0.1, 0.11, 0.1, 0.12)
    ratios = np.array([1.5, 2.0, 1.6, 1.7, 1.9, 1.8])
    found = compared(tmp_path, {"lvml": lvml, "soft": lvml * ratios, "hard": lvml})
    soft, hard = plateaus(found).to_dict("records")
    assert (soft["paradigm"], hard["paradigm"]) == ("soft", "hard")
    assert soft["ratio"] == pytest.approx(np.exp(np.log(ratios).mean()), rel=1e-6)
    assert soft["low"] < soft["ratio"] < soft["high"]
    assert (soft["verdict"], soft["num_seeds"], soft["num_lost"]) == ("later", 6, 0)
    assert hard["ratio"] == pytest.approx(1)
    assert hard["verdict"] == "undecided"
    assert 1 < soft["theory"] < 2
    text = str(plateau_blocks(found))
    assert "Leaving the plateau" in text
    assert "docs" not in text


def test_who_never_gets_there_counts_with_the_end(tmp_path: Path) -> None:
    found = compared(tmp_path, {"lvml": [0.2] * 6, "soft": [0.4] * 5 + [5.0]})
    (soft,) = plateaus(found).to_dict("records")
    assert (soft["num_late"], soft["num_lost"]) == (1, 0)
    assert soft["ratio"] == pytest.approx((2**5 * 5) ** (1 / 6), rel=1e-6)


def test_seeds_in_which_lvml_does_not_are_lost(tmp_path: Path) -> None:
    found = compared(tmp_path, {"lvml": [0.2] * 6 + [5.0], "soft": [0.4, 0.41] * 3 + [0.4]})
    (soft,) = plateaus(found).to_dict("records")
    assert (soft["num_seeds"], soft["num_lost"]) == (6, 1)
    assert soft["verdict"] == "undecided"  # six seeds may lose none


def test_other_learning_rates_tell_nothing(tmp_path: Path) -> None:
    found = compared(tmp_path, {"lvml": [0.2] * 6, "soft": [0.4] * 6}, rate=0.2)
    assert plateaus(found).empty
    assert plateau_blocks(found) == []


def test_a_seed_that_diverged_is_lost_and_the_others_count(tmp_path: Path) -> None:
    found = compared(tmp_path, {"lvml": [0.2] * 7, "soft": [0.4, 0.42] * 3})
    few = POINTS[:3]
    write(
        Results(tmp_path),
        make_cell("soft", 0.1, 6, evaluation_points=POINTS),
        points=few,
        status="diverged",
        curves={"loss": falling(0.4)[:3]},
    )
    found = compare_results(tmp_path)
    (soft,) = plateaus(found).to_dict("records")
    assert (soft["num_seeds"], soft["num_lost"], soft["num_late"]) == (6, 1, 0)


def test_several_settings_are_drawn_beside_theory(tmp_path: Path) -> None:
    one = plateaus(compared(tmp_path, {"lvml": [0.2] * 6, "soft": [0.4, 0.42] * 3}))
    assert plateau_pictures(one) == []
    other = one.assign(setting="m=20", m=20, ratio=2.5, low=2.0, high=3.0, theory=1.25)
    unknown = one.assign(setting="foregrounds", theory=math.nan)
    (picture,) = plateau_pictures(pd.concat([one, other, unknown]))
    assert f"m 20, {NUM_CLASSES} classes: 2.5" in picture.alt
    (panel,) = picture.figure.axes
    theory = [line.get_ydata() for line in panel.lines if line.get_linestyle() == ":"]
    assert np.array_equal(theory, [[one["theory"].iloc[0], 1.25]])
    bars = panel.containers[0].lines[0].get_ydata()
    assert np.array_equal(bars, [one["ratio"].iloc[0], 2.5])
