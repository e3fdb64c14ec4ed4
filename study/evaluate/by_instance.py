"""What a model gets right of each instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


def by_instance(
    known: Flags, in_saif: Flags, right: Flags | None = None, further: Mapping[str, Flags] = {}
) -> dict[str, Any]:
    """The bits of `study.results.INSTANCES`.

    Images are a sample as seeds are: instances that share one succeed and fail together, so a
    verdict needs to know which do.

    Args:
        known: (n,) whether the foreground of each instance is known.
        in_saif: (n,) whether it is in SAIF; not read where the foreground is unknown.
        right: (n,) whether its class is predicted; None: it has no class, so no such column.
        further: name -> (n,), what else is true or false of each.
    """
    marked = {"known": known, "saif": known & in_saif}
    if right is not None:
        marked["right"] = right
    bits = {f"instance_{name}": _packed(each) for name, each in marked.items()}
    if not further:
        return bits
    return bits | {"instance_bits": [(name, _packed(each)) for name, each in further.items()]}


def _packed(flags: Flags) -> bytes:
    return np.packbits(flags).tobytes()
