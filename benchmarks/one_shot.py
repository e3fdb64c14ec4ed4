"""What one-shot images cost: a step against a plain loop, and theory at ten temperatures.

    OMP_NUM_THREADS=1 uv run python benchmarks/one_shot.py  # one core, three minutes
    OMP_NUM_THREADS=1 uv run python benchmarks/one_shot.py --sizes paper --rounds 3

Needs no data. A step is of the study (`study.train.steps.step`, the output as a sum over paths)
and of a plain loop: tokens through the layers, head by head, and `torch.optim.Adam`. They take
turns in one run; the ratio is the median over rounds. Theory is solved at ten temperatures, from
the hottest to the coldest, and predicts 1,000 episodes at each, as a cell of the study does, on an
untrained network's attention. Memory is the peak of what arrays took, beside what `memory` says;
kernels of all pairs of paths would take what stands last.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from study import models, paradigms
from study.cell import TransformerSettings
from study.cell.seeds import stream_seed
from study.heads.cell import TEMPERATURES
from study.models.attention_paths import AttentionPaths, signs
from study.paradigms.base import NO_SAMPLING
from study.posterior.methods import Split, at_best_temperature
from study.tasks.one_shot.characters import made_up_characters
from study.tasks.one_shot.episodes import Episodes, OneShotTask
from study.theory.attention_paths import memory, path_features
from study.theory.attention_paths.data_term import kernel_bytes
from study.train.steps.step import Adam, train_step

SIZES = {
    "quick": (16, TransformerSettings(d_model=128, layers=2, heads=4, qk=32, patch=8)),
    "paper": (32, TransformerSettings(d_model=512, layers=2, heads=4, qk=128, patch=8)),
}
"""Pixels and network of the presets."""

BATCH, LR, WEIGHT_DECAY = 128, 1e-3, 5e-5
ASKED, WIDTH = 1_000, 10


def main() -> None:
    """Measures what the command line asks for, and prints it."""
    args = measure.options(
        __doc__,
        sizes={"nargs": "+", "choices": SIZES, "default": list(SIZES)},
        rounds=7,
        examples={"type": measure.positive, "default": 600, "help": "P, of the theory (600)"},
    ).parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    print(f"torch {torch.__version__}, threads {torch.get_num_threads()}, batch {BATCH}")
    for name in args.sizes:
        pixels, sizes = SIZES[name]
        task = OneShotTask("made-up", made_up_characters(pixels), 3)
        steps(name, sizes, task.drawn("train", 2 * BATCH, seed=0), args.rounds)
        theory(name, sizes, task, args.examples)


def network(sizes: TransformerSettings, episodes: Episodes) -> AttentionPaths:
    """An untrained network of these sizes."""
    shape = (episodes.channels, *episodes.images.shape[1:])
    built = models.build("attention-paths", "omniglot", shape, 2, further=(sizes,))
    assert isinstance(built, AttentionPaths)
    return built


def steps(name: str, sizes: TransformerSettings, episodes: Episodes, rounds: int) -> None:
    """Prints the time of a step of both, and their ratio."""
    ours, plain = network(sizes, episodes), network(sizes, episodes)
    optimiser = Adam(ours.parameters(), LR, 0.9, WEIGHT_DECAY)
    theirs = torch.optim.Adam(plain.parameters(), LR, weight_decay=WEIGHT_DECAY)
    rows = torch.arange(BATCH)
    soft = paradigms.get("soft")

    def step() -> None:
        train_step(rows, ours, soft, optimiser, episodes, NO_SAMPLING, BATCH)

    def plain_step() -> None:
        inputs, labels, *_ = episodes.batch(rows)
        loss = (layer_by_layer(plain, inputs) - signs(labels)).square().mean()
        theirs.zero_grad()
        loss.backward()
        theirs.step()

    timers = {each: stepping.timed(each, rows.device) for each in (step, plain_step)}
    seconds = measure.side_by_side(timers, rounds)
    own, other = (1e3 * statistics.median(times) for times in seconds.values())
    times = measure.ratio(seconds[plain_step], seconds[step])
    print(
        f"{name}: a step {own:.1f} ms, of a plain loop {other:.1f} ms: "
        f"{times.median:.2f} times ({times.spread})"
    )


def layer_by_layer(model: AttentionPaths, images: Tensor) -> Tensor:
    """The output (B,), as the network is written down."""
    tokens = model.encoder(images)
    queries, keys = model.focus.queries, model.focus.keys
    layers, heads, size, inputs = queries.shape
    neurons = len(model.classifier.readout)
    z = tokens @ model.classifier.embedding.T / math.sqrt(inputs)
    for layer in range(layers):
        parts = []
        for head in range(heads):
            q, k = (tokens @ each[layer, head].T / math.sqrt(inputs) for each in (queries, keys))
            attention = (q @ k.mT / math.sqrt(size)).softmax(dim=2)
            parts.append(attention @ z @ model.classifier.values[layer, head].T)
        z = torch.stack(parts).sum(dim=0) / math.sqrt(heads * neurons)
    return z.mean(dim=1) @ model.classifier.readout / math.sqrt(neurons)


@torch.no_grad()
def theory(name: str, sizes: TransformerSettings, task: OneShotTask, examples: int) -> None:
    """Prints the time and memory of theory at ten temperatures."""
    parts = []
    for split, count in (("train", examples), ("test", ASKED)):
        episodes = task.drawn(split, count, seed=stream_seed("benchmark") % 1_000)
        model = network(sizes, episodes)
        tokens = model.encoder(episodes.batch(torch.arange(count)).segments)
        attention = [layer.transpose(0, 1).mT.double().numpy() for layer in model.focus(tokens)]
        features = path_features(tokens.mT.double().numpy(), attention, readout="mean")
        parts.append(Split(features, signs(episodes.labels).double().numpy()))
    heads = (sizes.heads,) * sizes.layers
    _, paths, size = parts[0].features.shape

    def solved() -> float:
        started = time.perf_counter()
        at_best_temperature(*parts, heads, WIDTH, TEMPERATURES)
        return time.perf_counter() - started

    peak, seconds = measure.peak_of_arrays(solved)
    print(
        f"{name}: theory of P={examples}, D={paths}, N_0={size} at N={WIDTH} and "
        f"{len(TEMPERATURES)} temperatures {seconds:.1f} s; arrays took up to "
        f"{peak / 1e6:.0f} MB, memory says {memory(examples, paths, size) / 1e6:.0f} MB, all "
        f"kernels {kernel_bytes(examples, paths) / 1e6:.0f} MB"
    )


if __name__ == "__main__":
    main()
