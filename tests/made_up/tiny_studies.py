"""Studies that take seconds, as the arguments of `python -m study.run`."""

from __future__ import annotations

from collections.abc import Mapping

SIZES = "evaluations=2 train_metrics_size=20 validation_size=20 test_size=20"
MOSAICS = f"n=60 m=3 batch_size=20 epochs=8 {SIZES}"
_DIGITS = f"digits --set {MOSAICS} confirm=none seed=0"
TINY = f"digits --set {MOSAICS} paradigm=soft lr=0.2 seed=0 confirm=none"

STUDIES: Mapping[str, str] = {
    "digits in two stages": f"digits --set {MOSAICS} paradigm=soft,hard,lvml,hybrid lr=0.05,0.2 "
    "switch_point=0.5 seed=0 confirm=100,101",
    "digits, other paradigms": f"{_DIGITS} paradigm=hard-sampled,lvml-sampled,lvml-logits lr=0.2",
    "digits, other networks": f"{_DIGITS} paradigm=soft,hard width=0.5 depth=1 "
    "normalisation=layer activation=gelu optimiser=adam lr=0.01",
    "digits in packs": f"digits --set {MOSAICS} paradigm=soft,lvml,hybrid lr=0.2 "
    "switch_point=0.3,0.6 seed=0-2 confirm=none --pack seed",
}
"""Name -> command."""

OF_REAL_DATA: Mapping[str, str] = {
    "cifar10": f"cifar10 --set {MOSAICS} paradigm=soft,hard lr=0.01 seed=0 confirm=none "
    "--data-dir {}/cifar10-lossless",
}
"""The same; {} stands for the folder of all data at hand."""
