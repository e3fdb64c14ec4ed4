"""Heat map and SAIF on cases that a hand can check, and `evaluate` against them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from study import paradigms
from study.cell.work import MOST_EXAMPLES
from study.evaluate import heatmap, saif
from study.evaluate.classification import evaluate
from study.models.base import Model
from study.paradigms.base import Paradigm
from study.tasks.mosaics.mosaics import Mosaics, MosaicTask
from tests.conftest import tiny_cell
from tests.made_up.gpu import waits
from tests.made_up.instances import marked
from tests.made_up.parts import sparsemax

probabilities = st.floats(0, 1)
pairs = st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=50)


def test_values_at_an_edge_belong_to_the_upper_bin_and_one_to_the_last() -> None:
    a_z = [0.0, 0.2, 0.6, 0.8, 1.0]
    expected = np.zeros((5, 5))
    expected[0, 4] = expected[1, 4] = expected[3, 4] = 1
    expected[4, 4] = 2
    np.testing.assert_array_equal(heatmap(a_z, [0.8, 1.0, 0.8, 0.8, 1.0]), expected / 5)
    assert saif(a_z, [0.8, 1.0, 0.8, 0.8, 1.0]) == 2 / 5


def test_axis_0_is_attention() -> None:
    expected = np.zeros((5, 5))
    expected[4, 0] = 1
    np.testing.assert_array_equal(heatmap([0.95], [0.05]), expected)


def test_float32_at_the_threshold_counts() -> None:
    value = np.array([0.8], np.float32)
    assert saif(value, value) == 1
    assert saif(np.array([np.nextafter(0.8, 0)]), [1.0]) == 0


def test_overshoot_by_rounding_is_clipped_and_more_is_an_error() -> None:
    assert saif([1 + 1e-7], [1 + 1e-6]) == 1
    assert heatmap([1 + 1e-7], [1 + 1e-6])[4, 4] == 1
    with pytest.raises(ValueError, match=r"foreground_attention must be in \[0, 1\]"):
        saif([1.001], [1.0])
    with pytest.raises(ValueError, match=r"true_class_score must be in \[0, 1\]"):
        heatmap([1.0], [-0.1])


def test_unknown_foreground_is_left_out_and_a_nan_score_is_an_error() -> None:
    assert saif([np.nan, 0.9, 0.1], [0.9, 0.9, 0.9]) == 0.5
    assert heatmap([np.nan, 0.9], [0.1, 0.9])[4, 4] == 1
    with pytest.raises(ValueError, match="true_class_score"):
        saif([0.5], [np.nan])
    assert np.isnan(saif([np.nan], [0.5]))
    assert np.isnan(heatmap([], [])).all()


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="equally long"):
        saif([0.1, 0.2], [0.1])


@given(pairs)
def test_saif_is_the_corner_of_the_heat_map(values: list[tuple[float, float]]) -> None:
    a_z, s_y = map(list, zip(*values, strict=True))
    table = heatmap(a_z, s_y)
    assert table.sum() == pytest.approx(1)
    assert table[4, 4] == pytest.approx(saif(a_z, s_y))
    assert saif(a_z, s_y) == sum(a >= 0.8 and s >= 0.8 for a, s in values) / len(values)


@given(pairs, st.sampled_from([(0, 0.2, 0.3, 1), (0, 0.5, 1)]))
def test_other_edges(values: list[tuple[float, float]], edges: tuple[float, ...]) -> None:
    a_z, s_y = map(list, zip(*values, strict=True))
    table = heatmap(a_z, s_y, edges)
    assert table.shape == (len(edges) - 1,) * 2
    last = edges[-2]
    assert table[-1, -1] == pytest.approx(saif(a_z, s_y, threshold=last))


@pytest.mark.parametrize(
    "paradigm",
    [*map(paradigms.get, ("soft", "hard", "lvml")), sparsemax()],
    ids=lambda paradigm: paradigm.name,
)
def test_evaluation_in_batches_equals_the_definition(
    digits: MosaicTask, paradigm: Paradigm, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    f = nn.Sequential(nn.Flatten(), nn.Linear(64, 1), nn.Flatten(0))
    model = Model(f, nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))
    mosaics = digits.splits(tiny_cell(digits, test_size=130))["test"]
    monkeypatch.setattr("study.hardware.PASS_BYTES", {"cpu": 7 * mosaics.bytes_each})
    found = evaluate(model, paradigm, mosaics, last=True)
    whole = mosaics.batch(torch.arange(130))
    with torch.no_grad():
        attention, scores = paradigm.predict(model.focus, model.classifier, whole.segments)
        loss = paradigm.loss(model.focus, model.classifier, whole.segments, whole.labels)
    a_z = attention[whole.foreground].numpy()
    s_y = scores[torch.arange(130), whole.labels].numpy()
    right = (scores.argmax(dim=1) == whole.labels).numpy()
    focused = mosaics.foreground[range(len(mosaics)), attention.argmax(dim=1)].numpy()
    assert found["accuracy"] == right.mean()
    assert found["saif"] == saif(a_z, s_y)
    assert found["heatmap"] == heatmap(a_z, s_y).ravel().tolist()
    assert found["foreground_attention_mean"] == pytest.approx(a_z.mean(), rel=1e-6)
    shares = [found[key] for key in ("ftpt", "ffpt", "ftpf", "ffpf")]
    assert shares == pytest.approx(
        [
            (focused & right).mean(),
            (~focused & right).mean(),
            (focused & ~right).mean(),
            (~focused & ~right).mean(),
        ]
    )
    assert found["num_evaluated"] == 130
    assert (marked(found, "right") == right).all()
    assert (marked(found, "saif") == (a_z >= 0.8) & (s_y >= 0.8)).all()
    assert marked(found, "known").all()
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-5)


@pytest.mark.parametrize("name", ["soft", "hard", "lvml"])
def test_the_focus_sees_each_base_image_once(digits: MosaicTask, name: str) -> None:
    seen = {"focus": 0, "classifier": 0}

    class Counting(nn.Sequential):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            seen[self.name] += len(inputs)
            return super().forward(inputs)

    f = Counting(nn.Flatten(), nn.Linear(64, 1), nn.Flatten(0))
    g = Counting(nn.Flatten(), nn.Linear(64, 3))
    f.name, g.name = "focus", "classifier"
    mosaics = digits.splits(tiny_cell(digits, test_size=200))["test"]
    evaluate(Model(f, g), paradigms.get(name), mosaics)
    images = len(mosaics.index.unique())
    assert seen["focus"] == images < mosaics.index.numel()
    # soft classifies the mixture of each mosaic, once to predict and once for its loss
    assert seen["classifier"] == (2 * len(mosaics) if name == "soft" else images)


def test_only_the_last_evaluation_waits_for_images_and_examples(digits: MosaicTask) -> None:
    """Others wait for a GPU twice, for the loss and for what they measured."""
    f = nn.Sequential(nn.Flatten(), nn.Linear(64, 1), nn.Flatten(0))
    model = Model(f, nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))
    mosaics = digits.splits(tiny_cell(digits))["test"]
    found = {}
    for last in (False, True):
        assert mosaics.distinct  # found once for all evaluations
        with waits() as found[last]:
            evaluate(model, paradigms.get("soft"), mosaics, last=last)
    assert found[False] == ["cpu", "numpy"] * 2
    assert set(found[True]) == set(found[False])
    assert 2 < found[True].count("cpu") < 10 + MOST_EXAMPLES


def test_a_broken_model_has_no_metrics(digits: MosaicTask) -> None:
    model = Model(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 1), nn.Flatten(0)),
        nn.Sequential(nn.Flatten(), nn.Linear(64, 3)),
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    mosaics: Mosaics = digits.splits(tiny_cell(digits))["test"]
    assert evaluate(model, paradigms.get("soft"), mosaics) is None
