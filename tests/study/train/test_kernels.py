"""Steps with kernels of our own are PyTorch's; Triton's are interpreted here, and compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.support.stepping import build_model, made_up_mosaics, noise_task
from study import hardware, kernels, paradigms
from study.cell import NORMALISATIONS, PRECISIONS, Budget, Cell, NetworkSettings, Schedule
from study.models import gpu_layers
from study.models.images import scripts_cifar10
from study.models.model import Model
from study.paradigms.paradigm import Sampling
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.loop import train
from study.train.steps.pack_member import Member
from study.train.steps.side_by_side import Captured
from study.train.steps.step import SGD, Adam, Optimiser, train_step
from study.train.steps.with_kernels import Flat, ready
from tests.conftest import PROJECT, needs_cuda, tiny_cell
from tests.made_up.training import Killed, Killing, make_storage, numbers

needs_triton = pytest.mark.skipif(not kernels.has_triton(), reason="Triton is not installed")

SHAPES = [
    (2, 32, 30, 30), (2, 64, 13, 13), (5, 16, 10, 10), (1, 6, 5, 3), (2, 3, 2, 7), (1, 1, 2, 2),
]  # fmt: skip
"""Of the networks, and odd ones."""


COMPILES = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from study.kernels.relu_pool import _backward, _forward
numbers = dict(HEIGHT=13, WIDTH=13, WINDOWS=32, CHANNELS=32)
types = {"places": "*u8", "windows": "i32"}
for kernel in (_forward, _backward):
    for channels in (6, 32):
        constants = {**numbers, "channels": channels}
        signature = {name: types.get(name, "*bf16") for name in kernel.arg_names}
        source = ASTSource(kernel, signature | dict.fromkeys(constants, "constexpr"), constants)
        options = {"enable_fp_fusion": False}
        assert compile(source, GPUTarget("cuda", 90, 32), options).asm["cubin"]
"""


DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""Where kernels run: on a CPU, Triton interprets them (`tests/conftest.py`)."""


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_pooling_is_that_of_pytorch_to_the_bit(shape, dtype):
    """With ties, and with infinities and NaN among the inputs."""
    draw = torch.Generator().manual_seed(0)
    from study.kernels.relu_pool import relu_pool

    inputs = torch.randn(shape, generator=draw).mul(4).round().div(4)
    odd = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0])
    at = torch.randint(inputs.numel(), (inputs.numel() // 8 + 1,), generator=draw)
    broken = inputs.flatten().index_copy(0, at, odd[torch.arange(len(at)) % 5]).view(shape)
    for given in (inputs, broken):
        leaf = given.to(DEVICE, dtype).to(memory_format=torch.channels_last).requires_grad_()
        expected = torch.relu(nn.functional.max_pool2d(leaf, 2))
        got = relu_pool(leaf)
        assert torch.equal(got.nan_to_num(7.0, 8.0, -8.0), expected.nan_to_num(7.0, 8.0, -8.0))
        gradients = torch.randn(expected.shape, generator=draw).to(DEVICE, dtype)
        theirs, ours = (torch.autograd.grad(y, leaf, gradients)[0] for y in (expected, got))
        assert torch.equal(ours, theirs)
        assert ours.is_contiguous(memory_format=torch.channels_last)


@needs_triton
@pytest.mark.skipif(sys.platform != "linux", reason="Triton compiles on Linux alone")
def test_pooling_compiles_for_a_gpu():
    """For an H100, without one: what the interpreter takes, the compiler may not.

    In a process of its own, since the interpreter changes Triton.
    """
    environment = {name: value for name, value in os.environ.items() if "TRITON" not in name}
    command = [sys.executable, "-W", "error", "-c", COMPILES]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, timeout=120)


@needs_triton
def test_the_names_of_weights_stay():
    for precision in ("float32", "tf32", "bfloat16"):
        model = build_model("scripts", precision)
        names = [*model.state_dict()]
        used = gpu_layers.put_in(model, kernels.OWN, precision)
        assert used == (("pooling", "flat") if precision == "float32" else kernels.OWN)
        assert [*model.state_dict()] == names
        assert sum(isinstance(each, gpu_layers.ReLUPool) for each in model.modules()) == 4
        aligned = [each for each in model.modules() if isinstance(each, gpu_layers.AlignedConv2d)]
        assert len(aligned) == {"float32": 0, "tf32": 3, "bfloat16": 3}[precision]


@needs_triton
@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu"])
@pytest.mark.parametrize("norm", [None, *NORMALISATIONS])
def test_only_relu_behind_pooling_is_taken_into_it(norm, activation):
    settings = NetworkSettings(normalisation=norm, activation=activation)
    model = scripts_cifar10((3, 32, 32), 3, 1.0, 0, "float32", settings)
    gpu_layers.put_in(model, ("pooling",), "float32")
    pooled = sum(isinstance(each, gpu_layers.ReLUPool) for each in model.modules())
    assert pooled == (4 if activation == "relu" else 0)


@pytest.mark.parametrize("norm", [None, *NORMALISATIONS])
def test_channels_of_zeros_change_nothing(norm):
    """Nor those that the next convolution gets; in float64."""
    settings = NetworkSettings(normalisation=norm)
    plain, aligned = (
        scripts_cifar10((3, 32, 32), 3, 1.0, 0, "float32", settings).double() for _ in "12"
    )
    gpu_layers.put_in(aligned, ("aligned",), "bfloat16")
    images = torch.randn(4, 3, 32, 32, dtype=torch.float64)
    for name in ("focus", "classifier"):
        networks = [getattr(model, name) for model in (plain, aligned)]
        outputs = [network(images) for network in networks]
        torch.testing.assert_close(*outputs)
        gradients = [
            torch.autograd.grad(output.square().sum(), [*network.parameters()])
            for network, output in zip(networks, outputs, strict=True)
        ]
        torch.testing.assert_close(*gradients)


def trained(model: Model, optimiser: Optimiser, used: kernels.Kernels, paradigm: str) -> Any:
    """Weights, what the optimiser keeps, and the loss after some steps in two parts."""
    device = next(model.parameters()).device
    mosaics = made_up_mosaics(20, 2, device, images=40)
    losses, optimiser = ready(model, optimiser, used)
    sampling = Sampling(torch.Generator().manual_seed(0))
    for start in range(2):
        rows = torch.arange(start, start + 4, device=device)
        loss = train_step(rows, losses, paradigms.get(paradigm), optimiser, mosaics, sampling, 3)
    return [*model.state_dict().values(), *optimiser.state, loss]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml"])
@pytest.mark.parametrize("adam", [False, True])
def test_one_tensor_of_weights_is_updated_as_they_are(adam, paradigm, precision):
    """To the bit, with names, memory formats, and what a checkpoint keeps."""
    found = []
    for used in ((), ("flat",)):
        model = build_model("scripts", precision)
        kind = Adam if adam else SGD
        found.append(trained(model, kind(model.parameters(), 0.01, 0.9), used, paradigm))
    fresh = build_model("scripts")
    assert [p.stride() for p in model.parameters()] == [p.stride() for p in fresh.parameters()]
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


def test_weights_that_are_normalised_or_held_are_no_part_of_the_one_tensor():
    normalised = scripts_cifar10(
        (3, 32, 32), 3, 1.0, 0, "bfloat16", NetworkSettings(normalisation="layer")
    )
    assert gpu_layers.put_in(normalised, ("flat",), "bfloat16") == ()
    model = build_model("scripts")
    flat, _ = ready(model, SGD(model.classifier.parameters(), 0.01, 0.9), ("flat",))
    assert isinstance(flat, Flat)
    focus = [each.clone() for each in model.focus.parameters()]
    flat.step([torch.ones_like(each) for each in flat.parameters])
    assert all(map(torch.equal, focus, model.focus.parameters()))


@needs_triton
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_step_with_all_of_our_kernels_is_pytorchs(precision):
    found = []
    for used in ((), kernels.OWN):
        model = build_model("scripts", precision).to(DEVICE)
        gpu_layers.put_in(model, used, precision)
        found.append(trained(model, SGD(model.parameters(), 0.01, 0.9), used, "soft"))
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("first", "then"), [(("flat",), ()), ((), ("flat",))])
def test_a_cell_goes_on_with_other_kernels(first, then, digits, tmp_path):
    """Its checkpoint knows nothing of them."""
    cell, storage = tiny_cell(digits), make_storage(tmp_path)
    with pytest.raises(Killed):
        train(cell, digits, checkpoints=Killing(storage, [5]), kernels=first)
    resumed = train(cell, digits, checkpoints=Checkpoints(storage), kernels=then)
    assert numbers(resumed) == numbers(train(cell, digits))


@pytest.mark.faults
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's, of its own access
@pytest.mark.parametrize("name", ["soft", "lvml"])
def test_what_is_compiled_for_a_copy_does_for_the_cell(name, digits):
    """A step that is recorded must find all compiled."""
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler")
    cell = tiny_cell(digits, Schedule.single(name, 0.1))
    compiled = train(cell, digits, kernels=(kernels.COMPILED,))
    made = torch._dynamo.utils.counters["stats"]
    graphs = made["unique_graphs"]
    train(cell, digits, kernels=(kernels.COMPILED,))
    assert made["unique_graphs"] == graphs > 0
    losses = [
        [row["loss"] for row in each.evaluations] for each in (compiled, train(cell, digits))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@needs_cuda
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("used", [*((each,) for each in kernels.OWN), kernels.OWN])
def test_steps_on_a_gpu_are_pytorchs_but_for_rounding(used, precision):
    """In a pack, whose steps are one graph."""
    device = torch.device("cuda")
    cell = Cell(
        task="cifar10", data_digest="noise", n=64, m=3, seed=0, architecture="scripts",
        batch_size=16, precision=precision, schedule=Schedule.single("soft", 0.01),
        momentum=0.9, budget=Budget(640, "mosaics"),
    )  # fmt: skip
    task = noise_task(cell, device)
    found = []
    for each in ((), used):
        pack = [Member(replace(cell, seed=i), task, device, None, each) for i in range(2)]
        for member in pack:
            member.enter_phase(0)
        stepping = Captured(device)
        with hardware.products(precision, device):
            stepping.prepare(pack)
            list(stepping.steps(pack, 20))
        found.append([member.state()["summed_loss"].item() for member in pack])
    assert found[0] == pytest.approx(found[1], rel=1e-2 if precision == "bfloat16" else 1e-3)
