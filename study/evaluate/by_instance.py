"""What a model gets right of each instance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def by_instance(
    known: NDArray[np.bool_],
    in_saif: NDArray[np.bool_],
    right: NDArray[np.bool_] | None = None,
) -> dict[str, bytes]:
    """The bits of `study.results.INSTANCES`.

    Images are a sample as seeds are: instances that share one succeed and fail together, so a
    verdict needs to know which do.

    Args:
        known: (n,) whether the foreground of each instance is known.
        in_saif: (n,) whether it is in SAIF; not read where the foreground is unknown.
        right: (n,) whether its class is predicted; None: it has no class, so no such column.
    """
    marked = {"known": known, "saif": known & in_saif}
    if right is not None:
        marked["right"] = right
    return {f"instance_{name}": np.packbits(each).tobytes() for name, each in marked.items()}
