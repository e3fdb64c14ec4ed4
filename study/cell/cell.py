"""The cell that trains: one training run as a frozen, validated dataclass, with its content hash.

See `study.cell.any_cell` for what it has in common with cells of other kinds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from study.cell.any_cell import AnyCell, Options
from study.cell.checks import is_int, is_positive, require
from study.cell.decoder import DecoderSettings
from study.cell.network import LARGEST_WIDTH, NetworkSettings
from study.cell.schedule import PARADIGMS, Budget, Phase, Schedule
from study.cell.transformer import TransformerSettings

T = TypeVar("T")

Group = tuple[str, str]
"""Comparison id and paradigm of cells; of the options of a group, one is chosen."""

SPLIT_SCHEMES = ("disjoint", "shared-base")
"""`disjoint`: train, validation and test mosaics have no base image in common. `shared-base`: all
are made of the train images, as in the published scripts."""

LABEL_RULES = ("majority", "first")
"""The label of a post that several people labelled: the most frequent one, or the first."""

RATIONALE_RULES = ("majority", "union", "first")
"""The rationale of a post that several people marked: the tokens that at least half of the lists
mark, that any marks, or that the first marks."""

PRECISIONS = ("float32", "tf32", "bfloat16")
"""Of the products in the networks; weights, attention, losses and updates are float32."""

LARGEST_M = 100_000
LARGEST_SIZE = 1_000_000_000
LARGEST_PIXELS = 1_024
LARGEST_WINDOW = 1_000_000
"""Far above any study, but low enough to catch a mistyped zero before it takes all memory."""


@dataclass(frozen=True, kw_only=True)
class Cell(AnyCell):
    """One training run to the end.

    Args:
        task: name in `study.tasks`.
        data_digest: digest of the base data, so that a re-encoded copy never meets the original.
        split: one of `SPLIT_SCHEMES`.
        m: segments a mosaic, >= 2; of posts, the number of tokens at which they are cut; of
            captions, regions of an image, a square number.
        n: training inputs, >= 1: mosaics, posts or captions.
        train_metrics_size: training inputs on which the train metrics are taken.
        validation_size: validation inputs.
        test_size: test inputs.
        architecture: name in `study.models`.
        width: factor on the architecture's hidden widths, > 0.
        batch_size: inputs a step.
        momentum: of SGD, in [0, 1); of Adam the decay of its first moment.
        schedule: phases with their learning rates.
        seed: draws the training mosaics, the initialisation and the order; nothing else does.
        budget: resolved, the same for every cell of a comparison.
        evaluation_points: increasing fractions of the budget in [0, 1], the last one 1.
        precision: of the forward and backward pass, one of `PRECISIONS`.
        alpha: attention held on the foreground, in [0, 1], while only the classifier trains (fixed
            focus, section 3); None: the focus trains, too.
        num_classes: foreground classes of a made-up task, >= 2; None: the task's own.
        foregrounds: segments of the label's class in each mosaic, >= 2; None: one.
        distractors: segments of other foreground classes in each mosaic, >= 1; None: none.
        network: how the networks differ from the architecture; None: in nothing but `width`.
        label_rule: of posts, one of `LABEL_RULES`.
        rationale_rule: of posts, one of `RATIONALE_RULES`.
        min_count: of posts and captions, >= 1: the vocabulary is the words that occur this often
            in the training split; all others are one word, the unknown.
        inference: paradigm whose formula predicts at evaluations, one of `PARADIGMS`; None: that
            of the phase.
        encoder: of captions, name in `study.tasks.captions.encoders`.
        decoder: of captions, its sizes and inference.
        pixels: of one-shot images and your own, height and width to which they are resized, >= 1.
        foreground: of mosaics, the classes that are labels, joined by +; None: the paper's.
        background: of mosaics, the classes of the other segments, or rest; None: all others.
        window: of series, steps of a segment, >= 1.
        transformer: of one-shot images, the sizes of the network.
        sources: of its model, task and inference, those from outside the project: role, name and
            digest of the file that registered it, joined by spaces; None: all are its own.

    Raises:
        ValueError: a value is out of range; the message names it and the rule.
    """

    version: ClassVar = {"trainer": 2}

    task: str
    data_digest: str
    m: int
    n: int
    architecture: str
    schedule: Schedule
    seed: int
    budget: Budget
    split: str = "disjoint"
    train_metrics_size: int = 2_000
    validation_size: int = 2_000
    test_size: int = 10_000
    width: float = 1.0
    batch_size: int = 256
    momentum: float = 0.9
    evaluation_points: tuple[float, ...] = tuple(i / 10 for i in range(11))
    precision: str = "float32"
    alpha: float | None = None
    num_classes: int | None = None
    foregrounds: int | None = None
    distractors: int | None = None
    network: NetworkSettings | None = None
    label_rule: str | None = None
    rationale_rule: str | None = None
    min_count: int | None = None
    inference: str | None = None
    encoder: str | None = None
    decoder: DecoderSettings | None = None
    pixels: int | None = None
    foreground: str | None = None
    background: str | None = None
    window: int | None = None
    transformer: TransformerSettings | None = None
    sources: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        require(is_int(self.m) and self.m >= 2, "m", self.m, "an integer >= 2")
        require(self.m <= LARGEST_M, "m", self.m, f"at most {LARGEST_M:,}")
        for name in ("n", "train_metrics_size", "validation_size", "test_size", "batch_size"):
            value = getattr(self, name)
            require(is_int(value) and value >= 1, name, value, "an integer >= 1")
            require(value <= LARGEST_SIZE, name, value, f"at most {LARGEST_SIZE:,}")
        require(is_int(self.seed) and self.seed >= 0, "seed", self.seed, "an integer >= 0")
        require(self.seed < 2**63, "seed", self.seed, "< 2^63")
        require(
            isinstance(self.momentum, int | float) and 0 <= self.momentum < 1,
            "momentum",
            self.momentum,
            "a number in [0, 1)",
        )
        require(
            self.split in SPLIT_SCHEMES, "split", self.split, f"one of {', '.join(SPLIT_SCHEMES)}"
        )
        require(
            self.precision in PRECISIONS,
            "precision",
            self.precision,
            f"one of {', '.join(PRECISIONS)}",
        )
        require(
            is_positive(self.width) and self.width <= LARGEST_WIDTH,
            "width",
            self.width,
            f"a number > 0 and at most {LARGEST_WIDTH:,}",
        )
        alpha = self.alpha
        require(
            alpha is None
            or (isinstance(alpha, int | float) and alpha is not True and 0 <= alpha <= 1),
            "alpha",
            self.alpha,
            "a number in [0, 1]",
        )
        require(
            self.num_classes is None or (is_int(self.num_classes) and self.num_classes >= 2),
            "num_classes",
            self.num_classes,
            "an integer >= 2",
        )
        for name, least in (("foregrounds", 2), ("distractors", 1)):
            value = getattr(self, name)
            rule = f"none, or an integer >= {least} and at most {LARGEST_M:,}"
            require(
                value is None or (is_int(value) and least <= value <= LARGEST_M), name, value, rule
            )
        for name, known in (
            ("label_rule", LABEL_RULES),
            ("rationale_rule", RATIONALE_RULES),
            ("inference", PARADIGMS),
        ):
            value = getattr(self, name)
            require(value is None or value in known, name, value, f"one of {', '.join(known)}")
        count = self.min_count
        require(
            count is None or (is_int(count) and 1 <= count <= LARGEST_SIZE),
            "min_count",
            count,
            f"an integer >= 1 and at most {LARGEST_SIZE:,}",
        )
        for name, largest in (("pixels", LARGEST_PIXELS), ("window", LARGEST_WINDOW)):
            value = getattr(self, name)
            require(
                value is None or (is_int(value) and 1 <= value <= largest),
                name,
                value,
                f"an integer >= 1 and at most {largest:,}",
            )
        frozen = {phase.encoder_lr is None for phase in self.schedule.phases}
        require(
            len(frozen) == 1,
            "encoder_lr",
            [phase.encoder_lr for phase in self.schedule.phases],
            "a number in all phases, or in none",
        )
        points = tuple(float(point) for point in self.evaluation_points)
        require(
            len(points) > 0
            and points[0] >= 0
            and points[-1] == 1.0
            and all(a < b for a, b in itertools.pairwise(points)),
            "evaluation points",
            self.evaluation_points,
            "increasing fractions of the budget in [0, 1], the last one 1",
        )
        object.__setattr__(self, "evaluation_points", points)
        object.__setattr__(self, "momentum", float(self.momentum))
        object.__setattr__(self, "width", float(self.width))
        if self.alpha is not None:
            object.__setattr__(self, "alpha", float(self.alpha) + 0.0)  # -0 is 0

    @cached_property
    def comparison_id(self) -> str:
        """Content hash of all but the schedule and the seed.

        Only cells with equal ids may be compared at equal compute.
        """
        return self.hash_without("schedule", "seed")

    @cached_property
    def setting(self) -> tuple[str, bool]:
        """Content hash of all but the schedule, the seed and alpha, and whether alpha is held."""
        return self.hash_without("schedule", "seed", "alpha"), self.alpha is not None

    @cached_property
    def first_phase_id(self) -> str:
        """Content hash of all that the steps of the first phase depend on, but not their number.

        Cells with equal ids share weights, order and random state until one of them leaves its
        first phase.
        """
        shared = self.to_dict()
        first = shared["schedule"]["phases"][0]
        shared["schedule"] = {name: first[name] for name in first if name != "until"}
        return self.content_hash(shared)

    @property
    def options(self) -> Options:
        """The options of its task's data."""
        return Options(*(getattr(self, name) for name in Options._fields))

    @property
    def paradigm(self) -> str:
        return self.schedule.paradigm

    @property
    def lr(self) -> float:
        """The first phase's learning rate."""
        return self.schedule.phases[0].lr

    @property
    def switch_point(self) -> float | None:
        return self.schedule.switch_point

    @property
    def takes_whole_batches(self) -> bool:
        """Whether a step in parts would be another: the statistics are of a batch."""
        return self.network is not None and self.network.normalisation == "batch"

    @property
    def label(self) -> str:
        return self.paradigm

    @property
    def text(self) -> str:
        return f"{self.paradigm} at m={self.m}, {self.schedule.text}"

    @property
    def columns(self) -> dict[str, Any]:
        return {
            "split_scheme": self.split,
            "label_rule": self.label_rule,
            "rationale_rule": self.rationale_rule,
            "min_count": self.min_count,
            "m": self.m,
            "architecture": self.architecture,
            "batch_size": self.batch_size,
            "alpha": self.alpha,
            "paradigm": self.paradigm,
            "schedule": self.schedule.text,
            "lr": self.lr,
            "last_lr": self.schedule.phases[-1].lr,
            "switch_point": self.switch_point,
            "budget_amount": self.budget.amount,
            "budget_unit": self.budget.unit,
            **(self._captioning if self.decoder else {}),
        }

    @property
    def _captioning(self) -> dict[str, Any]:
        """The columns of a cell that writes captions."""
        phases = self.schedule.phases
        forced = [1.0 if p.teacher_forcing is None else p.teacher_forcing for p in phases]
        return {
            "encoder": self.encoder,
            "optimiser": phases[0].optimiser or "sgd",
            "encoder_lr": phases[0].encoder_lr,
            "teacher_forcing": min(forced),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Cell:
        phases = tuple(Phase(**phase) for phase in values["schedule"]["phases"])
        sources = values.get("sources")
        return cls(
            **{
                **values,
                "schedule": Schedule(phases),
                "budget": Budget(**values["budget"]),
                "evaluation_points": tuple(values["evaluation_points"]),
                "network": _settings(NetworkSettings, values.get("network")),
                "decoder": _settings(DecoderSettings, values.get("decoder")),
                "transformer": _settings(TransformerSettings, values.get("transformer")),
                "sources": None if sources is None else tuple(sources),
            }
        )


def _settings(kind: Callable[..., T], values: dict[str, Any] | None) -> T | None:
    return None if values is None else kind(**values)
