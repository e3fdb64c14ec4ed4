"""`evaluate` of captions against its definition in plain loops, and what changes nothing."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from chapters.captions.data.boxes import Boxed
from chapters.captions.data.vocabulary import END, START
from chapters.captions.evaluation.caption_evaluation import evaluate
from chapters.captions.evaluation.caption_scores import bleu, cider
from chapters.captions.modality import CAPTIONS
from chapters.captions.settings import DecoderSettings
from study import paradigms
from study.evaluate import heatmap
from study.paradigms.paradigm import Paradigm
from study.tasks.task import Batch
from tests.chapters.captions.table_captions import (
    BALL,
    DOG,
    PUPPY,
    RUNS,
    VOCABULARY,
    A,
    TableCaptions,
    TableModel,
)  # fmt: skip
from tests.made_up.instances import marked

LONGEST = 4
WORDS = {"dog": (DOG, PUPPY), "ball": (BALL,), "run": (RUNS,)}
"""Category -> its words."""


def made_up(images: int = 40, seed: int = 0) -> tuple[TableModel, TableCaptions]:
    """Half of the images have an object of a category."""
    rng = np.random.default_rng(seed)
    split = TableCaptions(
        m=6,
        references=[
            [
                " ".join(rng.choice(("a", "dog", "runs", "ball"), rng.integers(2, 7)))
                for _ in range(rng.integers(1, 4))
            ]
            for _ in range(images)
        ],
        objects=[
            Boxed(image, name, words, tuple(rng.random(4)), torch.tensor(rng.random(6)).float())
            for image in range(images)
            for name, words in WORDS.items()
            if rng.random() < 0.5
        ],
    )
    model = TableModel.random(images, m=6, seed=seed)
    model.settings = DecoderSettings(longest=LONGEST)
    return model, split


class Step(NamedTuple):
    """Of a caption: the word, the probability of each, and the attention."""

    word: int
    expects: list[float]
    attention: NDArray[np.float32]


def greedy(model: TableModel, image: int) -> list[Step]:
    steps: list[Step] = []
    before, last = START, START
    while len(steps) < LONGEST:
        expects = model.probabilities[image, before, last].tolist()
        before, word = last, max((END, A, DOG, PUPPY, RUNS, BALL), key=expects.__getitem__)
        if word == END:
            break
        steps.append(Step(word, expects, model.attention[image, last].numpy()))
        last = word
    return steps


def most_expected(steps: list[Step], one: Boxed) -> tuple[float, int]:
    """The probability of an object's words where that is largest, and where; 0 and 0 of none."""
    scores = [sum(step.expects[word] for word in one.words) for step in steps]
    return max(scores, default=0.0), int(np.argmax(scores or [0]))


def assert_of_objects(
    examples: list[dict[str, Any]], split: TableCaptions, written: list[list[Step]]
) -> None:
    """Examples are of four images, whatever the model, each with an object and its caption."""
    objects = {(f"{one.image}.jpg", one.category): one for one in split.objects}
    for each in examples:
        one = objects[each["image"], each["category"]]
        steps = written[one.image]
        score, t = most_expected(steps, one)
        assert base64.b64decode(each.pop("jpeg")) == f"the picture {each['image']}".encode()
        assert each == {
            "image": each["image"],
            "category": each["category"],
            "box": list(one.box),
            "words": [VOCABULARY[step.word] for step in steps],
            "attention": [pytest.approx(step.attention.tolist(), abs=5e-5) for step in steps],
            "word": t,
            "score": pytest.approx(score),
            "attention_on_box": pytest.approx(steps[t].attention @ one.inside.numpy()),
        }
    other, _ = made_up(seed=1)
    found = evaluate(other, paradigms.get("soft"), split, last=True)
    assert found is not None
    images = [each["image"] for each in examples]
    assert [each["image"] for each in json.loads(found["examples"])] == images
    assert len({*images}) == len(images) == 4


def test_evaluation_equals_the_definition(monkeypatch):
    """Object by object; a caption counts once for the loss, an image once for Bleu and CIDEr.

    In passes of three images; that a caption is its image's alone, test_beam_search.py shows.
    """
    model, split = made_up()
    monkeypatch.setattr("study.hardware.PASS_BYTES", {"cpu": 3 * split.bytes_each})
    found = evaluate(model, paradigms.get("soft"), split, last=True)
    assert found is not None
    written = [greedy(model, image) for image in range(split.num_images)]
    assert min(map(len, written)) == 0
    counts = dict.fromkeys(("ftpt", "ffpt", "ftpf", "ffpf"), 0)
    a_z, s_y = [], []
    for one in split.objects:
        steps = written[one.image]
        score, t = most_expected(steps, one)
        s_y.append(score)
        a_z.append(steps[t].attention @ one.inside.numpy() if steps else 0)
        focus = steps and one.inside[steps[t].attention.argmax()] >= 0.5
        named = steps and steps[t].word in one.words
        counts[f"f{'t' if focus else 'f'}p{'t' if named else 'f'}"] += 1
    assert all(counts.values())
    in_saif = (np.array(a_z) >= 0.3) & (np.array(s_y) >= 0.3)
    texts = [" ".join(VOCABULARY[step.word] for step in steps) for steps in written]
    bleus = bleu(texts, split.references)
    expected = {name: count / len(a_z) for name, count in counts.items()} | {
        "saif": in_saif.mean(),
        "foreground_attention_mean": np.mean(a_z),
        "heatmap": heatmap(a_z, s_y, CAPTIONS.heatmap_edges).ravel().tolist(),
        "num_evaluated": len(split.objects),
        "foreground_share": 1,
        **{f"bleu_{n}": value for n, value in enumerate(bleus, 1)},
        "accuracy": bleus[3],
        "cider": cider(texts, split.references),
        "caption_length": np.mean([len(steps) for steps in written]),
        "loss": (split.words > 0).sum().item() / len(split),  # of the table: a word is a nat
    }
    assert {name: found.pop(name) for name in expected} == {
        name: pytest.approx(value) for name, value in expected.items()
    }
    assert marked(found | expected, "saif").tolist() == in_saif.tolist()
    assert marked(found | expected, "known").all()
    assert split.base_images.tolist() == [[one.image] for one in split.objects]
    # Of a single evaluation, Bleu is no share of instances.
    assert found.keys() == {"examples", "instance_known", "instance_saif"}
    assert_of_objects(json.loads(found["examples"]), split, written)
    earlier = evaluate(model, paradigms.get("soft"), split)
    assert earlier is not None
    assert earlier.keys() == expected.keys()
    model.settings = replace(model.settings, beam=3)
    searched = evaluate(model, paradigms.get("soft"), split)
    assert searched is not None
    assert searched["cider"] != expected["cider"]


def test_the_paradigm_gives_the_loss_and_inference_writes():
    class Told(TableModel):
        def next_word(self, paradigm: Paradigm, *arguments: Any) -> Any:
            told.add(("writes", paradigm.name))
            return super().next_word(paradigm, *arguments)

        def loss(self, paradigm: Paradigm, batch: Batch) -> Tensor:
            told.add(("loss", paradigm.name))
            return super().loss(paradigm, batch)

    told: set[tuple[str, str]] = set()
    model, split = made_up(images=2)
    soft, hard = map(paradigms.get, ("soft", "hard"))
    evaluate(Told(model.probabilities, model.attention), hard, split, inference=soft)
    assert told == {("loss", "hard"), ("writes", "soft")}


def test_without_objects_nothing_is_said_of_the_foreground():
    model, split = made_up()
    found = evaluate(model, paradigms.get("soft"), replace(split, objects=[]), last=True)
    assert found is not None
    assert (found["num_evaluated"], found["foreground_share"]) == (0, 0)
    for name in ("saif", "foreground_attention_mean", "ftpt", "ffpt", "ftpf", "ffpf", "heatmap"):
        assert found[name] is None
    assert found["bleu_1"] > 0
    assert json.loads(found["examples"]) == []


@pytest.mark.parametrize("table", ["probabilities", "attention"])
def test_a_broken_model_has_no_metrics(table):
    model, split = made_up()
    getattr(model, table)[2, START] = torch.nan
    assert evaluate(model, paradigms.get("soft"), split) is None
