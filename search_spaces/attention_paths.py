"""The interplay of attention paths: theory beside exact samples on hidden Markov chains.

Plain: noise 1; a layer of a good and a random head, then one of a uniform and a random head.
Noisy: noise 5; a good and a uniform head, then a uniform one.
"""

from collections.abc import Mapping

from search_spaces.base import By, Preset, SearchSpace, Values

_WIDTHS = (10, 30, 50, 100, 300, 500, 1_000)
_PATHS_OF_THE_LIMIT = By(
    "variant", {"noisy": ("all", "good")}, otherwise=("all", "good", "good+denoising")
)
_COMMON: Mapping[str, Values | By] = {
    "variant": ("plain", "noisy"),
    "method": ("theory", "gp", "slice"),
    "paths": By("method", {"gp": _PATHS_OF_THE_LIMIT}, otherwise=("all",)),
}

SPACE = SearchSpace(
    name="attention-paths",
    task="hidden-markov",
    kind="posterior",
    about="a theory of attention paths beside exact sampling; trains nothing",
    presets={
        "quick": Preset(
            about="hidden Markov chains, plain and noisy; samples at two widths, 6 seeds",
            axes={
                **_COMMON,
                "width": By(
                    "method", {"theory": _WIDTHS, "gp": (None,), "slice": (10, 100)}, otherwise=()
                ),
                "seed": tuple(range(6)),
            },
        ),
        "paper": Preset(
            about="samples at all published widths, 12 seeds",
            axes={
                **_COMMON,
                "width": By("method", {"gp": (None,)}, otherwise=_WIDTHS),
                "seed": tuple(range(12)),
            },
        ),
    },
)
