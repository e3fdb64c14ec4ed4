"""Examples: the same inputs for every model, and where it looks in them."""

from __future__ import annotations

import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from study import models, paradigms, tasks
from study.cell import Options
from study.cell.work import MOST_EXAMPLES
from study.evaluate.classification import evaluate
from study.evaluate.examples import MOST_BYTES, examples
from study.evaluate.looks import Example
from study.tasks.base import Split
from study.tasks.mosaics.mosaics import MosaicTask
from tests.conftest import tiny_cell
from tests.made_up import posts


def looked(split: Split, seed: int = 0, paradigm: str = "soft", **how: Any) -> list[Example]:
    """The examples of an untrained model of mosaics of digits."""
    model = models.build("perceptron", "digits", (1, 8, 8), 3, seed=seed)
    found = evaluate(model, paradigms.get(paradigm), split, last=True, **how)
    assert found is not None
    text = found["examples"]
    return json.loads(text) if text else []


def at_random(split: Split) -> str:
    """The examples of outputs that no model made."""
    n, m = split.foreground.shape
    attention, scores = torch.rand(n, m), torch.rand(n, 3)
    return examples(split, [(torch.arange(n), attention, scores)]) or "[]"


def test_every_model_shows_the_same_inputs(digits: MosaicTask) -> None:
    split = digits.splits(tiny_cell(digits))["test"]
    shown = [
        [(each["tiles"], each["foreground"], each["label"]) for each in looked(split, seed, name)]
        for seed, name in ((0, "soft"), (1, "soft"), (0, "hard"), (0, "lvml"))
    ]
    assert shown.count(shown[0]) == 4
    assert len({tiles for tiles, *_ in shown[0]}) == MOST_EXAMPLES
    assert looked(split, 0) != looked(split, 1)


def test_an_example_is_what_the_model_makes_of_its_input(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the pass that it was in."""
    split = digits.splits(tiny_cell(digits))["test"]
    monkeypatch.setattr("study.hardware.PASS_BYTES", {"cpu": 7 * split.bytes_each})
    model = models.build("perceptron", "digits", (1, 8, 8), 3, seed=0)
    whole = split.batch(torch.arange(len(split)))
    with torch.no_grad():
        attention, scores = paradigms.get("soft").predict(
            model.focus, model.classifier, whole.segments
        )
    pixels = (split.images[split.index.long()][..., 0] * (255 / 16)).round().byte()
    strips = pixels.transpose(1, 2).flatten(2).numpy()
    for each in looked(split):
        tiles = np.asarray(Image.open(io.BytesIO(base64.b64decode(each["tiles"]))))
        (row,) = np.flatnonzero((strips == tiles).all(axis=(1, 2)))
        assert each["attention"] == pytest.approx(attention[row].tolist(), abs=1e-4)
        assert sum(each["attention"]) == pytest.approx(1, abs=1e-3)
        assert each["foreground"] == split.foreground[row].nonzero().flatten().tolist()
        assert each["label"] == digits.foreground[split.labels[row]]
        assert each["predicted"] == digits.foreground[scores[row].argmax()]
        assert each["score"] == pytest.approx(float(scores[row].max()), abs=1e-4)


@pytest.mark.parametrize("m", [4, 400, 100_000])
def test_they_are_fewer_where_they_would_be_large(digits: MosaicTask, m: int) -> None:
    split = digits.splits(tiny_cell(digits, m=m, test_size=20))["test"]
    text = at_random(split)
    assert len(text) <= MOST_BYTES
    count = len(json.loads(text))
    assert count == {4: MOST_EXAMPLES, 100_000: 0}.get(m, count)
    assert (0 < count < MOST_EXAMPLES) == (m == 400)


def test_posts_are_as_they_were_written_and_cut(tmp_path: Path) -> None:
    task = posts.load(posts.write_posts(tmp_path), posts.OPTIONS)
    split = task.splits(posts.text_cell(task, m=6))["test"]
    data = json.loads((tmp_path / "dataset.json").read_text()).values()
    written = {" ".join(post["post_tokens"][:6]): post for post in data}
    found = json.loads(at_random(split))
    assert len(found) == MOST_EXAMPLES
    for each in found:
        post = written[" ".join(each["words"])]
        assert len(each["attention"]) == len(each["words"])
        assert each["label"] == post["annotators"][0]["label"]
        marks = post["rationales"][0] if post["rationales"] else []
        assert each["foreground"] == np.flatnonzero(marks[:6]).tolist()


def test_of_series_the_windows_are_kept() -> None:
    options = Options(foreground="1+2+3", window=7)
    task = tasks.load("series", options=options)
    assert isinstance(task, MosaicTask)
    split = task.splits(tiny_cell(task, m=5, test_size=30, options=options))["test"]
    found = json.loads(at_random(split))
    windows = split.images[split.index.long()].numpy()[..., 0, :].transpose(0, 1, 3, 2)
    for each in found:
        near = np.abs(windows - np.array(each["windows"])).max(axis=(1, 2, 3))
        assert near.min() <= 0.0051


def test_without_pictures_or_with_a_held_attention_there_are_none(digits: MosaicTask) -> None:
    options = Options(num_classes=3)
    linear = tasks.load("linear-orthogonal", options=options)
    assert isinstance(linear, MosaicTask)
    vectors = linear.splits(tiny_cell(linear, options=options))["test"]
    assert at_random(vectors) == "[]"
    assert not looked(digits.splits(tiny_cell(digits))["test"], alpha=0.5)


def test_a_worker_without_pillow_shows_none_and_trains(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert looked(digits.splits(tiny_cell(digits))["test"]) == []
