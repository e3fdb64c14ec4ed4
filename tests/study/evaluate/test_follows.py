"""Whether predictions follow the attention, tried on models of which it is known."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from study import paradigms
from study.evaluate.classification import evaluate
from study.evaluate.follows import attended_to
from study.models.model import Model
from study.tasks.mosaics.mosaics import Mosaics
from tests.conftest import tiny_cell

CLASSES, BACKGROUND = 3, 5
"""Of segments that are their own class: 0 to 2 are foreground, and 3 to 5 background."""


class Focus(nn.Module):
    """Looks at the foreground."""

    def forward(self, segments: Tensor) -> Tensor:
        return 50.0 * (segments.flatten(1)[:, 0] < CLASSES)


class Classifier(nn.Module):
    """Sees which class a segment is; background looks like the default."""

    def __init__(self, default: int) -> None:
        super().__init__()
        self._default = default

    def forward(self, segments: Tensor) -> Tensor:
        kind = segments.flatten(1)[:, 0].long()
        seen = torch.where(kind < CLASSES, kind, self._default)
        return 50.0 * nn.functional.one_hot(seen, CLASSES).float()


@pytest.fixture
def split() -> Mosaics:
    """300 mosaics of one foreground and four background segments, of one pixel each."""
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=300)
    index = rng.integers(CLASSES, BACKGROUND + 1, size=(300, 5))
    places = rng.integers(5, size=300)
    index[np.arange(300), places] = labels
    foreground = np.arange(5) == places[:, None]
    images = torch.arange(BACKGROUND + 1, dtype=torch.float32).reshape(-1, 1, 1, 1)
    arrays = (torch.from_numpy(each) for each in (index.astype(np.int32), labels, foreground))
    return Mosaics(images, torch.arange(len(images)), *arrays, max_value=None)


def measured(split: Any, focus: nn.Module, classifier: nn.Module, name: str) -> dict[str, float]:
    found = evaluate(Model(focus, classifier), paradigms.get(name), split, last=True)
    assert found is not None
    bits = {
        each: np.unpackbits(np.frombuffer(packed, np.uint8), count=len(split))
        for each, packed in found["instance_bits"]
    }
    values = json.loads(found["measures"])
    assert values["follows"] == pytest.approx(bits["follows"].mean())
    return values


@pytest.mark.parametrize("name", ["soft", "hard", "lvml"])
def test_a_model_that_reads_where_it_looks_follows(split, name):
    found = measured(split, Focus(), Classifier(default=0), name)
    falls = (split.labels != 0).float().mean()  # the default class is predicted of background
    assert found == {"follows": 1, "falls": pytest.approx(float(falls)), "stays": 1}


def test_a_model_that_does_not_read_follows_nothing(split):
    class Always(Classifier):
        def forward(self, segments: Tensor) -> Tensor:
            return super().forward(torch.zeros_like(segments))

    found = measured(split, Focus(), Always(0), "soft")
    swapped_to_it = found.pop("follows")
    assert found == {"falls": 0, "stays": 1}
    assert 0.2 < swapped_to_it < 0.5  # the class that is always said, put in by chance


def test_passes_change_no_bit(digits, monkeypatch):
    torch.manual_seed(5)
    model = Model(nn.Sequential(nn.Flatten(), nn.Linear(64, 1), nn.Flatten(0)),
                  nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))  # fmt: skip
    split = digits.splits(tiny_cell(digits, test_size=200))["test"]
    found = []
    for size in (10**9, 7 * split.bytes_each):
        monkeypatch.setattr("study.hardware.PASS_BYTES", {"cpu": size})
        found.append(evaluate(model, paradigms.get("soft"), split, last=True)["instance_bits"])
    assert found[0] == found[1]


def test_without_background_or_another_class_nothing_is_tried(split):
    for alone in (split.head(1), Mosaics(*vars(split.head(9)).values())):
        found = evaluate(Model(Focus(), Classifier(0)), paradigms.get("soft"), alone, last=True)
        assert ("measures" in found) == (len(alone) > 1)


@pytest.mark.parametrize("m", [1, 2, 7])
def test_the_fewest_segments_that_hold_half_of_the_attention_are_attended(m):
    attention = torch.rand(50, m).softmax(dim=1) ** 3
    attention /= attention.sum(dim=1, keepdim=True)
    for shares, chosen in zip(attention, attended_to(attention), strict=True):
        held, others = shares[chosen], shares[~chosen]
        assert held.sum() >= 0.5 - 1e-6
        assert held.sum() - held.min() < 0.5
        assert not len(others) or held.min() >= others.max()
