"""Search spaces: one module a study declares its axes and presets. Nothing here runs."""

from search_spaces import (
    attention_paths,
    cifar10,
    cifar100,
    digits,
    fixed_focus,
    hatexplain,
    images,
    linear_orthogonal,
    mscoco,
    one_shot,
    texts,
)
from search_spaces.base import SearchSpace
from search_spaces.open_questions import ablation, foregrounds, long, scaling, series

_MODULES = (
    digits,
    cifar10,
    cifar100,
    images,
    fixed_focus,
    linear_orthogonal,
    hatexplain,
    texts,
    mscoco,
    attention_paths,
    one_shot,
    scaling,
    ablation,
    foregrounds,
    series,
    long,
)

REGISTERED: dict[str, SearchSpace] = {}
"""Studies from outside the project by name, see `study.parts`."""


def all_studies() -> dict[str, SearchSpace]:
    """Every declared study by name."""
    return {**{module.SPACE.name: module.SPACE for module in _MODULES}, **REGISTERED}
