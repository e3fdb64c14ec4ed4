"""The order in which a cell sees its training inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from study.cell import Cell
from study.cell.seeds import stream_seed


def batch_order(cell: Cell, steps: int = 0) -> Iterator[Tensor]:
    """Endless batches of row indices, each (batch_size,) int64, on the host.

    The order is a sequence of permutations of the n training inputs, each a function of only seed
    and epoch. It is cut into batches of equal size, so a batch may span two epochs.

    Args:
        cell: gives seed, n and batch size.
        steps: batches to skip at the start.
    """
    epoch, seen = divmod(steps * cell.batch_size, cell.n)
    waiting = _permutation(cell, epoch)[seen:]
    while True:
        while len(waiting) < cell.batch_size:
            epoch += 1
            waiting = torch.cat([waiting, _permutation(cell, epoch)])
        yield waiting[: cell.batch_size]
        waiting = waiting[cell.batch_size :]


def _permutation(cell: Cell, epoch: int) -> Tensor:
    rng = np.random.default_rng(stream_seed("order", cell.seed, epoch))
    return torch.from_numpy(rng.permutation(cell.n))
