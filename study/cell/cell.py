"""The cell that trains: one training run as a frozen, checked value.

See `study.cell.any_cell` for what it has in common with cells of other kinds.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

from study.cell.any_cell import NO_OPTIONS, AnyCell, Options
from study.cell.checks import require
from study.cell.declared import (
    ALL,
    LARGEST,
    NONE,
    OWN,
    Name,
    Number,
    Text,
    Whole,
    declared,
    part,
)
from study.cell.network_settings import NetworkSettings
from study.cell.schedule import PARADIGMS, Budget, Schedule
from study.cell.settings import SETTINGS, Settings

Group = tuple[str, str]
"""Comparison id and paradigm of cells; of the options of a group, one is chosen."""

SPLIT_SCHEMES = ("disjoint", "shared-base")
"""`disjoint`: train, validation and test mosaics have no base image in common. `shared-base`: all
are made of the train images, as in the published scripts."""

PRECISIONS = ("float32", "tf32", "bfloat16")
"""Of the products in the networks; weights, attention, losses and updates are float32."""

_SEGMENTS = 100_000
_SIZE = Whole(1)


@dataclass(frozen=True, kw_only=True)
class Cell(AnyCell):
    """One training run to the end.

    Attributes:
        data_digest: of the base data, so that a re-encoded copy never meets the original.
        seed: draws the training mosaics, the initialisation and the order; nothing else does.
        budget: resolved, the same for every cell of a comparison.
        evaluation_points: increasing fractions of the budget in [0, 1], the last one 1.
        options: of its task's data, see `study.tasks`; beside its fields in JSON.
        alpha: attention held on the foreground while only the classifier trains (section 3).
        settings: of its model, what only some tasks have; in JSON under their key.
        sources: of its model, task and inference, those from outside the project: role, name and
            digest of the file that registered it, joined by spaces; None: all are its own.
    """

    version: ClassVar = {"trainer": 2}

    seed: int = declared("seeds on which options are tried; 0-11 is a range", Whole(0, LARGEST))
    task: str = declared("data set", Text("a name"), alone=True)
    options: Options = NO_OPTIONS
    data_digest: str
    m: int = declared(
        "segments of a mosaic; of posts the most words, longer ones are cut; of captions the "
        "regions of an image, a square number",
        Whole(2, _SEGMENTS),
        column="segments; of texts the most tokens, of captions regions",
    )
    foregrounds: int = declared(
        "segments of a mosaic with the label's class", Whole(1, _SEGMENTS), 1, unsaid=True
    )
    distractors: int = declared(
        "segments of a mosaic with other foreground classes, each drawn by itself",
        Whole(0, _SEGMENTS),
        0,
        unsaid=True,
    )
    n: int = declared(
        "training mosaics, posts or captions; all: every post or caption",
        _SIZE,
        words=(ALL,),
    )
    schedule: Schedule = part(Schedule)
    alpha: float | None = declared(
        "attention held on the foreground while only the classifier trains; none: both train",
        Number(0, 1, "[]"),
        None,
        words=(NONE,),
        column="attention held on the foreground; missing where the focus was trained",
    )
    budget: Budget = part(Budget)
    architecture: str = declared(
        "network of focus and classifier", Text("a name"), column="of the network"
    )
    width: float = declared("factor on the network's hidden widths", Number(0, 1_000, "(]"), 1.0)
    network: NetworkSettings = part(NetworkSettings, NetworkSettings())
    batch_size: int = declared(
        "mosaics, posts or captions in a step", _SIZE, 256, column="examples a step"
    )
    precision: str = declared(
        "of the networks' arithmetic; tf32 on a GPU only", Name(PRECISIONS), "float32"
    )
    momentum: float = declared("of SGD; of Adam the decay beta_1", Number(0, 1, "[)"), 0.9)
    split: str = declared(
        "disjoint images in all splits, or shared-base as in the published scripts",
        Name(SPLIT_SCHEMES),
        "disjoint",
        column="how splits were made",
        named="split_scheme",
    )
    inference: str | None = declared(
        "paradigm whose formula predicts at evaluations; own: that of the phase",
        Name(PARADIGMS),
        None,
        words=(OWN,),
    )
    settings: Settings | None = None
    evaluation_points: tuple[float, ...] = tuple(i / 10 for i in range(11))
    train_metrics_size: int = declared(
        "training inputs on which train metrics are computed", _SIZE, 2_000, words=(ALL,)
    )
    validation_size: int = declared("validation inputs", _SIZE, 2_000, words=(ALL,))
    test_size: int = declared("test inputs", _SIZE, 10_000, words=(ALL,))
    sources: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        rates = [phase.encoder_lr for phase in self.schedule.phases]
        rule = "a number in all phases, or in none"
        require(rates.count(None) in (0, len(rates)), "encoder_lr", rates, rule)
        points = tuple(map(float, self.evaluation_points))
        object.__setattr__(self, "evaluation_points", points)
        require(
            len(points) > 0
            and points[0] >= 0
            and points[-1] == 1.0
            and all(a < b for a, b in itertools.pairwise(points)),
            "evaluation points",
            points,
            "increasing fractions of the budget in [0, 1], the last one 1",
        )

    def to_dict(self) -> dict[str, Any]:
        found = super().to_dict()
        found.pop("options", None)
        if self.settings is not None:
            found[self.settings.key] = found.pop("settings")
        return {**found, **self.options}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Cell:
        """The cell of what `to_dict` gives; what is no field is an option of its data."""
        own = {name: value for name, value in values.items() if name in _FIELDS}
        others = {name: value for name, value in values.items() if name not in _FIELDS}
        for key in others.keys() & SETTINGS.keys():
            own["settings"] = SETTINGS[key].from_dict(others.pop(key))
        return super().from_dict({**own, "options": Options(**others)})

    @cached_property
    def comparison_id(self) -> str:
        """Content hash of all but the schedule and the seed.

        Only cells with equal ids may be compared at equal compute.
        """
        return self.hash_without("schedule", "seed")

    def compared(self, schedule: Schedule, seed: int) -> Cell:
        """A cell of the same comparison; what both share is not hashed again."""
        other = replace(self, schedule=schedule, seed=seed)
        other.__dict__.update(comparison_id=self.comparison_id, setting=self.setting)
        return other

    @property
    def option(self) -> tuple[str, Schedule]:
        return self.comparison_id, self.schedule

    @cached_property
    def setting(self) -> tuple[str, bool]:
        """Content hash of all but the schedule, the seed and alpha, and whether alpha is held."""
        return self.hash_without("schedule", "seed", "alpha"), self.alpha is not None

    @cached_property
    def first_phase(self) -> Hashable:
        """All that the steps of the first phase depend on, but not their number.

        Cells that have it in common share weights, order and random state until one of them leaves
        its first phase.
        """
        first = vars(self.schedule.phases[0]).items()
        return self.comparison_id, self.seed, *(each for each in first if each[0] != "until")

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
        return self.network.normalisation == "batch"

    @property
    def label(self) -> str:
        return self.paradigm

    @property
    def text(self) -> str:
        return f"{self.paradigm} at m={self.m}, {self.schedule.text}"

    @property
    def columns(self) -> dict[str, Any]:
        phases = self.schedule.phases
        found = {
            **super().columns,
            "paradigm": self.paradigm,
            "schedule": self.schedule.text,
            "lr": self.lr,
            "last_lr": phases[-1].lr,
            "switch_point": self.switch_point,
            "budget_amount": self.budget.amount,
            "budget_unit": self.budget.unit,
        }
        return found | (self.settings.columns(self) if self.settings else {})


_FIELDS = {each.name for each in fields(Cell)}
