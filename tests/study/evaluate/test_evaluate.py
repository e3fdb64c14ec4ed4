"""Heat map and SAIF on cases that a hand can check; mosaics, whose segments share base images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from study import paradigms
from study.cell.work import MOST_EXAMPLES
from study.evaluate import heatmap, saif
from study.evaluate.classification import evaluate
from study.models.model import Model
from study.tasks.mosaics.mosaics import Mosaics, MosaicTask
from study.tasks.task import MOSAICS, Batch, Measure, Outputs
from tests.conftest import tiny_cell
from tests.made_up.gpu import waits
from tests.made_up.parts import sparsemax

probabilities = st.floats(0, 1)
pairs = st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=50)


def test_values_at_an_edge_belong_to_the_upper_bin_and_one_to_the_last():
    """Axis 0 is attention."""
    a_z = [0.0, 0.2, 0.6, 0.8, 1.0]
    expected = np.zeros((5, 5))
    expected[0, 4] = expected[1, 4] = expected[3, 4] = 1
    expected[4, 4] = 2
    np.testing.assert_array_equal(heatmap(a_z, [0.8, 1.0, 0.8, 0.8, 1.0]), expected / 5)
    assert saif(np.float32([0.8]), np.float32([0.8])) == 1
    assert saif([np.nextafter(0.8, 0)], [1.0]) == 0


def test_rounding_above_one_is_clipped_and_an_unknown_foreground_is_left_out():
    a_z, s_y = [np.nan, 1 + 1e-7, 0.1], [0.1, 1 + 1e-6, 0.9]
    assert saif(a_z, s_y) == heatmap(a_z, s_y)[4, 4] == heatmap(a_z, s_y)[0, 4] == 1 / 2
    assert np.isnan(saif([np.nan], [0.5]))
    assert np.isnan(heatmap([], [])).all()


@pytest.mark.parametrize(
    ("a_z", "s_y", "message"),
    [
        ([1.001], [1.0], r"foreground_attention must be in \[0, 1\]"),
        ([1.0], [-0.1], r"true_class_score must be in \[0, 1\]"),
        ([0.5], [np.nan], "true_class_score"),
        ([0.1, 0.2], [0.1], "equally long"),
    ],
)
def test_other_values_are_refused(a_z, s_y, message):
    for measure in (saif, heatmap):
        with pytest.raises(ValueError, match=message):
            measure(a_z, s_y)


@given(pairs, st.sampled_from([(0, 0.2, 0.4, 0.6, 0.8, 1), (0, 0.2, 0.3, 1), (0, 0.5, 1)]))
def test_saif_is_the_corner_of_the_heat_map(values, edges):
    a_z, s_y = zip(*values, strict=True)
    table, threshold = heatmap(a_z, s_y, edges), edges[-2]
    assert table.shape == (len(edges) - 1,) * 2
    assert table.sum() == pytest.approx(1)
    share = sum(min(pair) >= threshold for pair in values) / len(values)
    assert share == saif(a_z, s_y, threshold=threshold) == pytest.approx(table[-1, -1])


class Layers(nn.Sequential):
    """A linear map of the pixels, which counts the segments that it sees."""

    def __init__(self, outputs: int) -> None:
        ends = [nn.Flatten(0)] if outputs == 1 else []
        super().__init__(nn.Flatten(), nn.Linear(64, outputs), *ends)
        self.seen = 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.seen += len(inputs)
        return super().forward(inputs)


SPREAD = Measure("spread", "spread", bounded=False, of=f"{__name__}:spread")


def spread(outputs: Outputs) -> np.ndarray:
    """The number of segments among which attention is shared, as one's own measure."""
    assert outputs.attention.shape == outputs.foreground.shape == outputs.mask.shape
    return 1 / (outputs.attention**2).sum(axis=1)


@pytest.fixture
def model() -> Model:
    """Sure of what it says, though untrained."""
    torch.manual_seed(5)
    made = Model(Layers(1), Layers(3))
    for parameter in made.parameters():
        parameter.data *= 20
    return made


@pytest.fixture
def split(digits: MosaicTask) -> Mosaics:
    split: Mosaics = digits.splits(tiny_cell(digits, test_size=200))["test"]
    return split


class Apart:
    """Mosaics as if they were posts, whose segments are their own."""

    distinct = None

    def __init__(self, of: Mosaics) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def __len__(self) -> int:
        return len(self._of)

    def batch(self, rows: Tensor) -> Batch:
        batch = self._of.batch(rows)
        return batch._replace(mask=torch.ones_like(batch.foreground))


class Unmasked(Apart):
    """Segments of their own, all of which are real, as a task from outside may have them."""

    def batch(self, rows: Tensor) -> Batch:
        return self._of.batch(rows)


@pytest.mark.parametrize(
    "paradigm",
    [*map(paradigms.get, ("soft", "hard", "lvml")), sparsemax()],
    ids=lambda paradigm: paradigm.name,
)
def test_each_base_image_is_seen_once_and_found_is_what_is_found_of_segments_apart(
    model, split, paradigm, monkeypatch
):
    """In passes of few mosaics. Of segments apart: tests/chapters/texts/test_text_models.py.

    A modality may have a further measure.
    """
    split = replace(split, modality=replace(MOSAICS, measures=(SPREAD,)))
    aparts = [evaluate(model, paradigm, of(split), last=True) for of in (Apart, Unmasked)]
    model.focus.seen = model.classifier.seen = 0
    monkeypatch.setattr("study.hardware.PASS_BYTES", {"cpu": 7 * split.bytes_each})
    found = evaluate(model, paradigm, split, last=True)
    assert found is not None
    assert found.pop("examples")
    del found["measures"]  # what is put in the place of segments is of these (test_follows.py)
    bits = dict(found.pop("instance_bits"))
    assert all(dict(apart.pop("instance_bits"))["focus"] == bits["focus"] for apart in aparts)
    assert 0 < found["saif"] < 1
    assert 1 < found["spread"] < split.index.shape[1]
    for name, value in found.items():
        for apart in aparts:
            assert apart is not None
            same = apart[name] == (value if isinstance(value, bytes) else pytest.approx(value))
            assert same, name
    images = len(split.index.unique())
    assert model.focus.seen == images < split.index.numel()
    # Of a mixture there is one a mosaic: to predict, for its loss, and with three changes.
    assert model.classifier.seen == (5 * len(split) if paradigm.mixes else images)


def test_only_the_last_evaluation_waits_for_images_and_examples(model, split):
    """Others wait for a GPU twice, for the loss and for what they measured."""
    found = {}
    for last in (False, True):
        assert split.distinct  # found once for all evaluations
        with waits() as found[last]:
            evaluate(model, paradigms.get("soft"), split, last=last)
    assert found[False] == ["cpu", "numpy"] * 2
    drawn = {"aten.lift_fresh.default"}  # what is put in the place of segments, once
    assert set(found[True]) - drawn == set(found[False])
    assert 2 < found[True].count("cpu") < 18 + MOST_EXAMPLES


def test_a_broken_model_has_no_metrics(model, split):
    for parameter in model.parameters():
        parameter.data.fill_(torch.nan)
    assert evaluate(model, paradigms.get("soft"), split) is None
