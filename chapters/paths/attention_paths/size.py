"""What a solution takes, and which form of the data's part suits it; see `data_term`."""

from __future__ import annotations

from typing import NamedTuple

KERNEL_BYTES = 2**30
"""Up to here kernels may be kept."""

KERNEL_SHARE = 8
"""Kernels of so many paths as F / 8 (were P infinite) take as long as factors do: measured on one
core, F from 8 to 231, D from 4 to 256, when an evaluation by factors took P^2 D F more
multiply-adds; since then only at P = 600, D = 16, F = 75, where factors are faster."""

CURVATURE_SHARE = 20
"""dG / dU is formed if that takes no longer than so many evaluations: about as many as a step of
Newton's method needs without it."""


class Size(NamedTuple):
    """The size of a problem; a multiply-add is 2 FLOPs.

    Attributes:
        samples: P.
        paths: D.
        length: F, that of features once they are `shortened`.
    """

    samples: int
    paths: int
    length: int

    @property
    def keeps_kernels(self) -> bool:
        """Whether the kernels are small, and the faster form."""
        samples, paths, length = self
        faster = KERNEL_SHARE * samples * paths <= length * (samples + paths)
        return faster and self.kernel_bytes <= KERNEL_BYTES

    @property
    def kernel_bytes(self) -> int:
        """What the kernels of all pairs take."""
        return 2 * self.samples * (self.samples + 1) * self.paths * (self.paths + 1)

    @property
    def kernel_flops(self) -> int:
        """Of a sum over the kernels of all pairs, or of one feature's part of them all."""
        return self.samples**2 * self.paths * (self.paths + 1)

    @property
    def forms_curvature(self) -> bool:
        """Whether dG / dU takes less time than what it saves."""
        return self.curvature_flops <= CURVATURE_SHARE * self.evaluation_flops

    @property
    def curvature_flops(self) -> int:
        """Of dG / dU: L^-1 Phi, its products B and theirs."""
        samples, paths, length = self
        products = samples * paths * length + paths**3 * length
        return paths * length * (2 * samples**2 + products)

    @property
    def evaluation_flops(self) -> int:
        """Of the value and its derivative, to leading order."""
        samples, paths, length = self
        products = 2 * samples * paths * length * (samples + 2 * paths)
        if self.keeps_kernels:
            products = self.kernel_flops
        return products + 2 * samples**3 + 4 * samples**2

    def search_flops(self, steps: int) -> int:
        """About what a search takes.

        Args:
            steps: of Newton's method: an evaluation each, and dG / dU or what takes its place.
        """
        setup = self.kernel_flops * self.length if self.keeps_kernels else 0
        evaluation = self.evaluation_flops
        return setup + steps * (
            evaluation + min(self.curvature_flops, CURVATURE_SHARE * evaluation)
        )

    @property
    def memory(self) -> int:
        """Bytes that `solve` takes, besides its arguments."""
        samples, paths, length = self
        kept = 2 * 8 * samples * paths * length  # Phi, and Z or L^-1 Phi
        if self.keeps_kernels:
            kept += self.kernel_bytes
        if self.forms_curvature:
            kept += 2 * 8 * (paths * length) ** 2 + 3 * 8 * paths**4
        searched = 25 * 8 * paths**2  # the factors and their derivatives
        return kept + 6 * 8 * samples**2 + searched
