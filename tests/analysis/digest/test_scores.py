"""Scores by seed and image: when images are known, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from analysis.digest.scores import Instances, Scores, scores
from analysis.rules.backgrounds import Backgrounds
from study.results import INSTANCES, ResultsError
from tests.made_up.instances import marked, of_counts

COUNTS = np.random.default_rng(0).integers(1, 6, 30)
KNOWN = np.random.default_rng(1).integers(0, 2, 30)


def cells(counts: Sequence[int] = COUNTS, known: Sequence[int] = KNOWN) -> pd.DataFrame:
    """Seven, with some instances of each image right, and in SAIF of those that are known."""
    rng = np.random.default_rng(2)
    rows = []
    for seed in range(7):
        right = rng.binomial(counts, 0.6)
        saif = np.minimum(right, known)
        scored = {"accuracy": right.sum() / sum(counts), "saif": saif.sum() / sum(known)}
        cell = {"cell_id": f"cell {seed}", "task": "digits", "diverged": False, **scored}
        hits = {"of_accuracy": right, "of_saif": saif}
        rows.append(cell | hits | of_counts(counts, right=right, known=known, saif=saif))
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("metric", "counts"), [("accuracy", COUNTS), ("saif", KNOWN)])
def test_shares_are_of_the_instances_of_each_image(metric, counts):
    rows = cells()
    found, there = scores(rows, metric), counts > 0
    hits = np.stack(rows[f"of_{metric}"])[:, there]
    np.testing.assert_allclose(found.shares, hits / counts[there])
    assert found.instances.weights.tolist() == counts[there].tolist()
    np.testing.assert_allclose(found.by_seed, rows[metric])
    assert not found.instances.lacking


def test_a_diverged_seed_has_one_score_on_every_image():
    rows = cells()
    lost = rows.index == 2
    rows.loc[lost, ["diverged", "accuracy"]] = [True, 0.1]
    for name in rows.columns.intersection([*INSTANCES, "base_images"]):
        rows[name] = rows[name].mask(lost, None)
    shares = scores(rows, "accuracy").shares
    np.testing.assert_allclose(shares[2], 0.1)
    assert (np.ptp(np.delete(shares, 2, axis=0), axis=1) > 0).all()


@pytest.mark.parametrize(
    "others", [{"instances": "others", "base_images": np.zeros(3)}, {"instance_known": b""}]
)
def test_a_cell_that_was_tested_on_other_instances_is_refused(others):
    rows = cells()
    for column, value in others.items():
        rows.at[3, column] = value
    with pytest.raises(ResultsError, match=r"other instances than the rest \(cell 3\)"):
        scores(rows, "accuracy")


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.drop(columns=[*INSTANCES, "base_images"], errors="ignore"),
        lambda rows: rows.assign(saif=rows["saif"] / 2),
        lambda rows: rows.assign(instance_saif=rows["instance_saif"].mask(rows.index == 1, None)),
    ],
    ids=["none recorded", "another threshold or cut", "one cell without"],
)
def test_without_images_scores_are_of_all_instances_together(
    change,
):
    rows = change(cells())
    found = scores(rows, "saif")
    assert not found.instances
    np.testing.assert_allclose(found.shares, rows[["saif"]])
    assert math.isnan(found.of_one_image)


@pytest.mark.parametrize("counts", [[50] * 2, [50] * 4, [400, *[1] * 29], [90, 90, *[1] * 20]])
def test_few_images_cannot_say_how_images_vary(counts):
    """Two, or two that have nearly all instances."""
    rows = cells(counts, counts)
    found = scores(rows, "accuracy")
    assert found.instances.lacking == "too few test {draws}"
    assert not found.instances
    np.testing.assert_allclose(found.shares, rows[["accuracy"]])


@pytest.mark.parametrize(("images", "lacking"), [(20, ""), (3, "too few background images")])
def test_background_images_add_to_the_variance(images, lacking):
    rows = cells()
    image = rows["base_images"].iloc[0]
    background = np.random.default_rng(0).integers(images, size=(len(image), 3))
    rows["base_images"] = [np.column_stack([image, background]).ravel()] * len(rows)
    found = scores(rows, "accuracy")
    right = np.array([marked(row, "right") for row in rows.to_dict("records")], float)
    part = None if lacking else Backgrounds(image, background).part(right)
    assert (found.of_backgrounds, found.instances.lacking) == (part, lacking)
    assert len(found.instances.weights) == 30


@pytest.mark.parametrize(
    ("shares", "part"),
    [
        ([[1, 1, 0.5, 0.9]], 0.5 / 0.7),  # of what is wrong, where the last image counts twice
        ([[0, 0, 0.5, 0.1]], 0.5 / 0.7),  # of what is right, which is rarer
        ([[1, 1, 1, 1]], math.nan),
    ],
)
def test_what_one_image_has_of_the_rarer_outcome(shares, part):
    image = np.array([0, 1, 2, 3, 3])
    found = Scores(np.array(shares)[:, image], Instances(image, np.bincount(image)))
    assert found.of_one_image == pytest.approx(part, nan_ok=True)
