"""The studies of attention paths.

The theory beside exact samples on hidden Markov chains. Plain: noise 1; a layer of a good and a
random head, then one of a uniform and a random head. Noisy: noise 5; a good and a uniform head,
then a uniform one.

One-shot images: theory on the heads of trained networks, and networks with heads removed.
"""

from collections.abc import Mapping

from chapters.paths.heads import heads_cell
from chapters.paths.posterior import posterior_cell
from search_spaces.base import By, Preset, SearchSpace, Values

_WIDTHS = (10, 30, 50, 100, 300, 500, 1_000)
_PATHS_OF_THE_LIMIT = By(
    "variant", {"noisy": ("all", "good")}, otherwise=("all", "good", "good+denoising")
)
_CHAINS: Mapping[str, Values | By] = {
    "variant": ("plain", "noisy"),
    "method": posterior_cell.METHODS,
    "paths": By("method", {"gp": _PATHS_OF_THE_LIMIT}, otherwise=("all",)),
}

ATTENTION_PATHS = SearchSpace(
    name="attention-paths",
    task="hidden-markov",
    kind="posterior",
    about="a theory of attention paths beside exact sampling; trains nothing",
    presets={
        "quick": Preset(
            about="hidden Markov chains, plain and noisy; samples at two widths, 6 seeds",
            axes={
                **_CHAINS,
                "width": By(
                    "method", {"theory": _WIDTHS, "gp": (None,), "slice": (10, 100)}, otherwise=()
                ),
                "seed": tuple(range(6)),
            },
        ),
        "paper": Preset(
            about="samples at all published widths, 12 seeds",
            axes={
                **_CHAINS,
                "width": By("method", {"gp": (None,)}, otherwise=_WIDTHS),
                "seed": tuple(range(12)),
            },
        ),
    },
)


def _by_size(digits: int, omniglot: int) -> By:
    """A value for the small bundled images, and one for the others."""
    return By("task", {"digits-one-shot": (digits,)}, otherwise=(omniglot,))


_NETWORKS: Mapping[str, Values | By] = {
    "m": (3,),
    "paradigm": ("soft",),
    "architecture": ("attention-paths",),
    "optimiser": ("adam",),
    "weight_decay": (5e-5,),
    "layers": (2,),
    "heads": (4,),
    "batch_size": (128,),
    "train_metrics_size": (1_000,),
    "validation_size": (1_000,),
    "test_size": (1_000,),
    "examples": _by_size(200, 600),
    "seed": tuple(range(12)),
    "method": heads_cell.METHODS,
}

ONE_SHOT = SearchSpace(
    name="one-shot",
    task="omniglot",
    kind="heads",
    about="theory on trained heads, and what is lost without them: one-shot images",
    presets={
        "quick": Preset(
            about="smaller networks than the paper's on small images, 12 seeds: minutes",
            axes={
                **_NETWORKS,
                "pixels": _by_size(8, 16),
                "patch": _by_size(4, 8),
                "d_model": _by_size(64, 128),
                "qk": (32,),
                "lr": (0.01,),
                "n": _by_size(10_000, 20_000),
                "epochs": _by_size(4, 10),
                "network_width": (10, 100, 1_000),
            },
        ),
        "paper": Preset(
            about="the published network and images, 12 seeds",
            axes={
                **_NETWORKS,
                "pixels": (32,),
                "patch": (8,),
                "d_model": (512,),
                "qk": (128,),
                "lr": (3e-4,),
                "n": (100_000,),
                "epochs": (10,),
                "network_width": (10, 30, 100, 300, 1_000, 3_000, 10_000),
            },
        ),
    },
)
