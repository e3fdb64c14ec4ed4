"""A decoder that attends anew to the regions of an image for every word of its caption (A.4).

"Show, Attend and Tell" (Xu et al., ICML 2015), as the paper describes it: additive attention, an
LSTM of one layer, and a linear output. At word t, with the state h of the LSTM before it,

    f(x_j) = v . tanh( K x_j + Q h + b )                      score of region j
    g(x)   = W dropout( LSTM( [word t-1, x], h ) ) + c        logits of word t at a context x

so that a paradigm trains and predicts a word as it does the class of a mosaic. It also says with
which context the LSTM goes on (`study.paradigms.paradigm.Paradigm.decide`):

- soft: with the weighted sum of the regions that it classifies. Its loss is exact.
- hard-sampled, hard-running: with the region that was drawn for this word. The loss is that of the
  caption in expectation over all m^T sequences of regions, its gradient an unbiased estimate.
- hard: with the region of most attention, as in its inference. The expectation over the regions of
  a word is exact, but those of earlier words are the likeliest ones instead of drawn ones.
- lvml: with the weighted sum. The likelihood of each word is exact, given that the LSTM goes on
  with the sum; that of hard attention, which remembers its regions, sums over m^T sequences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from chapters.captions.data.vocabulary import START
from chapters.captions.encoders import encoder_networks
from chapters.captions.encoders.encoders import ENCODERS, Encoder
from chapters.captions.settings import DecoderSettings
from study.cell.seeds import stream_seed
from study.models.flops import Length, ModelFlops, counted, forward_flops
from study.models.model import Model, Network, initialise, scaled
from study.paradigms import padding
from study.paradigms.paradigm import NO_SAMPLING, Attended, Paradigm, Sampling
from study.tasks.task import Batch


class Memory(NamedTuple):
    """What the decoder knows before a word, of R captions in the making.

    Attributes:
        regions: x, (R, m, D).
        keys: K x + b, (R, m, A).
        hidden: h, (R, H).
        cell: of the LSTM, (R, H).
        gates: what a region adds to the gates of the LSTM, (R, m, 4 H), the same for all words;
            None: no word asked about all regions yet.
    """

    regions: Tensor
    keys: Tensor
    hidden: Tensor
    cell: Tensor
    gates: Tensor | None = None

    def rows(self, index: Tensor | slice) -> Memory:
        """Those captions, in that order: (K,) int64, or a range -> memory of K."""
        return Memory(*(x[index] for x in self if x is not None))


class Attend(nn.Module):
    """The focus: additive attention (Bahdanau et al., ICLR 2015).

    Args:
        channels: D of a region.
        hidden: H of the LSTM.
        size: A, in which region and state are compared.
        precision: of its products.
    """

    def __init__(self, channels: int, hidden: int, size: int, precision: str) -> None:
        super().__init__()
        self.keys = Network(nn.Linear(channels, size), precision=precision)
        self.query = Network(nn.Linear(hidden, size, bias=False), precision=precision)
        self.score = Network(nn.Linear(size, 1, bias=False), precision=precision)

    def forward(self, memory: Memory) -> Tensor:
        """The scores (R, m)."""
        compared = memory.keys + self.query(memory.hidden)[:, None]
        return self.score(compared.tanh()).squeeze(2)


class Write(nn.Module):
    """The classifier: an LSTM cell and the output.

    The four gates are a sum of three products, because those of word and state are the same for
    every region of which g is asked.

    Args:
        channels: D of a region.
        num_words: V.
        settings: sizes.
        precision: of its products.
    """

    def __init__(
        self, channels: int, num_words: int, settings: DecoderSettings, precision: str
    ) -> None:
        super().__init__()
        hidden, gates = settings.hidden, 4 * settings.hidden
        self.words = nn.Embedding(num_words, settings.embedding)
        self.of_word = Network(nn.Linear(settings.embedding, gates), precision=precision)
        self.of_hidden = Network(nn.Linear(hidden, gates, bias=False), precision=precision)
        self.of_context = Network(nn.Linear(channels, gates, bias=False), precision=precision)
        self.out = Network(nn.Linear(hidden, num_words), precision=precision)
        self.first_hidden = Network(nn.Linear(channels, hidden), nn.Tanh(), precision=precision)
        self.first_cell = Network(nn.Linear(channels, hidden), nn.Tanh(), precision=precision)


class _Word:
    """g of one word of R captions: contexts (R k, D), k of each caption in a row -> logits.

    Args:
        write: the networks.
        memory: before this word.
        words: (R,) int64, the words before this one.
        kept: (R, H) factors of dropout; None: all is kept.
    """

    def __init__(self, write: Write, memory: Memory, words: Tensor, kept: Tensor | None) -> None:
        self._write, self._memory, self._kept = write, memory, kept
        self._gates = write.of_word(write.words(words)) + write.of_hidden(memory.hidden)
        self._asked: Tensor | None = None
        self._after: tuple[Memory, Tensor]

    def __call__(self, contexts: Tensor) -> Tensor:
        """The logits (R k, V)."""
        times = len(contexts) // len(self._gates)
        gates = _repeated(self._gates, times) + self._of(contexts, times)
        forget, take, new, show = gates.chunk(4, dim=1)
        cell = _repeated(self._memory.cell, times) * forget.sigmoid()
        cell = cell + take.sigmoid() * new.tanh()
        hidden = show.sigmoid() * cell.tanh()
        seen = hidden if self._kept is None else hidden * _repeated(self._kept, times)
        logits = self._write.out(seen)
        self._asked = contexts
        self._after = self._memory._replace(hidden=hidden, cell=cell), logits
        return logits

    def _of(self, contexts: Tensor, times: int) -> Tensor:
        """What contexts add to the gates (R k, 4 H); if they are all regions, it is kept."""
        known = self._memory.gates
        if times != self._memory.regions.shape[1]:
            return self._write.of_context(contexts)
        if known is None:
            known = self._write.of_context(contexts).unflatten(0, (-1, times))
            self._memory = self._memory._replace(gates=known)
        return known.flatten(0, 1)

    def go_on(self, context: Tensor) -> tuple[Memory, Tensor]:
        """The memory after this word at a context (R, D), and the logits (R, V) there."""
        if self._asked is not context:  # else g was asked just there
            self(context)
        return self._after


class Captioner(Model):
    """Describes an image in words.

    Args:
        num_words: V.
        regions: of what sort they are: the network that makes them, which is `encoder` or frozen.
        settings: of the decoder.
        precision: of its products.
        encoder: pixels (B, 3, P, P) uint8 -> maps (B, D, g, g); None: inputs are regions.
    """

    draws = True
    focus: Attend
    classifier: Write

    def __init__(
        self,
        num_words: int,
        regions: Encoder,
        settings: DecoderSettings,
        precision: str,
        encoder: nn.Module | None,
    ) -> None:
        channels = regions.channels
        super().__init__(
            Attend(channels, settings.hidden, settings.attention, precision),
            Write(channels, num_words, settings, precision),
            encoder,
        )
        self.settings, self._regions = settings, regions

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """The regions (B, m, D) of images, row by row; the inputs if it has no encoder."""
        if self.encoder is None:
            return inputs
        return self.encoder(inputs).flatten(2).transpose(1, 2).contiguous()

    def begin(self, regions: Tensor) -> Memory:
        """The memory before the first word: the LSTM's state is made of the mean region."""
        mean = regions.mean(dim=1)
        write = self.classifier
        return Memory(
            regions, self.focus.keys(regions), write.first_hidden(mean), write.first_cell(mean)
        )

    def next_word(
        self, paradigm: Paradigm, memory: Memory, words: Tensor
    ) -> tuple[Tensor, Tensor, Memory]:
        """Predicts the next word of R captions, by a paradigm's own inference.

        Args:
            paradigm: that predicts.
            memory: of R captions.
            words: (R,) int64, their last words; `START` at first.

        Returns:
            attention (R, m), probabilities (R, V) of the next word, and the memory after it.
        """
        word = _Word(self.classifier, memory, words, None)
        attended = self._attended(paradigm, memory, word)
        probabilities = paradigm.probabilities(attended)
        memory, _ = word.go_on(paradigm.context(attended))
        return paradigm.attention(attended), probabilities, memory

    def loss(
        self,
        paradigm: Paradigm,
        batch: Batch,
        sampling: Sampling = NO_SAMPLING,
        alpha: float | None = None,
        teacher_forcing: float = 1.0,
    ) -> Tensor:
        """See `Model.loss`: nats a caption, its end included.

        Words behind the end of a caption have no part in it: a CPU leaves them out, else they are
        computed and not counted. With a random stream the output sees only part of the state
        (dropout).

        Raises:
            ValueError: alpha is given: no region is known to be the true one.
        """
        if alpha is not None:
            raise ValueError("attention is not held on captions, whose true regions are unknown")
        images, words, _, real = batch
        assert real is not None
        left_out = padding.is_left_out(real)
        if left_out:  # the longest first, so that those that go on are the first ones
            order = real.sum(dim=1).argsort(descending=True, stable=True)
            images, words, real = images[order], words[order], real[order]
        times = paradigm.samples
        begun = self.begin(self.encode(images))
        memory = Memory(*(_repeated(each, times) for each in begun[:4]))
        words, real = _repeated(words, times), _repeated(real, times)
        before = torch.full_like(words[:, 0], START)
        losses, choices = [], []
        for t in range(words.shape[1]):
            count = int(real[:, t].sum()) if left_out else len(words)
            if count == 0:
                break
            if count < len(memory.hidden):
                memory = memory.rows(slice(count))
            word = _Word(self.classifier, memory, before[:count], self._kept(memory, sampling))
            attended = self._attended(paradigm, memory, word)
            decision = paradigm.decide(attended, words[:count, t], sampling)
            ended = ~real[:count, t]
            losses.append(decision.losses.masked_fill(ended, 0.0))
            if decision.log_choice is not None:
                choices.append(decision.log_choice.masked_fill(ended, 0.0))
            if t + 1 < words.shape[1]:
                memory, logits = word.go_on(decision.context)
                before = _fed(words[:count, t], logits, teacher_forcing, sampling)
        log_choices = pad_sequence(choices) if choices else None  # 0 where a caption has ended
        return paradigm.sequence_losses(pad_sequence(losses), log_choices, sampling).mean()

    def flops(
        self,
        input_shape: tuple[int, ...],
        lengths: Mapping[int, int] | None = None,
        m: int | None = None,
    ) -> ModelFlops:
        """See `Model.flops`; lengths are those of captions."""
        assert m is not None
        write, attend, sizes = self.classifier, self.focus, self.settings
        region, state = (self._regions.channels,), (sizes.hidden,)
        side = self._regions.pixels(m)
        inputs = torch.zeros(1, m, *region)
        if self.encoder is not None:
            inputs = torch.zeros(1, 3, side, side, dtype=torch.uint8)
        encoder = counted(self, lambda: self.begin(self.encode(inputs)))
        return ModelFlops(
            focus=forward_flops(attend.score, (sizes.attention,)),
            classifier=forward_flops(write.of_context, region) + forward_flops(write.out, state),
            lengths=tuple(
                Length(m, count, encoder, words)
                for words, count in sorted((lengths or {}).items())
            ),
            once=forward_flops(write.of_context, region),
            decision=forward_flops(attend.query, state)
            + forward_flops(write.of_hidden, state)
            + forward_flops(write.of_word, (sizes.embedding,)),
        )

    def _attended(self, paradigm: Paradigm, memory: Memory, word: _Word) -> Attended:
        scores = self.focus(memory)
        return paradigm.attended(lambda _: scores.flatten(), word, memory.regions)

    def _kept(self, memory: Memory, sampling: Sampling) -> Tensor | None:
        """The factors (R, H) of dropout; None if nothing is dropped."""
        rate = self.settings.dropout
        if sampling.generator is None or not rate:
            return None
        kept = torch.rand(
            memory.hidden.shape, device=memory.hidden.device, generator=sampling.generator
        )
        return (kept >= rate) / (1 - rate)


def _fed(words: Tensor, logits: Tensor, teacher_forcing: float, sampling: Sampling) -> Tensor:
    """The words (R,) that the decoder reads next: a share of true ones, else its own."""
    if teacher_forcing == 1:
        return words
    drawn = torch.rand(words.shape, device=words.device, generator=sampling.generator)
    return torch.where(drawn < teacher_forcing, words, logits.argmax(dim=1))


def _repeated(values: Tensor, times: int) -> Tensor:
    """(R, ...) -> (R times, ...), each row several times in a row."""
    return values if times == 1 else values.repeat_interleave(times, dim=0)


def show_attend_tell(
    input_shape: tuple[int, ...],
    num_classes: int,
    width: float,
    seed: int,
    precision: str,
    encoder: str,
    trained: bool,
    settings: DecoderSettings,
) -> Captioner:
    """The decoder, with its encoder if that is trained.

    Args:
        input_shape: (V,), the number of words.
        num_classes, width, seed, precision: as of every builder; the width scales all sizes.
        encoder: name of `chapters.captions.encoders.encoders.ENCODERS`.
        trained: whether the encoder is part of the model.
        settings: of the decoder.
    """
    sizes = replace(
        settings,
        **{
            name: scaled(getattr(settings, name), width)
            for name in ("attention", "embedding", "hidden")
        },
    )
    network = encoder_networks.build(encoder, precision) if trained else None
    with torch.random.fork_rng(devices=[]):  # construction draws from the global stream
        model = Captioner(input_shape[0], ENCODERS[encoder], sizes, precision, network)
    initialise(model.focus, stream_seed("init", "focus", seed))
    initialise(model.classifier, stream_seed("init", "classifier", seed))
    if network is not None:
        of_encoder = stream_seed("init", "encoder", seed)
        initialise(network, stream_seed("init", "encoder", of_encoder))
    return model
