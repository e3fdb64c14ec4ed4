"""Block Gibbs sampling of all weights: V^0, then the V^{lh} of each layer, then a.

The network is linear in each of these blocks, so that a block given the others is a Bayesian
linear regression, and is drawn exactly. This sampler is here to check the other: it integrates
nothing out, and it has no code in common with it. Its steps cost as much as the network is wide.

A block is an array (H, outputs, inputs), of which V^0 and a are cases with H = 1:

    z_{l+1}[rest] = s_l sum_h V[h] z_l[h, rest],    g_l[h, rest] = s_l V[h]' g_{l+1}[rest]

with z_0 = Phi, g = 1 behind the readout, s_l = 1 / sqrt(inputs), but s_0 = 1 as Phi holds it.
`rest` counts the heads of the layers that follow, in C order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.sampling.posterior import Draw, Posterior

OVERDISPERSION = 2.0
"""Chains start from the prior with every weight so many times as large."""


@dataclass(frozen=True, eq=False)
class Block:
    """Weights between two layers, all heads of them.

    Attributes:
        weights: (H, outputs, inputs).
        scale: s_l.
        variance: of a weight under the prior.
    """

    weights: Floats
    scale: float
    variance: float

    def forward(self, below: Floats) -> Floats:
        """z_{l+1} (P, rest, outputs) of z_l (P, H rest, inputs)."""
        heads, outputs, inputs = self.weights.shape
        by_path = self._by_head(below).transpose(0, 2, 1, 3)
        samples, rest = by_path.shape[:2]
        stacked = self.weights.transpose(0, 2, 1).reshape(heads * inputs, outputs)
        return self.scale * (by_path.reshape(samples, rest, heads * inputs) @ stacked)

    def backward(self, above: Floats) -> Floats:
        """g_l (H rest, inputs) of g_{l+1} (rest, outputs)."""
        paths = above @ self.weights  # (H, rest, inputs)
        return self.scale * paths.reshape(-1, paths.shape[-1])

    def drawn(
        self,
        below: Floats,
        above: Floats,
        labels: Floats,
        temperature: float,
        random: np.random.Generator,
    ) -> Block:
        """The block drawn anew, given all others.

        With X the (P, weights) design, which is not formed, u from the prior and e standard
        normal, theta = u + v X' (v X X' + T)^-1 (y - X u - sqrt(T) e) has exactly the posterior of
        theta: a draw of the prior, corrected by its residual.

        Args:
            below: z_l (P, H rest, inputs).
            above: g_{l+1} (rest, outputs).
            labels: (P,).
            temperature: T; infinite: the prior.
            random: source of the draw.
        """
        anew = Block(
            math.sqrt(self.variance) * random.standard_normal(self.weights.shape),
            self.scale,
            self.variance,
        )
        if math.isinf(temperature):
            return anew
        samples = len(labels)
        by_head = self._by_head(below)
        mixed = (above @ above.T) @ by_head
        gram = by_head.reshape(samples, -1) @ mixed.reshape(samples, -1).T
        noisy = self.variance * self.scale**2 * gram + temperature * np.eye(samples)
        noise = math.sqrt(temperature) * random.standard_normal(samples)
        output = anew.forward(below).reshape(samples, -1) @ above.ravel()
        try:
            solved = np.linalg.solve(noisy, labels - output - noise)
        except np.linalg.LinAlgError as error:
            reason = "A block's regression is singular in float64: raise the temperature."
            raise np.linalg.LinAlgError(reason) from error
        correction = above.T @ np.tensordot(solved, by_head, 1)  # X' solved: (H, outputs, inputs)
        anew.weights[:] += self.variance * self.scale * correction
        return anew

    def _by_head(self, below: Floats) -> Floats:
        samples, paths, inputs = below.shape
        heads = len(self.weights)
        return below.reshape(samples, heads, paths // heads, inputs)


class Network:
    """The weights of one state.

    Args:
        blocks: V^0, layers 1 to L, a.
    """

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks

    def output(self, features: Floats) -> Floats:
        """f (Q,) on features (Q, D, F)."""
        values = features
        for block in self.blocks:
            values = block.forward(values)
        return values.reshape(len(features))

    def overlaps(self) -> tuple[Floats, float]:
        """U (D, D) and U_a."""
        above = np.ones((1, 1))
        for block in self.blocks[:0:-1]:
            above = block.backward(above)
        readout = self.blocks[-1]
        return above @ above.T, float(readout.scale**2 * np.square(readout.weights).sum())

    def excess_norms(self) -> Floats:
        """(L + 2,) |V|^2 / sigma^2 less the number of weights, of each block.

        The expectation of each is E[f . (f - y)] / T with the opposite sign, E[f . (y - f)] / T,
        under the posterior: the virial theorem of each block, in which f is linear.
        """
        norms = [np.square(b.weights).sum() / b.variance - b.weights.size for b in self.blocks]
        return np.array(norms)


class GibbsSampler:
    """Draws all weights from their posterior.

    Args:
        posterior: what to sample.
        at: (Q, D, F), features of the inputs to predict at.
    """

    def __init__(self, posterior: Posterior, at: Floats) -> None:
        self._posterior, self._at = posterior, at
        size = posterior.features.shape[-1]
        outputs, heads = (*posterior.widths, 1), (1, *posterior.heads, 1)
        inputs = (size, *posterior.widths)
        self._shapes = list(zip(heads, outputs, inputs, strict=True))
        self._scales = [1.0, *(1 / math.sqrt(width) for width in posterior.widths)]
        self._variances = [1.0, *posterior.variances]
        self.setup_flops = 0

    def chain(self, random: np.random.Generator, warmup: int, thin: int) -> Iterator[Draw]:
        """Draws without end: from a start far off, `warmup` sweeps, then one each `thin`."""
        sweeps = warmup + thin
        for number, network in enumerate(self.networks(random)):
            if number < warmup or (number + 1 - warmup) % thin:
                continue
            order_parameter, readout = network.overlaps()
            mean = network.output(self._at)
            flops = sweeps * self._sweep_flops() + self._forward_flops(len(self._at))
            sweeps = thin
            yield Draw(order_parameter, readout, mean, np.zeros_like(mean), flops)

    def networks(self, random: np.random.Generator) -> Iterator[Network]:
        """The state after each sweep over all blocks, without end."""
        posterior = self._posterior
        blocks = []
        for shape, scale, variance in zip(
            self._shapes, self._scales, self._variances, strict=True
        ):
            weights = OVERDISPERSION * math.sqrt(variance) * random.standard_normal(shape)
            blocks.append(Block(weights, scale, variance))
        while True:
            behind = [np.ones((1, 1))]  # g above each block, from the readout down
            for block in blocks[:0:-1]:
                behind.append(block.backward(behind[-1]))
            values = posterior.features
            for number, above in enumerate(reversed(behind)):
                blocks[number] = blocks[number].drawn(
                    values, above, posterior.labels, posterior.temperature, random
                )
                values = blocks[number].forward(values)
            yield Network(list(blocks))

    def _sweep_flops(self) -> int:
        """To leading order: each block's Gram matrix, solve, two forward products, correction."""
        samples, paths = self._posterior.features.shape[:2]
        total = 3 * self._forward_flops(samples)
        for heads, _, inputs in self._shapes:
            rest = paths // heads
            total += 2 * samples**2 * paths * inputs + 2 * samples * paths * rest * inputs
            total += 2 * samples**3 // 3
            paths = rest
        return total

    def _forward_flops(self, samples: int) -> int:
        paths, total = self._posterior.features.shape[1], 0
        for heads, outputs, inputs in self._shapes:
            total += 2 * samples * paths * outputs * inputs
            paths //= heads
        return total
