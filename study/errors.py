"""Errors for the person who typed the command, and names as people write them."""

from __future__ import annotations

import difflib
import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence


class RequestError(Exception):
    """A request that cannot be carried out. Its message says what was wrong and what to do.

    The command line prints the message on one line and exits with status 2.
    """


class ResultsError(RequestError):
    """A results directory cannot be read or written; the message says which file and why."""


SYNONYMS = {
    # axes
    "lr": "learning_rate rate step_size",
    "batch_size": "batch bs minibatch",
    "weight_decay": "wd l2 decay",
    "m": "segments patches length seq_len",
    "n": "train_size samples dataset_size",
    "epochs": "budget flops steps max_steps iterations",
    "foreground": "fg foreground_classes",
    "background": "bg background_classes",
    "pixels": "image_size resolution",
    "seed": "random_seed random_state",
    "task": "dataset data",
    "paradigm": "method attention_type",
    "architecture": "model network net arch backbone",
    "optimiser": "opt",
    "normalisation": "norm batch_norm",
    "precision": "dtype amp",
    "evaluations": "eval_every",
    "validation_size": "val_size",
    "switch_point": "switch",
    # paradigms, and what else is chosen by name
    "soft": "softmax deterministic",
    "lvml": "latent latent_variable marginal marginal_likelihood",
    "hard-sampled": "reinforce stochastic policy_gradient",
    "accuracy": "acc",
    "validation": "val valid dev",
    "bfloat16": "bf16 fp16 float16 half",
    "float32": "fp32",
    "adam": "adamw",
    "quick": "default small fast smoke",
    "paper": "full published",
    "digits": "mnist",
}
"""Name -> what people call it elsewhere, with _ for what may separate its words; chapters and
packages add to it."""

_FEW = 20
"""So many names are listed even where a near one was found."""

_ALIKE = 0.8
"""Names so like each other, as `difflib` measures it, are taken for one with a slip."""


def as_seen(name: str) -> str:
    """A name with composed characters, one blank between words, none around it, and no BOM.

    Two names that look alike are one: macOS and some archives write letters and their accents
    apart, tables end cells with blanks.
    """
    return " ".join(unicodedata.normalize("NFC", name.replace("\ufeff", "")).split())


def unknown(kind: str, got: object, valid: Iterable[object]) -> RequestError:
    """A `RequestError` for a name that is not one of `valid`, with the nearest valid one.

    A hint that is hardly wrong stands for a long list.
    """
    names = [str(name) for name in valid]
    near = nearest(str(got), names)
    hint = f" Did you mean {near!r}?" if near else ""
    listed = (
        ""
        if len(names) > _FEW and nearest(str(got), names, _ALIKE)
        else f" Valid: {', '.join(names)}."
    )
    return RequestError(f"unknown {kind} {str(got)!r}.{hint}{listed}")


def nearest(got: str, names: Sequence[str], least: float = 0.6) -> str | None:
    """The name that is most like what was typed, or of which that is a synonym.

    Args:
        got: what was typed.
        names: the valid ones.
        least: how like it is to a name at least, as `difflib` measures it.
    """
    own = {_plain(name): name for name in names}
    known = {_plain(word): name for name in names for word in SYNONYMS.get(name, "").split()}
    match = functools.partial(difflib.get_close_matches, _plain(got), n=1)
    near = match(known | own, cutoff=_ALIKE) or match(own, cutoff=least)
    return (known | own)[near[0]] if near else None


def _plain(name: str) -> str:
    """Without what people write in different ways: ``CIFAR-10`` as ``cifar10``."""
    return re.sub(r"^n(um)?[-_]|[-_\s]|s$", "", name.lower())
