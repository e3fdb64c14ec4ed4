"""The axes of cells that solve or sample: how each is typed, and its default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from search_spaces.base import By
from study.cell.axis import Axis, number, whole
from study.posterior.cell import LIMIT, METHODS, SLICE, TASK
from study.posterior.network import PATHS, SIGMA_PERP, VARIANTS

_COUNT = "a whole number, or none if nothing is sampled"


def _count_or_none(text: str) -> int | None:
    return None if text == "none" else whole(text)


def _of_samples(default: int) -> By:
    return By("method", {SLICE: (default,)}, otherwise=(None,))


AXES: Mapping[str, Axis] = {
    "seed": Axis("seeds of sequences, random heads and chains; 0-11 is a range", whole),
    "task": Axis(TASK, str, expects="a name"),
    "variant": Axis(
        "plain or noisy: the published heads and noise, which heads and sigma_perp change",
        str,
        tuple(VARIANTS),
        "a name",
    ),
    "heads": Axis(
        "heads by layer, as good+random/uniform+random; of good, uniform, random",
        str,
        By("variant", {name: (heads,) for name, heads in VARIANTS.items()}, otherwise=()),
        "heads as good+random/uniform",
    ),
    "sigma_perp": Axis(
        "noise of the tokens outside the plane of the two states",
        number,
        By("variant", {name: (noise,) for name, noise in SIGMA_PERP.items()}, otherwise=()),
        "a number",
    ),
    "tokens": Axis("T, tokens a sequence", whole, (30,)),
    "n": Axis("P, training sequences", whole, (100,)),
    "validation_size": Axis("validation sequences", whole, (100,)),
    "test_size": Axis("test sequences", whole, (1_000,)),
    "temperature": Axis("of the posterior", number, (0.01,), "a number"),
    "method": Axis(
        "theory (saddle point), gp (its limit of infinite width) or slice (elliptical slice "
        "sampling of the posterior)",
        str,
        expects="a name",
    ),
    "paths": Axis("which paths the network has: all, good or good+denoising", str, ("all",)),
    "width": Axis(
        "N, of every layer; none: infinite, of gp",
        _count_or_none,
        By("method", {LIMIT: (None,)}, otherwise=()),
        "a whole number, or none for gp",
    ),
    "draws": Axis("recorded draws of a chain (1,000)", _count_or_none, _of_samples(1_000), _COUNT),
    "warmup": Axis(
        "steps of a chain before its first draw (4,000)",
        _count_or_none,
        _of_samples(4_000),
        _COUNT,
    ),
    "thin": Axis("steps of a chain from draw to draw (5)", _count_or_none, _of_samples(5), _COUNT),
    "chains": Axis("chains, each from its own start (4)", _count_or_none, _of_samples(4), _COUNT),
}


def choices(axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
    """The valid names of an axis; None if it takes numbers or a text."""
    return {
        "task": (TASK,),
        "variant": tuple(VARIANTS),
        "method": METHODS,
        "paths": tuple(PATHS),
    }.get(axis)
