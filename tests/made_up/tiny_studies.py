"""Studies of every kind that take seconds, as the arguments of `python -m study.run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.chapters.captions.coco_files import coco, write_coco
from tests.chapters.texts.post_files import write_posts
from tests.chapters.texts.text_files import write_texts
from tests.conftest import REAL_DATA

_SIZES = "evaluations=2 train_metrics_size=20 validation_size=20 test_size=20"
_MOSAICS = f"n=60 m=3 batch_size=20 epochs=8 {_SIZES}"
_DIGITS = f"digits --set {_MOSAICS} confirm=none seed=0"
TINY = f"digits --set {_MOSAICS} paradigm=soft lr=0.2 seed=0 confirm=none"
_TEXTS = "m=12 batch_size=10 lr=0.1 seed=0 confirm=none min_count=1 switch_point=0.5"
_ONE_SHOT = (
    "one-shot --set task=digits-one-shot n=200 epochs=2 d_model=8 qk=4 heads=2 batch_size=50 "
    f"{_SIZES} seed=0 examples=20"
)
_SAMPLES = "draws=20 warmup=20 thin=1 chains=2"

STUDIES: Mapping[str, str] = {
    "digits in two stages": f"digits --set {_MOSAICS} paradigm=soft,hard,lvml,hybrid lr=0.05,0.2 "
    "switch_point=0.5 seed=0 confirm=100,101",
    "digits, other paradigms": f"{_DIGITS} paradigm=hard-sampled,lvml-sampled,lvml-logits lr=0.2",
    "digits, other networks": f"{_DIGITS} paradigm=soft,hard width=0.5 depth=1 "
    "normalisation=layer activation=gelu optimiser=adam lr=0.01",
    "digits in packs": f"digits --set {_MOSAICS} paradigm=soft,lvml,hybrid lr=0.2 "
    "switch_point=0.3,0.6 seed=0-2 confirm=none --pack seed",
    "fixed focus": f"fixed-focus --set {_MOSAICS} task=digits architecture=perceptron seed=0 "
    "alpha=0.2,1",
    "linear orthogonal": f"linear-orthogonal --set {_MOSAICS} num_classes=3 seed=0",
    "attention paths": "attention-paths --set seed=0 variant=noisy width@theory=10,1000 "
    f"width@slice=10 n=20 {_SAMPLES}",
    "one-shot": f"{_ONE_SHOT} network_width=10 "
    "method=theory,gp,weight-norm,entropy,sensitivity,random,greedy,bound",
    "series": f"series --set {_MOSAICS} paradigm=soft,hard seed=0 confirm=none lr=0.02",
    "texts": f"texts --set {_TEXTS} epochs=4 {_SIZES} --data-dir {{texts}}",
    "hatexplain": f"hatexplain --set {_TEXTS} epochs=4 {_SIZES} --data-dir {{posts}}",
    "captions": "mscoco --set m=16 encoder=small encoder_lr=0.001 min_count=1 embedding=8 "
    f"attention=8 hidden=8 batch_size=6 epochs=3 lr=0.01 seed=0 confirm=none switch_point=0.5 "
    f"{_SIZES} paradigm=soft,hard-sampled,hybrid-running --data-dir {{captions}}",
}
"""Name -> command; {} is a folder of made-up data."""

OF_REAL_DATA: Mapping[str, str] = {
    "hatexplain": f"hatexplain --set {_TEXTS} epochs=1 n=200 {_SIZES} "
    f"--data-dir {REAL_DATA / 'hatexplain'}",
    "cifar10": f"cifar10 --set {_MOSAICS} paradigm=soft,hard lr=0.01 seed=0 confirm=none "
    f"--data-dir {REAL_DATA / 'cifar10-lossless'}",
}

DATA: Mapping[str, Callable[[Path], Path]] = {
    "texts": write_texts,
    "posts": lambda folder: write_posts(folder, train_rationales=True),
    "captions": lambda folder: write_coco(folder, coco(12, 12)),
}
"""Name in commands -> what writes made-up data into a folder."""
