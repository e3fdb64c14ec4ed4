"""The axes of cells that train: how each is typed, and its default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from search_spaces.base import By, Values
from study import models, tasks
from study.cell import (
    ACTIVATIONS,
    HYBRIDS,
    LABEL_RULES,
    NORMALISATIONS,
    OPTIMISERS,
    PARADIGMS,
    PRECISIONS,
    RATIONALE_RULES,
    SPLIT_SCHEMES,
)
from study.cell.axis import Axis, number, whole
from study.tasks.captions.encoders import ENCODERS

SAME = "same"
"""Value of an axis that goes by another one unless it is given: `hard_lr` by `lr`."""


NONE = "none"
"""Value of an axis that means nothing for a cell."""


ALL = "all"
"""Value of a size: the whole split."""


RELU = "relu"
"""Value of `activation`: that of the named architectures."""


OWN = "own"
"""Value of `inference`: the formula of the training paradigm."""


BUDGET_UNITS = ("flops", "mosaics")


OF_HYBRIDS = ("paradigm", tuple(HYBRIDS))
"""The axis, and the values without which an axis of hybrids means nothing."""


def _number_or_same(text: str) -> float | str:
    return SAME if text == SAME else number(text)


def _number_none_or_same(text: str) -> float | str | None:
    return SAME if text == SAME else _number_or_none(text)


def _number_or_none(text: str) -> float | None:
    return None if text == NONE else number(text)


def _count_or_none(text: str) -> int | None:
    return None if text == NONE else whole(text)


def _count_or_all(text: str) -> int | str:
    return ALL if text == ALL else whole(text)


def _name_or_none(text: str) -> str | None:
    return None if text in (NONE, OWN) else text


def _classes_or_none(text: str) -> str | None:
    return _name_or_none(re.sub(r"\s*\+\s*", "+", text))


def _of_captions(value: object) -> By:
    """Default of an axis that only tasks with captions have."""
    return By("task", dict.fromkeys(tasks.taking("encoder"), (value,)), otherwise=(None,))


class _Defaults(Mapping[str, Values]):
    """Task -> default of an option, of all tasks that take it, those registered later, too."""

    def __init__(self, option: str) -> None:
        self._option = option

    def __getitem__(self, task: str) -> Values:
        return (tasks.taking(self._option)[task].options[self._option],)

    def __iter__(self) -> Iterator[str]:
        return iter(tasks.taking(self._option))

    def __len__(self) -> int:
        return len(tasks.taking(self._option))


def _of_some_tasks(option: str) -> By:
    """Defaults of an axis that only tasks with this option have: each task its own."""
    return By("task", _Defaults(option), otherwise=(None,))


def _of_transformers(about: str) -> Axis:
    """A size of the network for one-shot images; a study of them declares it."""
    names = [name for name in tasks.TASKS if tasks.modality(name) is tasks.ONE_SHOT]
    return Axis(
        f"of one-shot images, {about}; none: no such images",
        _count_or_none,
        By("task", dict.fromkeys(names, ()), otherwise=(None,)),
        "a whole number or none",
    )


AXES: Mapping[str, Axis] = {
    "seed": Axis("seeds on which options are tried; 0-11 is a range", whole),
    "confirm": Axis(
        "fresh seeds, on which alone the chosen options are judged, e.g. 100-111; none: options "
        "are chosen and judged on the same seeds",
        _count_or_none,
        (None,),
        "a whole number or none",
        whole=True,
    ),
    "task": Axis("data set", str, expects="a name"),
    "label_rule": Axis(
        "label of a post that several people labelled: majority, or first of them; none: no text",
        _name_or_none,
        _of_some_tasks("label_rule"),
        "a name",
    ),
    "rationale_rule": Axis(
        "its rationale: words that majority, union or first marked; none: no text",
        _name_or_none,
        _of_some_tasks("rationale_rule"),
        "a name",
    ),
    "min_count": Axis(
        "the vocabulary: words that occur so often in training posts or captions; none: no text",
        _count_or_none,
        _of_some_tasks("min_count"),
        "a whole number or none",
    ),
    "pixels": Axis(
        "of one-shot images and your own, height and width to which they are resized; none: no "
        "such images",
        _count_or_none,
        _of_some_tasks("pixels"),
        "a whole number or none",
    ),
    "foreground": Axis(
        "of mosaics, the classes that are labels, e.g. 1+2+3; none: those of the paper, of your "
        "own images a list of all",
        _classes_or_none,
        _of_some_tasks("foreground"),
        "names joined by +",
    ),
    "background": Axis(
        "of mosaics, the classes of the other segments, or rest; none: all others",
        _classes_or_none,
        _of_some_tasks("background"),
        "names joined by +",
    ),
    "window": Axis(
        "of series, steps of a segment; none: no series",
        _count_or_none,
        _of_some_tasks("window"),
        "a whole number or none",
    ),
    "m": Axis(
        "segments a mosaic; of posts the most words, longer ones are cut; of captions the regions "
        "of an image, a square number",
        whole,
    ),
    "num_classes": Axis(
        "foreground classes of linear-orthogonal, which is made up; none: the task's own",
        _count_or_none,
        (None,),
        "a whole number or none",
    ),
    "foregrounds": Axis("segments of a mosaic that are of the label's class", whole, (1,)),
    "distractors": Axis(
        "segments of a mosaic that are of other foreground classes, each of any", whole, (0,)
    ),
    "n": Axis(
        "training mosaics, posts or captions; all: of a data set of posts or captions",
        _count_or_all,
        expects="a whole number or all",
    ),
    "paradigm": Axis(", ".join((*PARADIGMS, *HYBRIDS)), str, expects="a name"),
    "lr": Axis("learning rate (of a hybrid: its soft part)", number, expects="a number"),
    "hard_lr": Axis(
        "learning rate of a hybrid's hard part, or same",
        _number_or_same,
        (SAME,),
        "a number or same",
        only=OF_HYBRIDS,
    ),
    "drop_at": Axis(
        "share of the steps (of a hybrid: of its soft part) after which lr falls to a tenth; none",
        _number_or_none,
        (None,),
        "a number or none",
    ),
    "hard_drop_at": Axis(
        "the same of a hybrid's hard part, or same",
        _number_none_or_same,
        (SAME,),
        "a number, none or same",
        only=OF_HYBRIDS,
    ),
    "switch_point": Axis(
        "budget fraction at which a hybrid turns hard",
        number,
        (0.5,),
        "a number",
        only=OF_HYBRIDS,
    ),
    "alpha": Axis(
        "attention held on the foreground while only the classifier trains; none: both train",
        _number_or_none,
        (None,),
        "a number or none",
    ),
    "epochs": Axis(
        "the budget: that many epochs of soft, see budget_unit", number, expects="a number"
    ),
    "budget_unit": Axis(
        "what is equal: flops (of those epochs of soft), or mosaics; where alpha is held, mosaics",
        str,
        By("alpha", {None: ("flops",)}, otherwise=("mosaics",)),
        "a name",
    ),
    "architecture": Axis("network of focus and classifier", str, expects="a name"),
    "width": Axis("factor on the network's hidden widths", number, (1.0,), "a number"),
    "focus_width": Axis(
        "the same of the focus alone; same: width", _number_or_same, (SAME,), "a number or same"
    ),
    "classifier_width": Axis(
        "the same of the classifier alone; same: width",
        _number_or_same,
        (SAME,),
        "a number or same",
    ),
    "depth": Axis(
        "hidden linear layers more than the architecture has; below 0: fewer", whole, (0,)
    ),
    "normalisation": Axis(
        "behind every layer but the last: batch, layer, group or none",
        _name_or_none,
        (None,),
        "a name",
    ),
    "activation": Axis("relu, tanh or gelu", str, (RELU,), "a name"),
    "batch_size": Axis("mosaics, posts or captions a step", whole, (256,)),
    "precision": Axis("float32, tf32 (on a GPU) or bfloat16", str, ("float32",), "a name"),
    "optimiser": Axis(
        "sgd or adam",
        str,
        By("task", dict.fromkeys(tasks.taking("encoder"), ("adam",)), otherwise=("sgd",)),
        "a name",
    ),
    "weight_decay": Axis(
        "of Adam: share of a weight that is added to its gradient; none",
        _number_or_none,
        (None,),
        "a number or none",
    ),
    "momentum": Axis("of SGD; of Adam the decay beta_1", number, (0.9,), "a number"),
    "split": Axis("disjoint, or shared-base as in the scripts", str, ("disjoint",), "a name"),
    "inference": Axis(
        "paradigm whose formula predicts at evaluations; own: that of the phase",
        _name_or_none,
        (None,),
        "a name",
    ),
    "encoder": Axis(
        "network that makes regions of images: vgg19, lite0 or small; none: no captions",
        _name_or_none,
        _of_some_tasks("encoder"),
        "a name",
    ),
    "encoder_lr": Axis(
        "its learning rate; none: it is frozen, and its features are computed once",
        _number_or_none,
        (None,),
        "a number or none",
    ),
    "teacher_forcing": Axis(
        "share of words before which a decoder reads the true word (of a hybrid: in its soft "
        "part); all once lr has dropped",
        _number_or_none,
        _of_captions(1.0),
        "a number or none",
    ),
    "hard_teacher_forcing": Axis(
        "the same in a hybrid's hard part, or same",
        _number_none_or_same,
        (SAME,),
        "a number, none or same",
        only=OF_HYBRIDS,
    ),
    "embedding": Axis(
        "of captions, size of a word's vector; none: no captions",
        _count_or_none,
        _of_captions(512),
        "a whole number or none",
    ),
    "attention": Axis(
        "of captions, size in which regions and state are compared; none: no captions",
        _count_or_none,
        _of_captions(512),
        "a whole number or none",
    ),
    "hidden": Axis(
        "of captions, size of the LSTM; none: no captions",
        _count_or_none,
        _of_captions(512),
        "a whole number or none",
    ),
    "dropout": Axis(
        "of captions, share of the LSTM's state that the output does not see; none: no captions",
        _number_or_none,
        _of_captions(0.5),
        "a number or none",
    ),
    "longest": Axis(
        "of captions, most words that are written; none: no captions",
        _count_or_none,
        _of_captions(15),
        "a whole number or none",
    ),
    "beam": Axis(
        "of captions, how many are followed while one is written, 1: greedy; none: no captions",
        _count_or_none,
        _of_captions(1),
        "a whole number or none",
    ),
    "d_model": _of_transformers("N, neurons of each layer"),
    "layers": _of_transformers("L, layers"),
    "heads": _of_transformers("H, heads of each layer"),
    "qk": _of_transformers("G, size of queries and keys"),
    "patch": _of_transformers("height and width of the patches that are tokens"),
    "evaluations": Axis("evaluations after the first, evenly spaced in the budget", whole, (10,)),
    "train_metrics_size": Axis(
        "training inputs that train metrics are taken on",
        _count_or_all,
        (2_000,),
        "a whole number or all",
    ),
    "validation_size": Axis(
        "validation inputs, or all", _count_or_all, (2_000,), "a whole number or all"
    ),
    "test_size": Axis("test inputs, or all", _count_or_all, (10_000,), "a whole number or all"),
}


def choices(axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
    """The valid names of an axis; None if it takes numbers.

    Args:
        axis: its name.
        of_tasks: the tasks of the study.
    """
    return {
        "task": list(tasks.TASKS),
        "paradigm": (*PARADIGMS, *HYBRIDS),
        "optimiser": OPTIMISERS,
        "encoder": (*ENCODERS, NONE),
        "architecture": list(dict.fromkeys(n for task in of_tasks for n in models.names(task))),
        "budget_unit": BUDGET_UNITS,
        "split": SPLIT_SCHEMES,
        "precision": PRECISIONS,
        "normalisation": (*NORMALISATIONS, NONE),
        "activation": (RELU, *ACTIVATIONS),
        "label_rule": (*LABEL_RULES, NONE),
        "rationale_rule": (*RATIONALE_RULES, NONE),
        "inference": (*PARADIGMS, OWN),
    }.get(axis)
