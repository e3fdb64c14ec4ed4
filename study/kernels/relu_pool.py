"""ReLU of 2 x 2 max pooling in channels last, as one kernel each way, written in Triton.

PyTorch's two layers keep the convolution's output and an int64 index for the backward pass, and
their kernels for channels last are bound by the arithmetic of addresses. Here one byte per output
is kept: which value of its window its gradient goes to.

It is imported on a GPU alone, where PyTorch brings Triton; with TRITON_INTERPRET=1 in the
environment its kernels run on a CPU, to be tested.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

_NOWHERE = tl.constexpr(4)
"""In place of the number of a value: ReLU is flat here."""

_TILE = 1_024
"""Values of a program: windows times channels."""


@triton.jit
def _places(height, width, channels, windows, WINDOWS: tl.constexpr, CHANNELS: tl.constexpr):
    """Of a tile of windows in an image of so many rows and columns of them.

    Returns the image, row and column of each window (WINDOWS, 1); the number of the tile's
    channels (1, CHANNELS); and which of both there are.
    """
    window = tl.program_id(0) * WINDOWS + tl.arange(0, WINDOWS)[:, None]
    channel = tl.arange(0, CHANNELS)[None, :]
    row = window // width
    there = window < windows
    if channels != CHANNELS:  # or no thread could move 16 bytes at a time
        there = there & (channel < channels)
    return (row // height).to(tl.int64), row % height, window % width, channel, there


@triton.jit
def _forward(
    inputs, outputs, places, windows,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, channels: tl.constexpr,
    WINDOWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    rows: tl.constexpr = HEIGHT // 2
    columns: tl.constexpr = WIDTH // 2
    image, row, column, channel, there = _places(
        rows, columns, channels, windows, WINDOWS, CHANNELS
    )
    first = inputs + ((image * HEIGHT + 2 * row) * WIDTH + 2 * column) * channels + channel
    largest = tl.load(first, mask=there, other=0.0).to(tl.float32)
    place = tl.zeros([WINDOWS, CHANNELS], tl.int32)
    for number in tl.static_range(1, 4):
        step = ((number // 2) * WIDTH + number % 2) * channels
        value = tl.load(first + step, mask=there, other=0.0).to(tl.float32)
        # As PyTorch's: the first of equal values, but the last NaN.
        wins = (value > largest) | (value != value)
        largest = tl.where(wins, value, largest)
        place = tl.where(wins, number, place)
    flat = largest <= 0.0
    largest = tl.where(flat, 0.0, largest)
    place = tl.where(flat, _NOWHERE, place)
    at = ((image * rows + row) * columns + column) * channels + channel
    tl.store(outputs + at, largest.to(outputs.dtype.element_ty), mask=there)
    tl.store(places + at, place.to(tl.uint8), mask=there)


@triton.jit
def _backward(
    gradients, places, results, windows,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, channels: tl.constexpr,
    WINDOWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    # Also of windows that an odd row or column begins: what no window has gets 0.
    image, row, column, channel, there = _places(
        (HEIGHT + 1) // 2, (WIDTH + 1) // 2, channels, windows, WINDOWS, CHANNELS
    )
    whole = there & (row < HEIGHT // 2) & (column < WIDTH // 2)
    at = ((image * (HEIGHT // 2) + row) * (WIDTH // 2) + column) * channels + channel
    gradient = tl.load(gradients + at, mask=whole, other=0.0)
    place = tl.load(places + at, mask=whole, other=_NOWHERE).to(tl.int32)
    first = results + ((image * HEIGHT + 2 * row) * WIDTH + 2 * column) * channels + channel
    for number in tl.static_range(4):
        value = tl.where(place == number, gradient, 0.0).to(results.dtype.element_ty)
        inside = (2 * row + number // 2 < HEIGHT) & (2 * column + number % 2 < WIDTH)
        step = ((number // 2) * WIDTH + number % 2) * channels
        tl.store(first + step, value, mask=there & inside)


class _ReLUPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
        number, channels, height, width = ctx.shape = inputs.shape
        outputs = inputs.new_empty(number, height // 2, width // 2, channels)
        places = torch.empty_like(outputs, dtype=torch.uint8)
        windows = number * (height // 2) * (width // 2)
        _launch(_forward, (inputs, outputs, places), windows, ctx.shape)
        ctx.save_for_backward(places)
        return outputs.permute(0, 3, 1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor) -> Tensor:
        (places,) = ctx.saved_tensors
        number, channels, height, width = ctx.shape
        gradients = gradients.contiguous(memory_format=torch.channels_last)
        results = gradients.new_empty(number, height, width, channels)
        windows = number * ((height + 1) // 2) * ((width + 1) // 2)
        _launch(_backward, (gradients, places, results), windows, ctx.shape)
        return results.permute(0, 3, 1, 2)


def relu_pool(inputs: Tensor) -> Tensor:
    """ReLU of max pooling over windows of 2 x 2: (N, C, H, W) -> (N, C, H // 2, W // 2).

    Outputs and gradients are bitwise those of PyTorch's layers, ties, infinities and NaN included.
    """
    return _ReLUPool.apply(inputs)


def _launch(
    kernel: Any, tensors: tuple[Tensor, Tensor, Tensor], windows: int, shape: torch.Size
) -> None:
    _, channels, height, width = shape
    padded = triton.next_power_of_2(channels)
    tile = max(1, _TILE // padded)
    if windows:
        kernel[(triton.cdiv(windows, tile),)](
            *tensors, windows, height, width, channels, tile, padded, enable_fp_fusion=False
        )
