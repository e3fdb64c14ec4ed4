"""`evaluate` of captions against its definition in plain loops, and what changes nothing."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from chapters.captions.data.boxes import Boxed
from chapters.captions.data.captions import Captions
from chapters.captions.data.vocabulary import START
from chapters.captions.evaluation.beam_search import Written, write
from chapters.captions.evaluation.caption_evaluation import evaluate
from chapters.captions.evaluation.caption_scores import bleu, cider
from chapters.captions.modality import CAPTIONS
from study import paradigms
from study.evaluate import heatmap
from tests.chapters.captions.table_captions import (
    BALL,
    DOG,
    PUPPY,
    RUNS,
    VOCABULARY,
    TableModel,
    captions_of,
    numbered_images,
)  # fmt: skip
from tests.made_up.instances import marked

LONGEST = 4
WORDS = {"dog": (DOG, PUPPY), "ball": (BALL,), "run": (RUNS,)}
"""Category -> its words."""


def made_up(images: int = 40) -> tuple[TableModel, Captions]:
    """Half of the images have an object of a category."""
    rng = np.random.default_rng(0)
    references = [
        [
            " ".join(rng.choice(("a", "dog", "runs", "ball"), rng.integers(2, 7)))
            for _ in range(rng.integers(1, 4))
        ]
        for _ in range(images)
    ]
    objects = [
        Boxed(image, name, words, tuple(rng.random(4)), torch.tensor(rng.random(6)).float())
        for image in range(images)
        for name, words in WORDS.items()
        if rng.random() < 0.5
    ]
    model = TableModel.random(images, m=6, longest=LONGEST)
    return model, captions_of(references, objects, m=6)


def greedy(model: TableModel) -> Written:
    """What test_beam_search.py is about, with the words of all categories sought in each image."""
    images, _, m = model.attention.shape
    sought = pad_sequence([*map(torch.tensor, WORDS.values())], batch_first=True)
    regions = numbered_images(images, m)
    found = write(model, paradigms.get("soft"), regions, sought.expand(images, -1, -1), LONGEST)
    assert found is not None
    return found


def most_expected(written: Written, one: Boxed) -> tuple[float, int]:
    """The probability of an object's words where that is largest, and where."""
    score, t = written.scores[one.image, :, [*WORDS].index(one.category)].max(dim=0)
    return score.item(), int(t)


def text_of(written: Written, image: int) -> list[str]:
    return [VOCABULARY[word] for word in written.words[image].tolist() if word]


def assert_of_objects(examples: list[dict[str, Any]], split: Captions, written: Written) -> None:
    """Examples are of four images, each with an object and its caption."""
    objects = {(f"{one.image}.jpg", one.category): one for one in split.objects}
    for each in examples:
        one = objects[each["image"], each["category"]]
        score, t = most_expected(written, one)
        attention, words = written.attention[one.image], text_of(written, one.image)
        assert base64.b64decode(each.pop("jpeg")) == f"the picture {each['image']}".encode()
        assert each == {
            "image": each["image"],
            "category": each["category"],
            "box": list(one.box),
            "words": words,
            "attention": [pytest.approx(a.tolist(), abs=5e-5) for a in attention[: len(words)]],
            "word": t,
            "score": pytest.approx(score),
            "attention_on_box": pytest.approx((attention[t] @ one.inside).item()),
        }
    images = [each["image"] for each in examples]
    assert len({*images}) == len(images) == 4


def test_evaluation_equals_the_definition(monkeypatch):
    """Object by object; a caption counts once for the loss, an image once for Bleu and CIDEr.

    In passes of three images; that a caption is its image's alone, test_beam_search.py shows.
    """
    model, split = made_up()
    monkeypatch.setattr("study.hardware.PASS_BYTES", {"cpu": 3 * split.bytes_each})
    found = evaluate(model, paradigms.get("soft"), split, last=True)
    assert found is not None
    written = greedy(model)
    texts = [" ".join(text_of(written, image)) for image in range(split.num_images)]
    assert "" in texts
    counts = dict.fromkeys(("ftpt", "ffpt", "ftpf", "ffpf"), 0)
    a_z, s_y = [], []
    for one in split.objects:
        score, t = most_expected(written, one)
        attention = written.attention[one.image, t]
        s_y.append(score)
        a_z.append((attention @ one.inside).item())
        focus = texts[one.image] and one.inside[attention.argmax()] >= 0.5
        named = written.likeliest[one.image, t] in one.words
        counts[f"f{'t' if focus else 'f'}p{'t' if named else 'f'}"] += 1
    assert all(counts.values())
    in_saif = (np.array(a_z) >= 0.3) & (np.array(s_y) >= 0.3)
    references = [image.captions for image in split.captioned]
    bleus = bleu(texts, references)
    expected = {name: count / len(a_z) for name, count in counts.items()} | {
        "saif": in_saif.mean(),
        "foreground_attention_mean": np.mean(a_z),
        "heatmap": heatmap(a_z, s_y, CAPTIONS.heatmap_edges).ravel().tolist(),
        "num_evaluated": len(split.objects),
        "foreground_share": 1,
        **{f"bleu_{n}": value for n, value in enumerate(bleus, 1)},
        "accuracy": bleus[3],
        "cider": cider(texts, references),
        "caption_length": (written.words > 0).sum(dim=1).double().mean().item(),
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
    model, split = made_up(images=2)
    model.loss, model.next_word = Mock(wraps=model.loss), Mock(wraps=model.next_word)
    soft, hard = map(paradigms.get, ("soft", "hard"))
    evaluate(model, hard, split, inference=soft)
    assert model.loss.call_args.args[0] is hard
    assert model.next_word.call_args.args[0] is soft


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
