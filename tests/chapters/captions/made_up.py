"""What captions bring to the tests that are for all."""

from __future__ import annotations

from functools import partial

from chapters.captions.data.vocabulary import FIRST_WORD
from study.results import Results
from study.tasks.task import Facts
from tests.chapters.captions.caption_results import make_caption_cell, write_captions
from tests.chapters.captions.coco_files import OPTIONS, coco, write_coco
from tests.made_up.chapters import Brought, Reported
from tests.made_up.layout import Layout
from tests.made_up.tiny_studies import SIZES

_SIZES = {"train": 414_113, "validation": 101_327, "test": 101_327}


def three_paradigms(results: Results) -> None:
    """The later the better."""
    for paradigm, bleu in (("soft", 0.1), ("hard-sampled", 0.12), ("hybrid-sampled", 0.15)):
        for seed in range(6):
            cell = make_caption_cell(paradigm, seed=seed)
            write_captions(results, cell, bleu + seed / 300, bleu + seed / 200)


_coco = partial(write_coco, content=coco(12, 12))

BROUGHT = Brought(
    layouts={
        "mscoco, 2017": Layout("mscoco", _coco, OPTIONS, prepares=True),
        "mscoco, 2014": Layout("mscoco", partial(_coco, year=2014), OPTIONS, prepares=True),
    },
    published={
        "mscoco": lambda _: Facts("unknown", (8_733 + FIRST_WORD,), _SIZES, {12: _SIZES["train"]})
    },
    studies={
        "captions": "mscoco --set m=16 encoder=small encoder_lr=0.001 min_count=1 embedding=8 "
        "attention=8 hidden=8 batch_size=6 epochs=3 lr=0.01 seed=1 confirm=none switch_point=0.5 "
        f"{SIZES} paradigm=soft,hard-sampled,hybrid-running --data-dir {{}}",
    },
    results={"captions": Reported(three_paradigms)},
)
