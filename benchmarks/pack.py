"""Cell-steps per second of k cells, by how their steps are put together, side by side in one run.

    python benchmarks/pack.py --architecture perceptron --members 8
    python benchmarks/pack.py --device cuda --architecture scripts --m 20 --members 4 8

Cells of different seeds, each with its own mosaics of a batch:

- one after the other: one cell alone, whose rate is that of any number of them;
- side by side: what `study.train.loop` does with a pack, a CUDA stream and graph each, or a loop;
- vmap: PyTorch's transformation of one cell's gradient into that of all;
- stacked: convolutions as grouped ones, linear layers as batched matrix products.

On a GPU each way's steps are CUDA graphs. A pass through the networks holds as many mosaics in
each way, of one member or of all, unless `--whole`: then a batch goes through at once.
"""

from __future__ import annotations

import argparse
import copy
import functools
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.measure import (
    LR,
    MOMENTUM,
    build_model,
    captured,
    machine,
    made_up_mosaics,
    positive,
    ratio,
    set_up,
    side_by_side,
    step_of,
    task_of,
    timed,
)
from study import hardware, paradigms, tasks
from study.models.base import Model
from study.paradigms.base import Paradigm
from study.tasks.mosaics.mosaics import Mosaics
from study.train.optimiser import SGD
from study.train.step import Step

N = 4_096
ALONE = "one after the other"
TOLERANCE = {"float32": 1e-3, "bfloat16": 3e-2}
"""How far gradients may be apart, relative to their norm: rounding decides which pixel a pooling
window takes, and bfloat16 has 8 bits."""

Gradients = Callable[[Tensor], list[Tensor]]
"""Rows (k, b) of the mosaics -> gradients of each member's mean loss, stacked (k, ...)."""


def main() -> None:
    """Measures what the command line asks for and prints one table a number of members."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--m", type=positive, default=5)
    parser.add_argument(
        "--paradigm", nargs="+", choices=("soft", "hard", "lvml"), default=["soft"]
    )
    parser.add_argument(
        "--architecture", choices=("scripts", "small", "perceptron"), default="scripts"
    )
    parser.add_argument("--precision", choices=tuple(TOLERANCE), default="float32")
    parser.add_argument("--batch-size", type=positive, default=256)
    parser.add_argument("--members", type=positive, nargs="+", default=[4])
    parser.add_argument("--whole", action="store_true", help="batches in one pass")
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--steps", type=positive, default=5, help="a turn")
    args = parser.parse_args()
    device = set_up(parser, args.device, args.threads)
    print(machine(device))
    info = tasks.info(task_of(args.architecture))
    mosaics = made_up_mosaics(N, args.m, device, info.input_shape, info.num_classes)
    for members in args.members:
        for paradigm in args.paradigm:
            measure(paradigm, members, mosaics, args)


def measure(paradigm: str, members: int, mosaics: Mosaics, args: argparse.Namespace) -> None:
    """Times all ways to take one step of each member and prints them."""
    device = mosaics.labels.device
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(N, (members, args.batch_size), generator=generator).to(device)
    of_one, of_all = (
        args.batch_size
        if args.whole
        else hardware.micro_batch(args.batch_size, each * mosaics.bytes_each, device)
        for each in (1, members)
    )

    def ways(lr: float) -> dict[str, Way]:
        def models() -> list[Model]:
            return [
                build_model(args.architecture, seed, args.precision).to(device)
                for seed in range(members)
            ]

        one = paradigms.get(paradigm)
        return {
            ALONE: Apart(models()[:1], one, mosaics, of_one, lr),
            "side by side": Apart(models(), one, mosaics, of_one, lr),
            "vmap": Together(vmapped(models(), one, mosaics), of_all, lr),
            "stacked": Together(stacked(models(), one, mosaics), of_all, lr),
        }

    require_equal_updates(ways, rows, TOLERANCE[args.precision])
    timers = {}
    for name, way in ways(LR).items():
        of_way = rows[:1] if name == ALONE else rows
        step = functools.partial(way.captured(of_way) if rows.is_cuda else way.step, of_way)
        timers[name] = timed(functools.partial(repeat, step, args.steps), device)
    seconds = side_by_side(timers, args.rounds)
    # One cell alone takes the time of one; as many as the others take that often.
    seconds[ALONE] = [members * each for each in seconds[ALONE]]
    print(
        f"\n{paradigm}, {members} members, m={args.m}, batch {args.batch_size}, "
        f"{args.architecture}, {args.precision}, parts of {of_one} each or {of_all} of all"
    )
    print(f"{'cells':<24}{'ms a cell-step':>15}{'cell-steps/s':>14}{'x':>8}   least to most")
    for name, times in seconds.items():
        typical = statistics.median(times) / members / args.steps
        middle, low, high = ratio(seconds, ALONE, name)
        print(
            f"{name:<24}{1000 * typical:>15.3f}{1 / typical:>14.1f}{middle:>8.2f}   "
            f"{low:.2f} to {high:.2f}",
            flush=True,
        )


class Apart:
    """Each member takes its own step.

    Args:
        models: of the members.
        paradigm: of all.
        mosaics: of all.
        micro_batch: mosaics a part.
        lr: learning rate.
    """

    def __init__(
        self,
        models: Sequence[Model],
        paradigm: Paradigm,
        mosaics: Mosaics,
        micro_batch: int,
        lr: float,
    ) -> None:
        self._models = models
        self._steps = [step_of(model, paradigm, mosaics, micro_batch, lr) for model in models]

    def step(self, rows: Tensor) -> None:
        """One step of each member on its rows (k, B)."""
        for step, of_member in zip(self._steps, rows, strict=True):
            step(of_member)

    def captured(self, rows: Tensor) -> Callable[[Tensor], None]:
        """The steps as CUDA graphs, each on its stream."""
        streams = [torch.cuda.Stream() for _ in self._steps]
        graphs = [
            captured(step, of_member, stream)
            for step, of_member, stream in zip(self._steps, rows, streams, strict=True)
        ]

        def steps(rows: Tensor) -> None:
            for graph, stream, of_member in zip(graphs, streams, rows, strict=True):
                with torch.cuda.stream(stream):
                    graph(of_member)

        return steps

    def weights(self) -> list[Tensor]:
        """Copies, stacked (k, ...)."""
        parameters = zip(*(model.parameters() for model in self._models), strict=True)
        return [torch.stack(each).detach() for each in parameters]


class Together:
    """All members take one step.

    Args:
        function: parameters (k, ...) and their gradients.
        micro_batch: mosaics a part of each member.
        lr: learning rate.
    """

    def __init__(
        self, function: tuple[list[Tensor], Gradients], micro_batch: int, lr: float
    ) -> None:
        self._parameters, self._gradients = function
        self._micro_batch = micro_batch
        self._optimiser = SGD(self._parameters, lr, MOMENTUM)

    def step(self, rows: Tensor) -> Tensor:
        """One step of each member on its rows (k, B); what it returns means nothing."""
        total: list[Tensor] = []
        for part in rows.split(self._micro_batch, dim=1):
            share = part.shape[1] / rows.shape[1]
            of_part = [share * each for each in self._gradients(part)]
            total = [a + b for a, b in zip(total, of_part, strict=True)] if total else of_part
        self._optimiser.step(total)
        return total[0]

    def captured(self, rows: Tensor) -> Step:
        """The step as a CUDA graph."""
        return captured(self.step, rows, torch.cuda.Stream())

    def weights(self) -> list[Tensor]:
        """Copies, stacked (k, ...)."""
        return [each.detach().clone() for each in self._parameters]


Way = Apart | Together


def vmapped(
    models: Sequence[Model], paradigm: Paradigm, mosaics: Mosaics
) -> tuple[list[Tensor], Gradients]:
    """Parameters of all members, and their gradients by `torch.func`."""
    parameters, _ = torch.func.stack_module_state(list(models))
    template = copy.deepcopy(models[0]).to("meta")

    def loss(values: dict[str, Tensor], segments: Tensor, labels: Tensor) -> Tensor:
        def network(name: str) -> Callable[[Tensor], Tensor]:
            own = {
                key.removeprefix(f"{name}."): value
                for key, value in values.items()
                if key.startswith(f"{name}.")
            }
            return lambda x: torch.func.functional_call(getattr(template, name), own, (x,))

        return paradigm.loss(network("focus"), network("classifier"), segments, labels)

    of_all = torch.func.vmap(torch.func.grad(loss))

    def gradients(rows: Tensor) -> list[Tensor]:
        inputs, labels, _, _ = mosaics.batch(rows.flatten())
        segments = inputs.unflatten(0, rows.shape)
        return list(of_all(parameters, segments, labels.unflatten(0, rows.shape)).values())

    return list(parameters.values()), gradients


def stacked(
    models: Sequence[Model], paradigm: Paradigm, mosaics: Mosaics
) -> tuple[list[Tensor], Gradients]:
    """Parameters of all members, and their gradients with the layers of all in one."""
    focus = StackedNetwork([model.focus for model in models])
    classifier = StackedNetwork([model.classifier for model in models])
    parameters = focus.parameters + classifier.parameters

    def gradients(rows: Tensor) -> list[Tensor]:
        segments, labels, _, _ = mosaics.batch(rows.flatten())
        mean = paradigm.loss(focus, classifier, segments, labels)
        return list(torch.autograd.grad(mean * len(models), parameters))

    return parameters, gradients


class StackedNetwork:
    """The networks of all members, layer by layer.

    Args:
        networks: of equal layers.
    """

    def __init__(self, networks: Sequence[Any]) -> None:
        self._members = len(networks)
        self._precision = networks[0].precision
        self._convolves = any(isinstance(layer, nn.Conv2d) for layer in networks[0])
        self._layers: list[tuple[nn.Module, list[Tensor]]] = []
        for same in zip(*networks, strict=True):
            parameters = zip(*(layer.parameters() for layer in same), strict=True)
            self._layers.append((same[0], [_stack(each) for each in parameters]))
        self.parameters = [each for _, parameters in self._layers for each in parameters]

    def __call__(self, inputs: Tensor) -> Tensor:
        """(k N, ...), member after member -> (k N, ...)."""
        on = self._precision == "bfloat16"
        with torch.autocast(inputs.device.type, torch.bfloat16, on, cache_enabled=False):
            return self._forward(inputs).float()

    def _forward(self, x: Tensor) -> Tensor:
        x = x.unflatten(0, (self._members, -1))
        if self._convolves:  # (k, N, C, H, W) -> (N, k C, H, W)
            x = x.transpose(0, 1).flatten(1, 2).contiguous(memory_format=torch.channels_last)
        for layer, parameters in self._layers:
            if isinstance(layer, nn.Conv2d):
                weight, *bias = (each.flatten(0, 1) for each in parameters)
                b = bias[0] if bias else None
                x = functional.conv2d(x, weight, b, layer.stride, groups=self._members)
            elif isinstance(layer, nn.Linear):
                weight, *bias = parameters
                weight = weight.transpose(1, 2)
                x = torch.baddbmm(bias[0][:, None], x, weight) if bias else torch.bmm(x, weight)
            elif isinstance(layer, nn.Flatten) and layer.start_dim == 1:
                if self._convolves:
                    x = x.unflatten(1, (self._members, -1)).transpose(0, 1)
                x = x.flatten(2)
            elif isinstance(layer, nn.Flatten):  # the scores of the focus
                x = x.squeeze(2)
            else:
                x = layer(x)
        return x.flatten(0, 1)


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    """A parameter (k, ...) whose members lie in memory as they did."""
    if tensors[0].dim() == 4:  # channels stay last
        by_channel = torch.stack([each.permute(0, 2, 3, 1) for each in tensors])
        return by_channel.permute(0, 1, 4, 2, 3).detach().requires_grad_()
    return torch.stack(list(tensors)).detach().requires_grad_()


def require_equal_updates(
    ways: Callable[[float], dict[str, Way]], rows: Tensor, tolerance: float
) -> None:
    """A guard against measuring something else: all ways take the same step."""
    lr = 1e4  # so large that a step shows its gradient to more digits than the weights hide
    updates: dict[str, list[Tensor]] = {}
    for name, way in ways(lr).items():
        before = way.weights()
        way.step(rows[:1] if name == ALONE else rows)
        updates[name] = [a - b for a, b in zip(before, way.weights(), strict=True)]
    reference = updates["side by side"]
    for name, of_way in updates.items():
        # Of all parameters at once: that of the focus's last bias is nothing but rounding.
        right = torch.cat([each[: len(of_way[0])].flatten() for each in reference])
        apart = (torch.cat([each.flatten() for each in of_way]) - right).norm() / right.norm()
        if not apart < tolerance:
            raise SystemExit(f"{name}: its gradients are {float(apart):.1e} apart from the others")


def repeat(function: Callable[[], object], times: int) -> None:
    """Calls it that often."""
    for _ in range(times):
        function()


if __name__ == "__main__":
    main()
