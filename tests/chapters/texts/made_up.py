"""What texts bring to the tests that are for all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from chapters.texts import hatexplain
from study.cell import Options
from study.results import Results
from study.tasks.task import Facts
from tests.chapters.texts import text_files as texts
from tests.chapters.texts.post_files import OPTIONS, write_posts
from tests.chapters.texts.text_results import make_text_cell, write_text
from tests.made_up.chapters import Brought, Reported
from tests.made_up.comparisons import write_comparisons
from tests.made_up.layout import Layout
from tests.made_up.tiny_studies import SIZES

_SIZES = {"train": 15_383, "validation": 1_922, "test": 1_924}
_PUBLISHED = Facts("unknown", (24_993,), _SIZES, {23: _SIZES["train"]})
_TEXTS = Options(min_count=1)
_SET = "m=12 batch_size=10 lr=0.1 seed=0 confirm=none min_count=1 switch_point=0.5"


def in_one_file(folder: Path) -> None:
    splits = enumerate(texts.SIZES.items())
    rows = (
        row | {"split": name} for seed, (name, n) in splits for row in texts.rows(n, seed=seed)
    )
    texts.write_jsonl(folder / "all.jsonl", rows)


def publish_posts(folder: Path, web: Path, url: str, patch: pytest.MonkeyPatch) -> None:
    shutil.copytree(folder, web, dirs_exist_ok=True)
    patch.setattr(hatexplain, "BASE_URL", url)


def posts_beside_mosaics(results: Results) -> None:
    write_comparisons(results)
    write_text(results, make_text_cell("soft"), 1 / 3)


def one_string(folder: Path) -> Path:
    """Texts of which the third is no list of words."""
    rows = texts.rows(20)
    rows[2]["tokens"] = "one string"
    return texts.write_jsonl(folder / "train.jsonl", rows).parent


BROUGHT = Brought(
    layouts={
        "hatexplain": Layout("hatexplain", partial(write_posts, train_rationales=True), OPTIONS),
        "hatexplain, without rationales in train": Layout("hatexplain", write_posts, OPTIONS),
        "texts, a file a split": Layout("texts", texts.write_texts, _TEXTS),
        "texts, in one file": Layout("texts", in_one_file, _TEXTS),
    },
    published={
        "hatexplain": lambda _: _PUBLISHED,
        "texts": lambda _: replace(_PUBLISHED, num_classes=2),
    },
    downloads={"hatexplain": publish_posts},
    studies={
        "texts": f"texts --set {_SET} epochs=4 {SIZES} --data-dir {{}}",
        "hatexplain": f"hatexplain --set {_SET} epochs=4 {SIZES} --data-dir {{}}",
    },
    studies_of_real_data={
        "hatexplain": f"hatexplain --set {_SET} epochs=1 n=200 {SIZES} --data-dir {{}}/hatexplain",
    },
    results={"comparisons and posts": Reported(posts_beside_mosaics, "analysis.page.comparisons")},
    mistakes={"study.run texts --data-dir {texts}": "train.jsonl,3"},
    places={"texts": one_string},
)
