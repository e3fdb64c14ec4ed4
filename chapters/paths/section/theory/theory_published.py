"""An independent prototype's numbers, measured with the published configuration, beside ours.

They are no numbers of the paper, which shows its results in figure 2 only. In `prototype.csv`, the
noisy variant has two paths, so its good and denoising paths are all.
"""

from __future__ import annotations

import pandas as pd

from chapters.paths.section.networks import NETWORK
from chapters.paths.section.published import beside, measured, of_others
from chapters.paths.section.settings import Setting
from chapters.paths.section.theory.theory_settings import networks


def beside_prototype(setting: Setting) -> pd.DataFrame:
    """The prototype's numbers beside ours; empty where it has none of this variant.

    Returns:
        One row a number of the prototype: `measure`, `method`, `network_width`, `paths`,
        `num_seeds`, `ours` with `_low` and `_high`, NaN where we have none, and `prototype`.
    """
    every = of_others("prototype.csv")
    ours = [
        measured(networks(setting), measure, NETWORK).assign(measure=measure)
        for measure in every["measure"].unique()
    ]
    mine = every[every["variant"] == setting.variant]
    return beside(mine, ours, ["measure", *NETWORK], "prototype")
