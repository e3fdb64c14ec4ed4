"""The decoder of captions against plain loops, and its gradients against exact expectations."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from chapters.captions.data.vocabulary import END, FIRST_WORD, PADDING, START
from chapters.captions.encoders.encoders import Encoder
from chapters.captions.model import Captioner
from chapters.captions.settings import DecoderSettings
from study import paradigms
from study.models.model import initialise
from study.paradigms import hard_sampled
from study.paradigms.lvml_sampled import LVMLSampled
from study.paradigms.paradigm import Sampling
from study.tasks.task import Batch
from tests.made_up.gpu import WAYS, padding_computed, waits

B, M, D, V = 3, 4, 5, 9
LENGTHS = (2, 4, 1)
REGIONS = Encoder(16, D, pretrained=False, mean=(0, 0, 0), std=(1, 1, 1))
SIZES = DecoderSettings(embedding=3, attention=4, hidden=6, dropout=0.0)

EXACT = ("soft", "hard", "lvml")
SAMPLED = ("hard-sampled", "hard-running")


def tiny(settings: DecoderSettings = SIZES, seed: int = 0) -> Captioner:
    model = Captioner(V, REGIONS, settings, "float32", None)
    for part in (model.focus, model.classifier):
        initialise(part, seed)
    return model.double()


def batch(lengths: Sequence[int] = LENGTHS, m: int = M, seed: int = 0) -> Batch:
    rng = torch.Generator().manual_seed(seed)
    counts = torch.tensor(lengths)
    real = torch.arange(max(lengths)) < counts[:, None]
    words = torch.randint(FIRST_WORD, V, real.shape, generator=rng)
    words[torch.arange(len(lengths)), counts - 1] = END
    regions = torch.randn(len(lengths), m, D, dtype=torch.float64, generator=rng)
    nothing = torch.zeros(len(lengths), 0, dtype=torch.bool)
    return Batch(regions, words.masked_fill(~real, PADDING), nothing, real)


def gradient(model: Captioner, loss: Tensor) -> Tensor:
    """Of all weights, one after another; 0 of those that the loss does not depend on."""
    parameters = list(model.parameters())
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    pairs = zip(parameters, found, strict=True)
    return torch.cat([(p * 0 if g is None else g).flatten() for p, g in pairs])


class Plain:
    """One caption at a time, a word at a time."""

    def __init__(self, model: Captioner, regions: Tensor) -> None:
        self.focus, self.write = model.focus, model.classifier
        self.regions = regions
        mean = regions.mean(dim=0)
        state = (self.write.first_hidden, self.write.first_cell)
        self.hidden, self.cell = (torch.tanh(net[0](mean)) for net in state)

    def attention(self) -> Tensor:
        query = self.focus.query[0](self.hidden)
        compared = torch.tanh(self.focus.keys[0](self.regions) + query)
        return self.focus.score[0](compared)[:, 0].softmax(dim=0)

    def after(self, word: int, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The LSTM's state at a context, and the log probabilities of the next word there."""
        write = self.write
        gates = write.of_word[0](write.words.weight[word]) + write.of_context[0](context)
        forget, take, new, show = (gates + write.of_hidden[0](self.hidden)).chunk(4)
        cell = forget.sigmoid() * self.cell + take.sigmoid() * new.tanh()
        hidden = show.sigmoid() * cell.tanh()
        return hidden, cell, write.out[0](hidden).log_softmax(dim=0)

    def caption(
        self, paradigm: str, words: Tensor, own: bool = False, regions: Sequence[int] = ()
    ) -> Tensor:
        """The loss of a caption, or that with a region for each word.

        Args:
            paradigm: gives the loss of a word and what the LSTM goes on with.
            words: of the caption.
            own: the words before are the likeliest ones, not the true ones.
            regions: looked at, one a word, whatever the paradigm; also sets `probability`.
        """
        before, loss = START, torch.zeros((), dtype=torch.float64)
        self.probability = loss + 1
        for t, word in enumerate(words.tolist()):
            attention = self.attention()
            context = attention @ self.regions
            if regions:
                self.probability = self.probability * attention[regions[t]]
                context = self.regions[regions[t]]
            each = torch.stack([self.after(before, region)[2][word] for region in self.regions])
            if paradigm == "hard":
                loss = loss - attention @ each
                context = self.regions[attention.argmax()]
            elif paradigm == "lvml":
                loss = loss - (attention.log() + each).logsumexp(dim=0)
            else:
                loss = loss - self.after(before, context)[2][word]
            self.hidden, self.cell, expects = self.after(before, context)
            before = int(expects.argmax()) if own else word
        return loss


@pytest.mark.parametrize("paradigm", EXACT)
def test_a_step_is_that_of_a_plain_loop(paradigm):
    """With captions of different length, in float64."""
    model, inputs = tiny(), batch()
    total = torch.zeros((), dtype=torch.float64)
    for regions, words, length in zip(inputs.segments, inputs.labels, LENGTHS, strict=True):
        total = total + Plain(model, regions).caption(paradigm, words[:length])
    loss = model.loss(paradigms.get(paradigm), inputs)
    torch.testing.assert_close(loss, total / B, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        gradient(model, loss), gradient(model, total / B), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("paradigm", EXACT + SAMPLED)
def test_padding_changes_nothing(paradigm, monkeypatch):
    """Nor does more of it, or the way in which it is treated. Drawn is the likeliest region."""
    monkeypatch.setattr(
        hard_sampled, "_draw", lambda a, count, _: a.argmax(1)[:, None].repeat(1, count)
    )
    model, inputs = tiny(), batch()
    wider = inputs._replace(
        labels=functional.pad(inputs.labels, (0, 3)),
        mask=functional.pad(inputs.mask, (0, 3)),
    )
    found = []
    for each, way in itertools.product((inputs, wider), WAYS):
        with way():
            loss = model.loss(paradigms.get(paradigm), each)
        found.append(torch.cat([loss[None], gradient(model, loss)]))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("paradigm", SAMPLED)
def test_the_sampled_gradient_is_unbiased(paradigm, monkeypatch):
    """Summed over all draws with their probabilities, it is that of the expected loss.

    The expectation is over sequences of regions: a draw changes what the LSTM remembers.
    """
    m, words = 2, 3
    model, inputs = tiny(), batch([words], m)
    known, table = paradigms.get(paradigm), {}
    sequences = list(itertools.product(range(m), repeat=words))
    for sequence in sequences:
        plain = Plain(model, inputs.segments[0])
        loss = plain.caption("sampled", inputs.labels[0], regions=sequence)
        table[sequence] = plain.probability, loss
    expected = sum(p * loss for p, loss in table.values())
    exact = gradient(model, expected)
    mean_loss, mean_gradient = 0.0, torch.zeros_like(exact)
    for drawn in itertools.product(sequences, repeat=known.samples):
        index = iter(torch.tensor(drawn).T[:, :, None])
        monkeypatch.setattr(hard_sampled, "_draw", lambda *_, index=index: next(index))
        baseline = torch.tensor(0.7, dtype=torch.float64)
        loss = model.loss(known, inputs, Sampling(None, baseline))
        share = math.prod(table[sequence][0].item() for sequence in drawn)
        mean_loss += share * loss.item()
        mean_gradient += share * gradient(model, loss)
    assert mean_loss == pytest.approx(expected.item(), rel=1e-12)
    torch.testing.assert_close(mean_gradient, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("paradigm", ["soft", "lvml"])
def test_words_are_predicted_as_they_are_trained(paradigm):
    model, inputs = tiny(), batch([3, 3])
    known = paradigms.get(paradigm)
    memory = model.begin(model.encode(inputs.segments))
    before, total = torch.full((2,), START), torch.zeros(2, dtype=torch.float64)
    for words in inputs.labels.T:
        _, probabilities, memory = model.next_word(known, memory, before)
        total -= probabilities[[0, 1], words].log()
        before = words
    assert model.loss(known, inputs).item() == pytest.approx(total.mean().item(), rel=1e-9)


def test_without_teacher_forcing_the_decoder_reads_its_own_words():
    model, inputs = tiny(), batch([4])
    total = Plain(model, inputs.segments[0]).caption("soft", inputs.labels[0], own=True).item()
    sampling = Sampling(torch.Generator().manual_seed(0))
    loss = model.loss(paradigms.get("soft"), inputs, sampling, teacher_forcing=0.0)
    assert loss.item() == pytest.approx(total, rel=1e-12)
    assert loss.item() != pytest.approx(model.loss(paradigms.get("soft"), inputs).item(), rel=1e-3)


@pytest.mark.parametrize("paradigm", EXACT + SAMPLED)
def test_a_step_waits_for_no_device(paradigm):
    model, inputs = tiny(DecoderSettings(3, 4, 6, dropout=0.5)), batch()
    sampling = Sampling(torch.Generator(), torch.zeros(()))
    step = functools.partial(
        model.loss, paradigms.get(paradigm), inputs, sampling, teacher_forcing=0.5
    )
    with padding_computed(), waits() as found:
        gradient_of = torch.autograd.grad(step(), list(model.parameters()), allow_unused=True)
    assert not found
    assert all(each is None or each.isfinite().all() for each in gradient_of)


def test_cost_is_counted_by_words():
    """By hand: products of a caption of 3 words, in multiply-adds."""
    flops = tiny().float().flops((V,), {3: 10, 5: 2}, M)
    e, a, h = SIZES.embedding, SIZES.attention, SIZES.hidden
    assert flops.focus == 2 * a
    assert flops.classifier == 2 * (D * 4 * h + h * V)
    assert flops.once == 2 * D * 4 * h
    assert flops.decision == 2 * (h * a + (e + h) * 4 * h)
    first = 2 * (M * D * a + 2 * D * h)
    assert [(x.segments, x.count, x.encoder, x.decisions) for x in flops.lengths] == [
        (M, 10, first, 3), (M, 2, first, 5),
    ]  # fmt: skip


def test_attention_is_not_held_on_captions():
    with pytest.raises(ValueError, match="true regions are unknown"):
        tiny().loss(paradigms.get("soft"), batch(), alpha=0.5)


def test_the_sampled_likelihood_of_captions_tends_to_the_exact_one():
    """With thousands of draws a word; the LSTM goes on as with lvml."""
    model, of_batch = tiny(), batch()
    sampled = LVMLSampled()
    sampled.draws = 4_000
    exact = model.loss(paradigms.get("lvml"), of_batch).item()
    draws = Sampling(torch.Generator().manual_seed(0))
    assert model.loss(sampled, of_batch, draws).item() == pytest.approx(exact, rel=2e-3)
