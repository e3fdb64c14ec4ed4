"""Search spaces: one module a study declares its axes and presets. Nothing here runs."""

from search_spaces import cifar10, cifar100, digits, images
from search_spaces.base import SearchSpace as SearchSpace
from search_spaces.open_questions import ablation, default_class, foregrounds, long, scaling
from study.door import Registry

_MODULES = (
    digits, cifar10, cifar100, images, default_class, scaling, ablation, foregrounds, long,
)  # fmt: skip

STUDIES: Registry[SearchSpace] = Registry({each.SPACE.name: each.SPACE for each in _MODULES})
"""Every declared study by name; chapters and files of parts register more."""
