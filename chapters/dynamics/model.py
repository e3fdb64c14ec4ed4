"""Linear focus and classifier of the linear orthogonal setting (section 4)."""

from __future__ import annotations

import torch
from torch import nn

from study.models.model import Model, Network


class LinearModel(Model):
    """f(x) = u x and g(x) = W x without biases, initialised to zero, as in the theorems."""

    def projections(self, flow_time: float, held: bool) -> dict[str, float]:
        """The weights projected on the directions in which they move by Theorems 1 and 2.

        Foreground segments are the first C unit vectors, s_k = e_k. Returns mu, the component of
        W along the matrix of rows s_k - (1/C) sum_k' s_k', and nu, that of u along sum_k s_k,
        unless attention is held; beside the time of the flow.
        """
        (w,) = (p.detach().double() for p in self.classifier.parameters())
        (u,) = (p.detach().double()[0] for p in self.focus.parameters())
        num_classes = len(w)
        square = w[:, :num_classes]
        # <W, D> / |D|^2, where D = I - 1/C on the first C columns and |D|^2 = C - 1.
        mu = (square.trace() - square.sum() / num_classes) / (num_classes - 1)
        nu = {} if held else {"nu": float(u[:num_classes].mean())}
        return {"mu": float(mu), **nu, "flow_time": flow_time}


def linear(
    input_shape: tuple[int, ...], num_classes: int, width: float, seed: int, precision: str
) -> Model:
    """See `study.models.model.Builder`; width and seed have no effect."""
    size = int(torch.Size(input_shape).numel())
    with torch.random.fork_rng(devices=[]):  # construction draws from the global stream
        u, w = nn.Linear(size, 1, bias=False), nn.Linear(size, num_classes, bias=False)
    for layer in (u, w):
        nn.init.zeros_(layer.weight)
    return LinearModel(
        Network(nn.Flatten(), u, nn.Flatten(0), precision=precision),
        Network(nn.Flatten(), w, precision=precision),
    )
