"""The contract of a task: how it is declared, and the splits and batches that it gives.

A `Modality` describes a sort of inputs. A `Declaration` is a task before its options and data are
known, a `TaskInfo` a task with its options, a `Task` a task with its data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from study.cell import Cell, Options
from study.cell.declared import Axis, Whole, axes_of
from study.cell.settings import SETTINGS
from study.tasks.sources.data_set import DataSet
from study.tasks.sources.places import Places

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

SPLITS = ("train", "validation", "test")

Place = str
"""Module and function, as ``module:name``, imported when it is called; empty: there is none."""


class Outputs(NamedTuple):
    """What a model makes of all n inputs of a split, of at most m segments, in any order.

    Attributes:
        attention: (n, m) float32, rows sum to 1; 0 in padding.
        probabilities: (n, C) float32, of the classes.
        labels: (n,) int64, the true classes.
        foreground: (n, m) bool, True at the true foreground, which may be unknown.
        mask: (n, m) bool, True = real segment.
    """

    attention: NDArray[np.float32]
    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]
    foreground: NDArray[np.bool_]
    mask: NDArray[np.bool_]


class Asked(NamedTuple):
    """An input that a person asks a network about, made of what they gave.

    Attributes:
        name: of the input: its file, or its number among those given.
        segments: (m, ...), m >= 1, as in a `Batch`; all are real.
        parts: (m,) what each segment is: its file, its word, or its number in the input.
        shown: gives what shows the input, see `study.tracking.looks.Example`.
    """

    name: str | int
    segments: Tensor
    parts: Sequence[str | int]
    shown: Callable[[], dict[str, Any]]


class Measure(NamedTuple):
    """A measure that tables show beside SAIF and score: of one modality, or of any.

    Attributes:
        column: its name in results: a column of `study.results.EVALUATIONS_SCHEMA` where a
            modality declares it, else a name in the column `measures`.
        name: for people.
        is_share: whether it is a fraction, which people read in per cent.
        lost: what a diverged cell counts as, as a guess does; NaN: it is not known.
        bounded: whether it is in [0, 1].
        larger_is_better: whether a paradigm is better that has more of it.
        of: place of a function: `Outputs` -> a number, or of each instance a number or whether
            something is true; NaN: it is not known. Empty: the evaluation itself gives it.
    """

    column: str
    name: str
    is_share: bool = True
    lost: float = math.nan
    bounded: bool = True
    larger_is_better: bool = True
    of: Place = ""


class Gallery(NamedTuple):
    """Pictures of single inputs, which stand open in the report of a comparison.

    Attributes:
        place: of the function that draws them: `analysis.digest.compare.Comparison` ->
            pictures, whose names begin with `stem`.
        stem: of the names of their files, before a hyphen.
        heading: above them.
        text: how to read them.
    """

    place: str
    stem: str
    heading: str
    text: str


@dataclass(frozen=True)
class Modality:
    """A sort of inputs: their names for people, how SAIF counts them, and what they need.

    Attributes:
        noun: the inputs, in the plural; a budget of inputs counts them.
        counted: the inputs of which SAIF and the heat map are shares, in the plural.
        m: name of the axis m.
        foreground: name of the true foreground, if it needs one.
        partly: what an input has whose foreground is known, as ``a rationale``; empty: all have
            one.
        draws: what the data are a sample of, in the plural: verdicts hold for other ones, too.
        backgrounds: what an input holds besides the one of these in its foreground, in the plural;
            empty: nothing.
        heatmap_edges: of the heat map, for attention and score, see `study.evaluate`.
        saif_text: what SAIF is, with ``{at}`` for the threshold; empty: as of what is classified.
        saif_threshold: least attention and score at which an input counts for SAIF.
        score: name for people of the column `accuracy`.
        chance: whether a guess scores 1/C, as which a diverged cell then counts; else it scores 0.
        margin: a run whose score, or whose SAIF, is further above a guess has learned.
        measures: its further measures, in the order of tables; the score may be one of them.
        measures_text: what these are, for people.
        evaluation: evaluates a model, with the arguments of
            `study.evaluate.classification.evaluate`, but those of an attention that is held, if it
            never is.
        shown: (split, row) -> what shows an input, see `study.tracking.looks.Example`; empty:
            nothing does.
        how_shown: how to read that; empty: as of tiles.
        gallery: of its inputs, instead.
        reads: makes inputs of what a person asks a network about: (what `carried` gives, and the
            cell's m; what is given; `tiles`, or None) -> `Asked` of each; empty: none can be asked
            about.
        example: such an input, as Python, for people.
        published: what the paper printed, a `analysis.digest.published.Published`.
        settings: key of the settings of its models, see `study.cell.settings`; empty: they have
            none.
        rare: further axes that it has, of those which few tasks have.
        optimiser: by default.
        fixed_m: the segments of every input; None: the axis m says it.
        named_by: the column, besides the paradigm, that tells networks of its studies apart.
        own_columns: what else only its cells have in tables of cells.
        evaluates_alike: whether validation and test inputs are the same for every seed.
        keeps_networks: whether all trained networks are kept (`study.models.kept`), as other
            cells take them apart.
    """

    noun: str
    counted: str
    m: str
    foreground: str = ""
    partly: str = ""
    draws: str = "images"
    backgrounds: str = ""
    heatmap_edges: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    saif_text: str = ""
    saif_threshold: float = 0.8
    score: str = "accuracy"
    chance: bool = True
    margin: float = 0.05
    measures: tuple[Measure, ...] = ()
    measures_text: str = ""
    evaluation: Place = "study.evaluate.classification:evaluate"
    shown: Place = ""
    how_shown: str = ""
    gallery: Gallery | None = None
    reads: Place = ""
    example: str = ""
    published: Place = "analysis.digest.published:MOSAICS"
    settings: str = ""
    rare: tuple[str, ...] = ()
    optimiser: str = "sgd"
    fixed_m: int | None = None
    named_by: str = ""
    own_columns: tuple[str, ...] = ()
    evaluates_alike: bool = True
    keeps_networks: bool = False

    def has(self, axis: str) -> bool:
        """Whether it has an axis that few tasks have."""
        return axis in self.rare or axis in self.axes_of_settings

    @property
    def axes_of_settings(self) -> Mapping[str, Axis]:
        """The axes of the settings of its models."""
        return axes_of(SETTINGS[self.settings]) if self.settings else {}

    def guess(self, num_classes: Any) -> dict[str, Any]:
        """Accuracy and SAIF of a guess among C classes, as which a diverged cell counts."""
        return {"accuracy": self.chance / num_classes, "saif": 0.0}


MOSAICS = Modality(
    "mosaics",
    counted="instances",
    m="segments m",
    backgrounds="background images",
    reads="study.tasks.mosaics.given_images:given_images",
    example='"picture.png"',
)
OTHERS = Modality("examples", counted="examples", m="segments m", draws="examples")
"""Of tasks that are not known here: those of others' parts, and of recorded runs."""


class Batch(NamedTuple):
    """A batch of inputs: mosaics, posts, captions or episodes of one-shot images.

    Attributes:
        segments: (B, m, ...) as `study.models.model.Model.encode` takes them: of mosaics
            (B, m, C, H, W) float32, images in [-1, 1], of posts (B, m) int64 numbers of words, of
            captions (B, m, D) float32 features of the image's regions, or its pixels
            (B, 3, P, P) uint8, of episodes (B, 3, C, P, P) float32 in [0, 1]: first support,
            second support, query.
        labels: (B,) int64, the index of the class; of captions (B, T) int64 numbers of words, the
            end of the caption included.
        foreground: (B, m) bool, True at the hidden position z of a mosaic, or at the rationale of
            a post, which may be empty, or at the support of the query's character; used to
            evaluate, never to train. Of captions (B, 0).
        mask: (B, m) bool, True = real segment; None: all are real. Of captions (B, T), True = real
            word.
    """

    segments: Tensor
    labels: Tensor
    foreground: Tensor
    mask: Tensor | None


class Distinct(NamedTuple):
    """The distinct segments of a split.

    Attributes:
        names: (U,) the name of each distinct segment.
        places: (n, m) int64, the index in `names` of every segment of every input.
        segments: names (B,) -> their segments (B, ...), as in a `Batch`.
    """

    names: Tensor
    places: Tensor
    segments: Callable[[Tensor], Tensor]


class Split(Protocol):
    """The inputs of one split, on one device.

    Attributes:
        modality: of the inputs.
        labels: (n,) int64.
        foreground: (n, m) bool, as in a `Batch`.
        base_images: (n, k) int64, the base images that each input holds, by their places in the
            data: first that of its foreground, then all others. Of windows, the series that they
            are cut from; of posts, the post alone; of captions, the image of each object alone.
            Inputs that share an image share a draw of the data. None: an input has several of the
            foreground, or each cell is tested on other inputs.
        distinct: the segments that occur, if inputs share segments; else None.
    """

    @property
    def modality(self) -> Modality: ...

    @property
    def labels(self) -> Tensor: ...

    @property
    def foreground(self) -> Tensor: ...

    @property
    def base_images(self) -> Tensor | None: ...

    @property
    def distinct(self) -> Distinct | None: ...

    @property
    def bytes_each(self) -> int:
        """Size of one input's segments as float32, in bytes."""
        ...

    def __len__(self) -> int: ...

    def batch(self, rows: Tensor, width: int | None = None) -> Batch:
        """The inputs of these rows.

        Args:
            rows: (B,) int64, on the device.
            width: how many segments each has, padding included, at least that of the longest. Then
                nothing waits for the device. None: as many as the longest has.
        """
        ...

    def widths(self, rows: Tensor) -> Sequence[int]:
        """The `width` to give each batch where shapes must be few, as for CUDA graphs.

        Args:
            rows: (batches, B) int64, on the host; nothing waits for the device.
        """
        ...

    def passes(self, count: int) -> Sequence[Tensor]:
        """All rows in parts of at most `count`, in an order that pads little."""
        ...

    def head(self, count: int) -> Self:
        """The first `count` inputs."""
        ...


def class_names(split: Split) -> list[str]:
    """The name of each label, or its number where a split does not name them."""
    names = getattr(split, "classes", ()) or range(int(split.labels.max()) + 1)
    return [*map(str, names)]


@dataclass(frozen=True)
class Facts:
    """What a plan needs to know of a task's data.

    Attributes:
        digest: of the data.
        input_shape: of one segment as a model takes it: of a mosaic or an episode (channels,
            height, width), of a text (words,).
        sizes: split -> number of inputs; empty: mosaics or episodes, of which any number can be
            drawn.
        lengths: number of segments -> training inputs of that length; empty: all have m.
        notes: sentences about the data, for people.
        num_classes: C, where the data tell it; 0: the `TaskInfo` does.
    """

    digest: str
    input_shape: tuple[int, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[int, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    num_classes: int = 0


FactsOf = Callable[[str, Options], Facts]
"""(task, options of its data) -> facts of its data."""


class Task(Protocol):
    """A data set as a focus-classify task.

    Attributes:
        name: of the task; part of the seeds.
        num_classes: C.
        facts: of its data.
        encoder_weights: that the encoder starts with, by their names in its state; None: there is
            none, or it starts from random weights.
    """

    @property
    def name(self) -> str: ...

    @property
    def num_classes(self) -> int: ...

    @property
    def facts(self) -> Facts: ...

    @property
    def encoder_weights(self) -> Mapping[str, Tensor] | None: ...

    def splits(self, cell: Cell, device: torch.device | str = "cpu") -> Mapping[str, Split]:
        """The splits of a cell: `train`, `validation`, `test`.

        The cell's seed draws the train split; the others are fixed, but for episodes.
        """
        ...


def carried(task: Task) -> dict[str, Any]:
    """What networks of a task keep beside their weights, to be built and asked without its data.

    Returns:
        Plain values: `input_shape`, `num_classes`, and what the task has as `carried`, if it has
        that: `classes`, their names, and what the `reads` of its modality takes.
    """
    facts = {"input_shape": task.facts.input_shape, "num_classes": task.num_classes}
    return facts | getattr(task, "carried", {})


@dataclass(frozen=True)
class TaskInfo:
    """A task with its options, before its data is at hand.

    Attributes:
        classes: names of the classes; of mosaics, those of the foreground; of episodes, which
            support the query matches; of captions and of your own texts none: the words of the
            data are the classes, or the data tell them (`Facts.num_classes`).
        load: places of its files -> the task.
    """

    classes: tuple[str, ...]
    load: Callable[[Places], Task]

    @property
    def num_classes(self) -> int:
        return len(self.classes)


@dataclass(frozen=True)
class Declaration:
    """A task as its module declares it, known without PyTorch.

    Attributes:
        modality: of its inputs.
        info: options -> the task with them; raises `RequestError` if one is of no use.
        options: what determines its data besides its files: name -> its values and default.
        data_set: the data set that it reads; None: it is bundled or made up.
        files: further files that it takes: name of the option -> its line in `--help`.
        warning: what readers are told before they see its inputs, which are shown only where a
            person asks for it; empty: nothing.
        chooses: whether options are chosen among; else a study has one stage.
        why_not: cell -> why it cannot run; None: it can.
        requires: refuses a machine that lacks packages, by `RequestError`.
        at_hand: (places, options) -> whether what is read besides the data set is at hand.
        artifacts: (row of a cell, its last evaluations) -> what MLflow shows of the cell.
    """

    modality: Modality
    info: Callable[[Options], TaskInfo]
    options: Mapping[str, Axis] = field(default_factory=dict)
    data_set: DataSet | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    warning: str = ""
    chooses: bool = True
    why_not: Place = ""
    requires: Place = ""
    at_hand: Place = ""
    artifacts: Place = "study.tracking.run_files:heat_map_and_looks"

    def reads(self, place: str) -> bool:
        """Whether it reads files of a place, a field of `Places` but the cache."""
        return place in self.files or (place == "data_dir" and self.data_set is not None)


def pixels(least: int, most: int, default: int) -> Axis:
    """The option of images that are resized."""
    about = "height and width to which images are resized"
    return Axis(about, Whole(least, most), (default,))


def min_count(default: int) -> Axis:
    """The option of texts that have a vocabulary."""
    return Axis(
        "occurrences in training texts that put a word in the vocabulary; the others are one word",
        Whole(1),
        (default,),
        column="fewest occurrences of a word in the vocabulary",
    )
