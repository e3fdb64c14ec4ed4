"""What series bring to the tests that are for all."""

from __future__ import annotations

from functools import partial

from study.cell import Options
from study.tasks.task import Facts
from tests.chapters.series.ts_writers import write_series
from tests.made_up.chapters import Brought
from tests.made_up.layout import Layout
from tests.made_up.tiny_studies import MOSAICS

# Series are standardised.
_series = partial(
    Layout,
    "series",
    options=Options(foreground="1+2+3", background="rest", window=7),
    bounded=False,
)

BROUGHT = Brought(
    layouts={
        "series": _series(write_series),
        "series, of one length": _series(partial(write_series, lengths=(15,))),
    },
    published={"series": lambda options: Facts("unknown", (12, options["window"], 1))},
    studies={
        "series": f"series --set {MOSAICS} paradigm=soft,hard seed=0 confirm=none lr=0.02",
    },
)
