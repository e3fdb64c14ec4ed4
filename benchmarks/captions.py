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
import itertools
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import Child, Figures, machine, positive, ratio, set_up, timed
from benchmarks.support.processes import peak_bytes
from study import hardware, models, paradigms, tasks
from study.cell import Budget, Cell, DecoderSettings, Options, Phase, Schedule
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
PLAIN, GIVEN, STUDY = "plain loop", "plain loop, features given", "study"

Measured = tuple[float, int, int]
"""Seconds of a step, bytes before the first one, and the most bytes so far."""


def main() -> None:
    """Measures what the command line asks for and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--encoder", choices=tuple(ENCODERS), default="vgg19")
    parser.add_argument("--m", type=positive, default=196, help="regions, a square")
    parser.add_argument("--units", type=positive, default=512, help="of LSTM, word and attention")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    if math.isqrt(args.m) ** 2 != args.m:
        parser.error("--m must be a square")
    device = set_up(parser, args.device, args.threads)
    figures = Figures(args.json, device, args)
    print(machine(device))
    print(
        f"soft, {args.encoder} frozen, m={args.m}, batch {args.batch_size}, {args.units} units",
        flush=True,
    )
    ways: dict[str, tuple[Callable[..., Callable[[], Measured]], *tuple[object, ...]]] = {
        PLAIN: (plain_loop, args, True),
        GIVEN: (plain_loop, args, False),
        STUDY: (study_step, args),
    }
    with contextlib.ExitStack() as stack:
        children = {name: stack.enter_context(Child(*way)) for name, way in ways.items()}
        for child in children.values():  # a warm-up
            child()
        rounds = [{name: child() for name, child in children.items()} for _ in range(args.rounds)]
    seconds = {name: [each[name][0] for each in rounds] for name in ways}
    print(f"{'step':<28}{'ms':>9}{'captions/s':>12}{'x plain':>9}   {'least to most':<16}"
          f"{'GB before':>10}{'peak':>7}")  # fmt: skip
    for name, times in seconds.items():
        typical = statistics.median(times)
        middle, low, high = ratio(seconds, PLAIN, name)
        before, peak = rounds[-1][name][1:]
        print(
            f"{name:<28}{1000 * typical:>9.1f}{args.batch_size / typical:>12.1f}{middle:>9.2f}   "
            f"{f'{low:.2f} to {high:.2f}':<16}{before / 1e9:>10.2f}{peak / 1e9:>7.2f}"
        )
        figures.add(
            step=name,
            seconds=times,
            times_plain_loop=middle,
            least_to_most=[low, high],
            bytes_before=before,
            peak_bytes=peak,
        )


def plain_loop(args: argparse.Namespace, encodes: bool) -> Callable[[], Measured]:
    """A step of `PlainLoop`, for a child process, with the settings that PyTorch has by default.

    Args:
        args: of the command line.
        encodes: whether it encodes its images, or is given their features.
    """
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    split = made_up_captions(args, device, pixels=encodes)
    known = ENCODERS[args.encoder]
    encoder = encoder_networks.build(args.encoder) if encodes else None
    loop = PlainLoop(encoder, known.channels, len(split.vocabulary), args.units).to(device)
    return measured(loop.step, split, args.batch_size, device)


def study_step(args: argparse.Namespace) -> Callable[[], Measured]:
    """The study's step, for a child process."""
    device = hardware.set_up(args.threads, gpu=args.device == "cuda")
    split = made_up_captions(args, device, pixels=False)
    model = models.build(
        "show-attend-tell",
        "mscoco",
        (len(split.vocabulary),),
        len(split.vocabulary),
        further=models.Captions(args.encoder, False, decoder_of(args)),
    ).to(device)
    generator = torch.Generator(device).manual_seed(0)

    def step(split: Captions, rows: Tensor) -> None:
        train_step(
            rows,
            model,
            paradigms.get("soft"),
            optimiser,
            split,
            Sampling(generator),
            hardware.micro_batch(args.batch_size, split.bytes_each, device),
        )

    optimiser = Adam(model.parameters(), LR, BETA)
    return measured(step, split, args.batch_size, device)


def measured(
    step: Callable[[Captions, Tensor], object],
    split: Captions,
    batch_size: int,
    device: torch.device,
) -> Callable[[], Measured]:
    """Times a step on the next batch, and says what memory this process has taken."""
    batches = itertools.cycle(torch.arange(len(split), device=device).split(batch_size))
    before = peak_memory(device)
    timer = timed(lambda: step(split, next(batches)), device)
    return lambda: (timer(), before, peak_memory(device))


def peak_memory(device: torch.device) -> int:
    """The most bytes so far, of the process or of the GPU."""
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else peak_bytes()


def made_up_captions(args: argparse.Namespace, device: torch.device, pixels: bool) -> Captions:
    """Captions of noise, with its pixels or its features."""
    options = tasks.resolved("mscoco", Options(encoder=args.encoder))
    info = tasks.info("mscoco", options)
    count = BATCHES * args.batch_size
    task = info.made_up(replace(info.nominal, lengths=LENGTHS), count)
    cell = Cell(
        task="mscoco",
        data_digest=task.facts.digest,
        m=args.m,
        n=count,
        architecture="show-attend-tell",
        schedule=Schedule((Phase("soft", LR, encoder_lr=LR if pixels else None),)),
        seed=0,
        budget=Budget(count, "mosaics"),
        batch_size=args.batch_size,
        train_metrics_size=1,
        validation_size=1,
        test_size=1,
        decoder=decoder_of(args),
        options=options,
    )
    return task.splits(cell, device)["train"]


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
        words = self.words(before)
        logits = []
        for t in range(before.shape[1]):
            compared = (self.of_region(regions) + self.of_state(hidden)[:, None]).tanh()
            attention = self.score(compared).softmax(dim=1)
            context = (attention * regions).sum(dim=1)
            hidden, cell = self.lstm(torch.cat([words[:, t], context], dim=1), (hidden, cell))
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
