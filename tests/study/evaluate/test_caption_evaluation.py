"""`evaluate` of captions: SAIF of hand-made images, and what changes nothing."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from study import paradigms
from study.cell import DecoderSettings
from study.evaluate.caption_scores import bleu, cider
from study.evaluate.captions import evaluate
from study.paradigms.base import Paradigm
from study.tasks.base import Batch
from study.tasks.captions.boxes import Boxed
from study.tasks.captions.vocabulary import END, START
from tests.made_up.instances import marked
from tests.made_up.table_captions import (
    BALL,
    DOG,
    PUPPY,
    RUNS,
    A,
    TableCaptions,
    TableModel,
    permuted,
)  # fmt: skip

SOFT, HARD = paradigms.get("soft"), paradigms.get("hard")
RIGHT_EDGE = (0.75, 0.0, 0.25, 1.0)
"""A box over half of either region at the right of a grid of 2 x 2."""


def boxed(image: int, category: str, words: tuple[int, ...], *inside: float) -> Boxed:
    return Boxed(image, category, words, RIGHT_EDGE, torch.tensor(inside))


def hand_made() -> tuple[TableModel, TableCaptions]:
    """Image 0 becomes "a dog runs", 1 nothing, and 2, of which no object is known, "ball"."""
    model = TableModel.even(images=3, m=4)
    model.after(0, START, {A: 0.65, DOG: 0.1, BALL: 0.25}, 0.1, 0.3, 0.4, 0.2)
    model.after(0, A, {DOG: 0.4, PUPPY: 0.2, RUNS: 0.3, END: 0.1}, 0.1, 0.6, 0.1, 0.2)
    model.after(0, DOG, {RUNS: 0.75, BALL: 0.25}, 0.7, 0.1, 0.1, 0.1)
    model.after(0, RUNS, {END: 0.7, BALL: 0.3}, 0.0, 1.0, 0.0, 0.0)
    model.after(1, START, {END: 0.6, DOG: 0.4}, 0.0, 1.0, 0.0, 0.0)
    model.after(2, START, {BALL: 1.0})
    model.after(2, BALL, {END: 1.0})
    split = TableCaptions(
        m=4,
        references=[["a dog runs", "a puppy runs"], ["a dog"], ["ball", "a ball", "dog"]],
        objects=[
            boxed(0, "dog", (DOG, PUPPY), 0, 0.5, 0, 0.5),
            boxed(0, "sports ball", (BALL,), 0, 0.5, 0, 0.5),
            boxed(1, "dog", (DOG, PUPPY), 0, 1, 0, 1),
        ],
    )
    return model, split


def random_case(images: int = 40, seed: int = 0) -> tuple[TableModel, TableCaptions]:
    """Half of the images have an object of a category, of three categories."""
    rng = np.random.default_rng(seed)
    texts = ("a", "dog", "runs", "ball")
    split = TableCaptions(
        m=6,
        references=[
            [" ".join(rng.choice(texts, rng.integers(2, 7))) for _ in range(rng.integers(1, 4))]
            for _ in range(images)
        ],
        objects=[
            boxed(image, category, words, *rng.random(6))
            for image in range(images)
            for category, words in {"dog": (DOG, PUPPY), "ball": (BALL,), "run": (RUNS,)}.items()
            if rng.random() < 0.5
        ],
    )
    return TableModel.random(images, m=6, seed=seed), split


def test_a_hand_made_image() -> None:
    """The dog's words are likeliest as the second word, the ball as the first and the third."""
    model, split = hand_made()
    found = evaluate(model, SOFT, split)
    assert found is not None
    dog, ball, unwritten = (0.4, 0.6), (0.25, 0.25), (0, 0)  # a_z and s_y
    assert found["saif"] == pytest.approx(1 / 3)
    assert found["heatmap"] == pytest.approx([1 / 3, 0, 0, 0, 1 / 3, 0, 0, 0, 1 / 3])
    assert found["foreground_attention_mean"] == pytest.approx(
        np.mean([a_z for a_z, _ in (dog, ball, unwritten)])
    )
    # Of the region of most attention half lies in the dog's box, and nothing in the ball's.
    assert found["ftpt"] == pytest.approx(1 / 3)
    assert found["ffpf"] == pytest.approx(2 / 3)
    assert (found["num_evaluated"], found["foreground_share"]) == (3, 1)
    assert found["caption_length"] == pytest.approx((3 + 0 + 1) / 3)
    texts = ["a dog runs", "", "ball"]
    assert [found[f"bleu_{n}"] for n in (1, 2, 3, 4)] == list(bleu(texts, split.references))
    assert found["accuracy"] == found["bleu_4"]
    assert found["cider"] == cider(texts, split.references)
    assert found["loss"] == pytest.approx((4 + 4 + 3 + 2 + 3 + 2) / 6)  # a caption counts once


def test_evaluation_equals_the_definition() -> None:
    """Object by object, in plain loops."""
    model, split = random_case()
    model.settings = DecoderSettings(longest=4)
    found = evaluate(model, SOFT, split, last=True)
    assert found is not None
    counts = dict.fromkeys(("saif", "ftpt", "ffpt", "ftpf", "ffpf"), 0)
    in_saif = []
    for one in split.objects:
        score, attention, word = most_expected(model, one, longest=4)
        is_strong = score >= 0.3 and attention @ one.inside.numpy() >= 0.3
        counts["saif"] += is_strong
        in_saif.append(is_strong)
        focus = "t" if word is not None and one.inside[attention.argmax()] >= 0.5 else "f"
        counts[f"f{focus}p{'t' if word in one.words else 'f'}"] += 1
    assert all(counts.values())
    for name, count in counts.items():
        assert found[name] == pytest.approx(count / len(split.objects))
    assert marked(found, "saif").tolist() == in_saif
    assert marked(found, "known").all()
    assert split.base_images.tolist() == [[one.image] for one in split.objects]
    assert "instance_right" not in found  # Bleu is no share of instances


def most_expected(
    model: TableModel, one: Boxed, longest: int
) -> tuple[float, NDArray[np.float32], int | None]:
    """Score, attention and likeliest word where an object is likeliest, in a greedy caption."""
    best: tuple[float, NDArray[np.float32], int | None] = 0.0, np.zeros(6, np.float32), None
    before, last = START, START
    for _ in range(longest):
        expects = model.probabilities[one.image, before, last].tolist()
        word = max((END, A, DOG, PUPPY, RUNS, BALL), key=expects.__getitem__)
        if word == END:
            break
        score = sum(expects[each] for each in one.words)
        if score > best[0]:
            best = score, model.attention[one.image, last].numpy(), word
        before, last = last, word
    return best


@pytest.mark.parametrize("beam", [1, 3])
def test_order_of_images_and_size_of_passes_change_nothing(
    beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, split = random_case()
    model.settings = DecoderSettings(longest=5, beam=beam)
    whole = evaluate(model, SOFT, split, last=True)
    assert whole is not None
    order = np.random.default_rng(1).permutation(split.num_images).tolist()
    monkeypatch.setattr("study.hardware.PASS_BYTES", {"cpu": 3 * beam * split.bytes_each})
    model, split = permuted(model, split, order)
    other = evaluate(model, SOFT, split, last=True)
    assert other is not None
    assert other.pop("examples") == whole.pop("examples")
    assert marked(other, "saif").sum() == marked(whole, "saif").sum()
    for name in ("instance_known", "instance_saif"):
        del other[name], whole[name]
    assert other == {name: pytest.approx(value) for name, value in whole.items()}


def test_the_paradigm_gives_the_loss_and_inference_writes() -> None:
    class Told(TableModel):
        def next_word(self, paradigm: Paradigm, *arguments: Any) -> Any:
            told.add(("writes", paradigm.name))
            return super().next_word(paradigm, *arguments)

        def loss(self, paradigm: Paradigm, batch: Batch) -> Tensor:
            told.add(("loss", paradigm.name))
            return super().loss(paradigm, batch)

    told: set[tuple[str, str]] = set()
    model, split = random_case(images=2)
    evaluate(Told(model.probabilities, model.attention), HARD, split, inference=SOFT)
    assert told == {("loss", "hard"), ("writes", "soft")}


def test_without_objects_nothing_is_said_of_the_foreground() -> None:
    model, split = hand_made()
    found = evaluate(model, SOFT, replace(split, objects=[]), last=True)
    assert found is not None
    assert (found["num_evaluated"], found["foreground_share"]) == (0, 0)
    for name in ("saif", "foreground_attention_mean", "ftpt", "ffpt", "ftpf", "ffpf", "heatmap"):
        assert found[name] is None
    assert found["bleu_1"] > 0
    assert json.loads(found["examples"]) == []


def test_examples_are_of_four_images_and_the_same_for_all_models() -> None:
    model, split = random_case(images=5, seed=4)
    model.settings = DecoderSettings(longest=4)
    found = evaluate(model, SOFT, split, last=True)
    assert found is not None
    examples = json.loads(found["examples"])
    assert len({example["image"] for example in examples}) == len(examples) == 4
    for example in examples:
        assert base64.b64decode(example["jpeg"]) == f"the picture {example['image']}".encode()
        [one] = [
            each
            for each in split.objects
            if (split.file_names[each.image], each.category)
            == (example["image"], example["category"])
        ]
        score, attention, _ = most_expected(model, one, longest=4)
        assert example["box"] == list(one.box)
        assert example["score"] == pytest.approx(score)
        assert example["attention_on_box"] == pytest.approx(float(attention @ one.inside.numpy()))
        assert len(example["attention"]) == len(example["words"])
        np.testing.assert_allclose(example["attention"][example["word"]], attention, atol=5e-5)
    other = evaluate(TableModel.random(5, m=6, seed=5), SOFT, split, last=True)
    assert other is not None
    same = ("image", "category", "box", "jpeg")
    for mine, theirs in zip(examples, json.loads(other["examples"]), strict=True):
        assert [mine[name] for name in same] == [theirs[name] for name in same]
    earlier = evaluate(model, SOFT, split)
    assert earlier is not None
    assert found.keys() - earlier.keys() == {
        "examples", "instance_known", "instance_saif"
    }  # fmt: skip


def test_a_caption_without_words_is_an_example_too() -> None:
    model, split = hand_made()
    found = evaluate(model, SOFT, split, last=True)
    assert found is not None
    [empty] = [each for each in json.loads(found["examples"]) if not each["words"]]
    assert (empty["word"], empty["attention"], empty["score"]) == (0, [], 0)


@pytest.mark.parametrize("table", ["probabilities", "attention"])
def test_a_broken_model_has_no_metrics(table: str) -> None:
    model, split = hand_made()
    getattr(model, table)[2, BALL] = torch.nan
    assert evaluate(model, SOFT, split) is None


def test_attention_is_not_held() -> None:
    model, split = hand_made()
    for wrong in ({"alpha": 0.5}, {"with_incentive": True}):
        with pytest.raises(ValueError, match="captions have no held attention"):
            evaluate(model, SOFT, split, **wrong)
