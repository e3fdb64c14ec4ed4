"""How many times faster a training step of captions is than a plain loop's, and its memory.

    python benchmarks/captions.py                    # VGG19's 14 x 14 regions, as published
    python benchmarks/captions.py --encoder lite0 --m 49
    python benchmarks/captions.py --device cuda

All ways train a decoder of the same sizes by soft attention, with a frozen encoder, on the same
number of made-up images and captions, each in a process of its own and in turns. The plain loop is
as people write it: it encodes the images of every batch anew, projects the regions for every word,
and goes on behind the end of shorter captions. "Features given" is that loop without its encoder.
The study's step reads features that were computed once, and leaves ended captions out.

"Before" is the most memory that a process took until its first step, with PyTorch, data and
weights, and "peak" the most in all; on a GPU, both of its memory alone.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import math
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from benchmarks.support.tables import Table
from study import hardware, models, paradigms
from study.cell import DecoderSettings, Options, Phase, Schedule
from study.paradigms.base import Sampling
from study.tasks.captions import encoder_networks
from study.tasks.captions.captions import Captions
from study.tasks.captions.encoders import ENCODERS
from study.tasks.captions.vocabulary import PADDING, START
from study.train.steps.step import Adam, train_step

LENGTHS = {9: 16, 10: 22, 11: 21, 12: 15, 13: 10, 14: 6, 15: 4, 16: 2, 17: 1, 18: 1, 20: 1, 22: 1}
"""Words of a caption, with its end -> % of captions, as of 1,690 captions of MSCOCO's 2017."""

LR, BETA = 1e-3, 0.9
BATCHES = 8  # of made-up captions, taken in turn
PLAIN = "plain loop"

Measured = tuple[float, int, int]
"""Seconds of a step, bytes before the first one, and the most bytes so far."""


def main() -> None:
    """Measures what the command line asks for and prints a table."""
    parser = measure.options(
        __doc__,
        device="cpu",
        encoder={"choices": tuple(ENCODERS), "default": "vgg19"},
        m={"type": measure.positive, "default": 196, "help": "regions, a square"},
        units={"type": measure.positive, "default": 512, "help": "of LSTM, word and attention"},
        batch_size=32,
        threads=torch.get_num_threads(),
        rounds=5,
        json=measure.FILE,
    )
    args = stepping.set_up(parser)
    if math.isqrt(args.m) ** 2 != args.m:
        parser.error("--m must be a square")
    figures = stepping.Figures(args)
    print(stepping.machine(args.device))
    print(
        f"soft, {args.encoder} frozen, m={args.m}, batch {args.batch_size}, {args.units} units",
        flush=True,
    )
    ways = {PLAIN: (plain_loop, True), f"{PLAIN}, features given": (plain_loop, False),
            "study": (of_study, False)}  # fmt: skip
    with contextlib.ExitStack() as stack:
        steps = {
            name: stack.enter_context(measure.in_a_process(measured, args, *way))
            for name, way in ways.items()
        }
        rounds = measure.side_by_side(steps, args.rounds)
    table = Table("step", "ms", "captions/s", "x plain", "  least to most", "GB before", "peak")
    seconds = {name: [each[0] for each in found] for name, found in rounds.items()}
    for name, times in seconds.items():
        typical = statistics.median(times)
        to_plain = measure.ratio(seconds[PLAIN], times)
        _, before, peak = rounds[name][-1]
        table.row(
            name, f"{1000 * typical:.1f}", f"{args.batch_size / typical:.1f}",
            f"{to_plain.median:.2f}", to_plain.spread, f"{before / 1e9:.2f}", f"{peak / 1e9:.2f}",
        )  # fmt: skip
        figures.add(
            step=name, seconds=times, times_plain_loop=to_plain.median,
            least_to_most=[to_plain.least, to_plain.most], bytes_before=before, peak_bytes=peak,
        )  # fmt: skip


def measured(
    args: argparse.Namespace, way: Callable[..., Callable[[Tensor], object]], encodes: bool
) -> Callable[[], Measured]:
    """A step on the next captions and what memory it has taken, for a process of its own.

    Args:
        args: of the command line.
        way: made-up captions -> a step on rows of them.
        encodes: whether their images are pixels; else they are features.
    """
    torch.set_num_threads(args.threads)  # all else as PyTorch has it by default
    if way is of_study:
        hardware.set_up(args.threads, gpu=args.device.type == "cuda")
    cell, task = stepping.made_up(
        "mscoco", BATCHES * args.batch_size, Options(encoder=args.encoder), LENGTHS, m=args.m,
        architecture="show-attend-tell", batch_size=args.batch_size, decoder=decoder_of(args),
        schedule=Schedule((Phase("soft", LR, encoder_lr=LR if encodes else None),)),
    )  # fmt: skip
    step = way(args, task.splits(cell, args.device)["train"], encodes)
    batches = itertools.cycle(torch.arange(cell.n, device=args.device).split(args.batch_size))
    before = stepping.peak_memory(args.device)
    timer = stepping.timed(lambda: step(next(batches)), args.device)
    return lambda: (timer(), before, stepping.peak_memory(args.device))


def plain_loop(
    args: argparse.Namespace, split: Captions, encodes: bool
) -> Callable[[Tensor], object]:
    """A step of `PlainLoop`."""
    encoder = encoder_networks.build(args.encoder) if encodes else None
    channels = ENCODERS[args.encoder].channels
    loop = PlainLoop(encoder, channels, len(split.vocabulary), args.units).to(args.device)
    return functools.partial(loop.step, split)


def of_study(args: argparse.Namespace, split: Captions, _: bool) -> Callable[[Tensor], object]:
    """The study's step."""
    num_words = len(split.vocabulary)
    further = models.Captions(args.encoder, False, decoder_of(args))
    model = models.build("show-attend-tell", "mscoco", (num_words,), num_words, further=further)
    model = model.to(args.device)
    return functools.partial(
        train_step,
        model=model,
        paradigm=paradigms.get("soft"),
        optimiser=Adam(model.parameters(), LR, BETA),
        split=split,
        sampling=Sampling(torch.Generator(args.device).manual_seed(0)),
        micro_batch=hardware.micro_batch(args.batch_size, split.bytes_each, args.device),
    )


def decoder_of(args: argparse.Namespace) -> DecoderSettings:
    """A decoder all of whose sizes are the same."""
    return DecoderSettings(embedding=args.units, attention=args.units, hidden=args.units)


class PlainLoop(nn.Module):
    """Show, Attend and Tell as people write it: one word after the other, for the whole batch.

    Args:
        encoder: uint8 pixels (B, 3, P, P) -> (B, D, g, g), frozen; None: images are regions.
        channels: D.
        num_words: V.
        units: of LSTM, word and attention.
    """

    def __init__(
        self, encoder: nn.Module | None, channels: int, num_words: int, units: int
    ) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False) if encoder else None
        self.words = nn.Embedding(num_words, units)
        self.of_region, self.of_state = nn.Linear(channels, units), nn.Linear(units, units)
        self.score = nn.Linear(units, 1)
        self.first_hidden, self.first_cell = nn.Linear(channels, units), nn.Linear(channels, units)
        self.lstm = nn.LSTMCell(units + channels, units)
        self.dropout = nn.Dropout(0.5)
        self.out = nn.Linear(units, num_words)
        self.loss = nn.CrossEntropyLoss(ignore_index=PADDING)
        trained = [weight for weight in self.parameters() if weight.requires_grad]
        self.optimiser = torch.optim.Adam(trained, LR)

    def forward(self, images: Tensor, before: Tensor) -> Tensor:
        """Logits (B, T, V) of the words after the words (B, T) `before` them."""
        regions = images
        if self.encoder is not None:
            regions = self.encoder(images).flatten(2).transpose(1, 2)
        mean = regions.mean(dim=1)
        hidden, cell = self.first_hidden(mean).tanh(), self.first_cell(mean).tanh()
        logits = []
        for word in self.words(before).unbind(dim=1):
            compared = (self.of_region(regions) + self.of_state(hidden)[:, None]).tanh()
            attention = self.score(compared).softmax(dim=1)
            context = (attention * regions).sum(dim=1)
            hidden, cell = self.lstm(torch.cat([word, context], dim=1), (hidden, cell))
            logits.append(self.out(self.dropout(hidden)))
        return torch.stack(logits, dim=1)

    def step(self, split: Captions, rows: Tensor) -> float:
        """Takes one step; returns the loss before it."""
        images, words, _, _ = split.batch(rows)
        before = nn.functional.pad(words[:, :-1], (1, 0), value=START)
        self.optimiser.zero_grad()
        loss = self.loss(self(images, before).flatten(0, 1), words.flatten())
        loss.backward()
        self.optimiser.step()
        return loss.item()


if __name__ == "__main__":
    main()
