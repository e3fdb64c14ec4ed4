"""Both models of posts: padding changes nothing, and costs nothing."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from chapters.texts.layers import SelfAttention
from chapters.texts.model import EMBEDDING_SIZE
from chapters.texts.plausibility import plausibility, without_rounding
from chapters.texts.texts import TextTask
from study import models, paradigms
from study.cell import PARADIGMS
from study.evaluate.classification import evaluate
from study.evaluate.saif_and_heat_map import saif
from study.models.model import Model
from study.paradigms.paradigm import Sampling
from study.tasks.task import Batch
from study.train.budget import cost
from study.train.steps.step import SGD, train_step
from tests.chapters.texts.post_files import M, load, text_cell, write_posts
from tests.conftest import needs_cuda
from tests.made_up.gpu import WAYS, padding_computed, waits
from tests.made_up.instances import marked

ARCHITECTURES = ("embedding", "self-attention")
EXACT = [name for name in PARADIGMS if paradigms.get(name).exact == name]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TextTask:
    return load(write_posts(tmp_path_factory.mktemp("posts")))


def build(task: TextTask, architecture: str, seed: int = 0, precision: str = "float32") -> Model:
    return models.build(
        architecture,
        "hatexplain",
        task.facts.input_shape,
        task.num_classes,
        seed=seed,
        precision=precision,
    )


def of_test(task: TextTask, count: int | None = None) -> Batch:
    """So many posts to test on; None: all."""
    split = task.splits(text_cell(task))["test"]
    return split.batch(torch.arange(count or len(split)))


def widened(batch: Batch) -> Batch:
    """The same posts with more padding, in which some word stands."""
    words, foreground, mask = (
        functional.pad(each, (0, 5), value=value)
        for each, value in ((batch.segments, 7), (batch.foreground, False), (batch.mask, False))
    )
    return Batch(words, batch.labels, foreground, mask)


def outcome(model: Model, name: str, batch: Batch) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Loss, then attention and scores side by side, then the gradients of all weights."""
    paradigm = paradigms.get(name)
    loss = model.loss(paradigm, batch)
    segments = model.encode(batch.segments, batch.mask)
    predicted = paradigm.predict(model.focus, model.classifier, segments, batch.mask)
    return loss, torch.cat(predicted, dim=1), list(torch.autograd.grad(loss, model.parameters()))


@pytest.mark.parametrize(
    ("architecture", "precision"), [("embedding", "float32"), ("self-attention", "bfloat16")]
)
@pytest.mark.parametrize("name", PARADIGMS)
def test_a_step_waits_for_nothing(task, architecture, precision, name):
    """With a width, and padding computed: so on a GPU. To leave padding out, it would wait."""
    model = build(task, architecture, precision=precision)
    split, rows = task.splits(text_cell(task))["train"], torch.arange(8)
    step = functools.partial(
        train_step, rows, model, paradigms.get(name), SGD(model.parameters(), 0.1, 0.9), split,
        Sampling(torch.Generator()), micro_batch=5,
    )  # fmt: skip
    with waits() as found:
        step()
    assert len(found) >= 2 * 5
    width = split.widths(rows[None])[0]
    with padding_computed(), waits() as found:
        loss = step(width=width)
    assert not found
    assert loss.isfinite()


@needs_cuda
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", EXACT)
def test_a_gpu_computes_the_same(task, architecture, name):
    model, batch = build(task, architecture).double(), of_test(task)
    expected = outcome(model, name, batch)
    there = Batch(*(None if each is None else each.cuda() for each in batch))
    found = outcome(model.cuda(), name, there)
    # Sinusoids are computed in float32, whose functions round otherwise on another device.
    exact = architecture == "embedding"
    rtol, atol = (1e-9, 1e-12) if exact else (1e-5, 1e-6)
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, check_device=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", EXACT)
def test_a_batch_of_posts_is_each_of_them_alone(task, architecture, name, way):
    """Loss, predictions and gradients, whatever the padding; attention to it is exactly zero.

    Padding may be computed, too, as on a GPU, where leaving it out would wait.
    """
    model, batch = build(task, architecture).double(), widened(of_test(task, 8))
    with way():
        loss, predicted, gradients = outcome(model, name, batch)
    m, losses, of_each = batch.segments.shape[1], [], []
    for row, real in enumerate(batch.mask):
        alone = (each[row][real][None] for each in (batch.segments, batch.foreground, batch.mask))
        words, foreground, mask = alone
        post = Batch(words, batch.labels[row : row + 1], foreground, mask)
        own, attended, its_gradients = outcome(model, name, post)
        found = torch.cat([predicted[row, :m][real], predicted[row, m:]])
        torch.testing.assert_close(found, attended[0], rtol=1e-9, atol=1e-12)
        assert (predicted[row, :m][~real] == 0).all()
        losses.append(own)
        of_each.append(its_gradients)
    means = [torch.stack(each).mean(dim=0) for each in zip(*of_each, strict=True)]
    torch.testing.assert_close(torch.stack(losses).mean(), loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(means, gradients, rtol=1e-9, atol=1e-12)


def test_self_attention_is_pytorchs():
    """Ours sees the real words only; theirs all, of which we compare the real ones."""
    torch.manual_seed(0)
    ours = SelfAttention(EMBEDDING_SIZE, 2).double()
    theirs = nn.MultiheadAttention(EMBEDDING_SIZE, 2, batch_first=True).double()
    with torch.no_grad():
        layers = (ours.queries, ours.keys, ours.values)
        theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())
    mask = torch.arange(9) < torch.tensor([[1], [4], [9]])
    x = torch.randn(3, 9, EMBEDDING_SIZE, dtype=torch.float64)
    expected, _ = theirs(x, x, x, key_padding_mask=~mask, need_weights=False)
    torch.testing.assert_close(ours(x[mask], mask), expected[mask], rtol=1e-9, atol=1e-12)


def test_each_head_reads_the_part_it_is_said_to(task):
    """The classifier reads a word's own vector, the focus what its post makes of it."""
    model = build(task, "self-attention")
    words = torch.tensor([[3, 4, 5]])
    segments = model.encode(words)
    moved = model.encode(torch.tensor([[3, 9, 5]]))
    vectors = model.state_dict()["encoder.words.weight"]
    assert torch.equal(segments[0, :, :EMBEDDING_SIZE], vectors[words[0]])
    first, moved_first = segments[:, 0], moved[:, 0]
    assert torch.equal(model.classifier(first), model.classifier(moved_first))
    assert not torch.allclose(model.focus(first), model.focus(moved_first))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_encoder_costs_what_pytorch_counts(task, architecture):
    """Of focus and classifier, tests/study/models/test_network_settings.py tells."""
    model, m = build(task, architecture), 9
    flops = model.flops(task.facts.input_shape, {m: 1})
    with FlopCounterMode(display=False) as counter:
        model.encode(torch.randint(2, 20, (1, m)))
    (length,) = flops.lengths
    assert counter.get_total_flops() == length.encoder
    assert (length.encoder > 0) == (architecture == "self-attention")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("paradigm", PARADIGMS)
@pytest.mark.parametrize("m", [M, 5])
def test_an_epoch_costs_what_its_real_words_cost(task, architecture, paradigm, m):
    flops = build(task, architecture).flops(task.facts.input_shape, task.facts.lengths, m)
    of_paradigm = paradigms.get(paradigm).cost
    encoder = {each.segments: each.encoder for each in flops.lengths}
    lengths = task.splits(text_cell(task, m=m))["train"].lengths.tolist()
    total = sum(3 * (of_paradigm(flops.focus, flops.classifier, n) + encoder[n]) for n in lengths)
    assert cost.training_flops(paradigm, flops, m) * len(lengths) == total


@pytest.mark.parametrize("inference", [None, *EXACT])
@pytest.mark.parametrize("name", EXACT)
def test_evaluation_equals_the_definition(task, name, inference):
    """Of the posts whose rationale is known, in the order of the split and not of its passes."""
    model, batch = build(task, "self-attention", seed=3), of_test(task)
    paradigm, predictor = paradigms.get(name), paradigms.get(inference or name)
    split = task.splits(text_cell(task))["test"]
    named = None if inference is None else predictor
    found = evaluate(model, paradigm, split, inference=named, last=True)
    with torch.no_grad():
        segments = model.encode(batch.segments, batch.mask)
        networks = (model.focus, model.classifier, segments)
        loss = paradigm.loss(*networks, batch.labels, batch.mask)
        attention, scores = predictor.predict(*networks, batch.mask)
    known = batch.foreground.any(dim=1)
    a_z = (attention * batch.foreground).sum(dim=1)[known].numpy()
    s_y = scores.gather(1, batch.labels[:, None]).squeeze(1)[known].numpy()
    right = (scores.argmax(dim=1) == batch.labels).numpy()
    assert (marked(found, "right") == right).all()
    assert (marked(found, "known") == known.numpy()).all()
    kept = without_rounding(attention.numpy())
    expected = {
        "loss": loss.item(),
        "accuracy": right.mean(),
        "num_evaluated": len(known),
        "foreground_share": known.double().mean().item(),
        "saif": saif(a_z, s_y),
        **plausibility(kept, batch.foreground.numpy(), batch.mask.numpy()),
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert 0 < known.sum() < len(known)
