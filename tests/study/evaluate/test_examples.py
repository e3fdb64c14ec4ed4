"""Examples: the same inputs for every model, and where it looks in them."""

from __future__ import annotations

import base64
import io
import json
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from study import paradigms, tasks
from study.cell import Options
from study.cell.work import MOST_EXAMPLES
from study.evaluate import examples as module
from study.evaluate.classification import evaluate
from study.models import build
from study.tasks.mosaics.mosaics import Mosaics, MosaicTask
from study.tasks.task import Split
from study.tracking.looks import Example
from tests.chapters.texts import post_files as posts
from tests.conftest import tiny_cell


@pytest.fixture
def split(digits: MosaicTask) -> Mosaics:
    split: Mosaics = digits.splits(tiny_cell(digits))["test"]
    return split


def looked(split: Split, seed: int, paradigm: str, alpha: float | None = None) -> list[Example]:
    """The examples of an untrained model of mosaics of digits."""
    model = build("perceptron", "digits", (1, 8, 8), 3, seed=seed)
    found = evaluate(model, paradigms.get(paradigm), split, alpha, last=True)
    assert found is not None
    return json.loads(found["examples"] or "[]")


def at_random(split: Split) -> str:
    """The examples of outputs that no model made."""
    n, m = split.foreground.shape
    return module.examples(split, [(torch.arange(n), torch.rand(n, m), torch.rand(n, 3))]) or "[]"


def test_every_model_shows_the_same_inputs(split):
    shown = [
        [(each["tiles"], each["foreground"], each["label"]) for each in looked(split, seed, name)]
        for seed, name in ((0, "soft"), (1, "soft"), (0, "hard"), (0, "lvml"))
    ]
    assert shown == [shown[0]] * 4
    assert len({tiles for tiles, *_ in shown[0]}) == MOST_EXAMPLES


def test_an_example_is_what_the_model_makes_of_its_input(split, digits, monkeypatch):
    """Whatever the pass that it was in."""
    monkeypatch.setattr("study.hardware.PASS_BYTES", {"cpu": 7 * split.bytes_each})
    model = build("perceptron", "digits", (1, 8, 8), 3, seed=0)
    segments = split.batch(torch.arange(len(split))).segments
    with torch.no_grad():
        attention, scores = paradigms.get("soft").predict(model.focus, model.classifier, segments)
    pixels = (split.images[split.index.long()][..., 0] * (255 / 16)).round().byte()
    strips = pixels.transpose(1, 2).flatten(2).numpy()
    for each in looked(split, 0, "soft"):
        tiles = np.asarray(Image.open(io.BytesIO(base64.b64decode(each.pop("tiles")))))
        (row,) = np.flatnonzero((strips == tiles).all(axis=(1, 2)))
        assert each == {
            "attention": pytest.approx(attention[row].tolist(), abs=1e-4),
            "foreground": split.foreground[row].nonzero().flatten().tolist(),
            "label": digits.foreground[split.labels[row]],
            "predicted": digits.foreground[scores[row].argmax()],
            "score": pytest.approx(float(scores[row].max()), abs=1e-4),
        }


def test_they_are_fewer_where_they_would_be_large(split, monkeypatch):
    counts = []
    for room in (module.MOST_BYTES, 5_000, 100):
        monkeypatch.setattr(module, "MOST_BYTES", room)
        text = at_random(split)
        assert len(text) <= room
        counts.append(len(json.loads(text)))
    assert counts[0] == MOST_EXAMPLES > counts[1] > counts[2] == 0
    monkeypatch.setattr(module, "strip", None)  # nothing is drawn where there is no room
    assert at_random(split) == "[]"


def test_posts_are_as_they_were_written_and_cut(tmp_path):
    task = posts.load(posts.write_posts(tmp_path))
    data = json.loads((tmp_path / "dataset.json").read_text()).values()
    written = {" ".join(post["post_tokens"][:6]): post for post in data}
    found = json.loads(at_random(task.splits(posts.text_cell(task, m=6))["test"]))
    assert len(found) == MOST_EXAMPLES
    for each in found:
        post = written[" ".join(each["words"])]
        assert len(each["attention"]) == len(each["words"])
        assert each["label"] == post["annotators"][0]["label"]
        marks = post["rationales"][0] if post["rationales"] else []
        assert each["foreground"] == np.flatnonzero(marks[:6]).tolist()


def test_without_pictures_a_held_attention_or_pillow_there_are_none(split, monkeypatch):
    task = tasks.load("linear-orthogonal", options=Options(num_classes=3))
    assert at_random(task.splits(tiny_cell(task, m=5))["test"]) == "[]"
    assert not looked(split, 0, "soft", alpha=0.5)
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert not looked(split, 0, "soft")
