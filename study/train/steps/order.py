"""The order in which a cell sees its training inputs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from study.cell import Cell
from study.cell.seeds import stream_seed


class BatchOrder:
    """Endless batches of row indices, on the host.

    The order is a sequence of permutations of the n training inputs, each a function of only seed
    and epoch. It is cut into batches of equal size, so a batch may span two epochs.

    Args:
        cell: gives seed, n and batch size.
        steps: batches to skip at the start.
    """

    def __init__(self, cell: Cell, steps: int = 0) -> None:
        self._cell = cell
        self._epoch, seen = divmod(steps * cell.batch_size, cell.n)
        self._waiting = self._permutation()[seen:]

    def take(self, batches: int) -> Tensor:
        """The next batches: (batches, batch_size) int64."""
        wanted = batches * self._cell.batch_size
        taken = []
        while wanted:
            if not len(self._waiting):
                self._epoch += 1
                self._waiting = self._permutation()
            taken.append(self._waiting[:wanted])
            self._waiting = self._waiting[wanted:]
            wanted -= len(taken[-1])
        return torch.from_numpy(np.concatenate(taken)).view(batches, -1)

    def _permutation(self) -> np.ndarray:
        rng = np.random.default_rng(stream_seed("order", self._cell.seed, self._epoch))
        return rng.permutation(self._cell.n)
