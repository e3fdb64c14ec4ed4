"""Fixed focus (section 3): figures 2 and 3 of the paper, and claims C7 to C14."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from analysis.forms import aligned, number
from analysis.groups import PARADIGMS
from analysis.rules.claim import Claim
from analysis.section.blocks import Block, Details, Table, Text
from analysis.section.columns import by_columns
from analysis.section.parts import end_states, run_files
from analysis.section.picture import Picture
from analysis.section.section import Question
from analysis.section.summary import claims_note, summary_run
from analysis.settings import network_text
from chapters.dynamics.section.dynamics_section import DynamicsSection
from chapters.dynamics.section.focus_claims import claims
from chapters.dynamics.section.focus_pictures import pictures
from chapters.dynamics.section.focus_settings import MEASURES, Setting, read_settings
from chapters.dynamics.section.focus_tables import FINAL, OPTIONS, short_cells, tables, warnings
from chapters.dynamics.task import TASK
from study.results import Results
from study.terminal import counted
from study.tracking.runs import Files, Run

MOST_ROWS = 3
"""Rows of panels in a figure: with more, it does not fit on a page."""

_METHOD = (
    "Attention is held at alpha on the true foreground and shared evenly by the background; only "
    "the classifier trains. Everything here is on the train split, as in the paper, at the end of "
    "training or against epochs: mosaics seen / n.",
    "Learning rate: one a paradigm for all its alphas, by validation accuracy, mean over alphas "
    "and seeds; ties go to the lower validation loss, then to the smaller rate. Only a rate "
    "without a cell that was stopped early, and with as many cells as any other of its paradigm, "
    "can be chosen; where some cells are missing, the mean is over the alphas and seeds that all "
    "of these have. A diverged cell counts as accuracy 1/C there.",
    "Curves are means over seeds with 95 % t intervals. Diverged seeds are in no curve; they are "
    "counted.",
    "The incentive is L(alpha) - L(min(alpha + .01, 1)) for the classifier at hand, in nats "
    "(section 3.2). -dL/dalpha is the slope of the loss at alpha, in nats per unit of attention: "
    "about a hundred times the incentive, and not 0 by definition at alpha = 1.",
    "The closed form is Theorem 1 at the time of gradient flow that the steps amount to: the sum "
    "of learning rate / (1 - momentum).",
)
_PARAMS = ("task", "m", "n", "architecture", "batch_size", "budget_amount", "budget_unit")


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[FixedFocus]:
    """The settings of a directory, at most `MOST_ROWS` rows of panels each.

    Data tasks come first, the linear orthogonal setting last; where it was not trained, the closed
    form takes the last row.

    Args:
        results: the directory.
        cell_ids: ids of its fixed-focus cells.
        question: unused, as it concerns comparisons.

    Raises:
        ResultsError: unreadable results.
    """
    cells = results.cells(cell_ids)
    settings = read_settings(results, cells)
    linear = [setting for setting in settings if setting.task == TASK]
    others = [setting for setting in settings if setting.task != TASK]
    parts = _in_parts(others, MOST_ROWS - 1)
    if linear:
        last = parts.pop() if parts else []
        room = MOST_ROWS - len(last)
        parts += [last + linear[:room], *_in_parts(linear[room:], MOST_ROWS)]
    others_ran = cells.loc[~cells["paradigm"].isin(PARADIGMS), "paradigm"].value_counts()
    notes = [
        f"{counted(count, f'cell of {name} is', f'cells of {name} are')} not shown: section 3 has "
        "no such paradigm."
        for name, count in others_ran.sort_index().items()
    ]
    return [FixedFocus(part, notes) for part in parts]


class FixedFocus(DynamicsSection):
    """See `analysis.section.section.Section`.

    Args:
        settings: one row of panels each, at least one.
        notes: further sentences to show.

    Attributes:
        settings: as given.
        closed_row: whether the last row of the figures is the closed form alone.
    """

    about = (
        "How a classifier learns while attention on the true foreground is held at alpha, and "
        "what the focus would gain by improving."
    )

    def __init__(self, settings: Sequence[Setting], notes: Sequence[str] = ()) -> None:
        cells = pd.concat([setting.cells for setting in settings], ignore_index=True)
        super().__init__(cells, [setting.id for setting in settings])
        self.title = f"Fixed focus: {' and '.join(setting.name for setting in settings)}"
        self.settings = list(settings)
        self._notes = list(notes)
        self.closed_row = all(setting.task != TASK for setting in settings)

    def lines(self) -> list[str]:
        notes = [f"note: {text}" for text in self.warnings()]
        return [*aligned(*short_cells(self.settings)), "", *notes]

    def warnings(self) -> list[str]:
        return [*self._notes, *warnings(self.settings)]

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """C7 of each setting, then C8 of each, to C14."""
        of_each = [claims(setting) for setting in self.settings]
        return [claim for same in zip(*of_each, strict=True) for claim in same]

    @functools.cached_property
    def pictures(self) -> list[Picture]:
        """Figures 2 and 3, and the slope of the loss against alpha."""
        return pictures(self.settings, self.closed_row)

    def tables(self) -> dict[str, pd.DataFrame]:
        """Curves, their ends, the closed form at the same times, and the choice."""
        return tables(self.settings)

    def details(self) -> list[Block]:
        found = self.tables()
        name = f"fixed-focus-final-{self.key}.csv"
        final = Table(*by_columns(FINAL, found["fixed-focus-final"]), left=(0, 1), csv=name)
        said = Text("Mean over seeds and t interval on the train split, in nats.")
        options = found["fixed-focus-options"]
        chosen = np.flatnonzero(options["chosen"]).tolist()
        name, left = f"fixed-focus-options-{self.key}.csv", (0, 1, 10)
        rates = Table(*by_columns(OPTIONS, options), left=left, marked=chosen, csv=name)
        settings = [[each.name, _setting_text(each)] for each in self.settings]
        return [
            *([Details("At the end of training", [said, final])] if final.rows else []),
            Details("Choice of the learning rate", [rates]),
            Details("Cells by end state", end_states(self.cells)),
            Details("Settings", [Table([], settings, (0, 1), (), (1,))]),
            Details("How this was computed", [Text(text) for text in _METHOD]),
        ]

    def summaries(self) -> list[Run]:
        """One summary a (setting, paradigm) that has done cells."""
        files = functools.cache(lambda: run_files(self.tables(), self.pictures))
        return [
            self._summary(setting, name, files)
            for setting in self.settings
            for name in PARADIGMS
            if (setting.final["paradigm"] == name).any()
        ]

    def _summary(self, setting: Setting, paradigm: str, files: Files) -> Run:
        final, curves, chosen = (
            table[table["paradigm"] == paradigm]
            for table in (setting.final, setting.curves, setting.chosen)
        )
        metrics = {
            f"final_{measure}_alpha_{row['alpha']:g}": float(row[measure])
            for row in final.to_dict("records")
            for measure in MEASURES
        }
        params = {
            "paradigm": paradigm,
            "lr": number(chosen["lr"].iloc[0]),
            "chosen_by": "validation accuracy, mean over alpha and seeds",
            "alphas": _alphas(final),
            **{name: str(chosen[name].iloc[0]) for name in _PARAMS},
            "num_classes": str(setting.num_classes),
        }
        return summary_run(
            key=f"{setting.id}/{paradigm}",
            named=[paradigm, f"fixed focus {setting.name}"],
            note=claims_note([each for each in self.claims if each.setting == setting.name]),
            params=params,
            metrics=metrics | {"n": float(final["num_seeds"].min())},
            files=files,
            curves={
                f"train/{measure}_alpha_{alpha:g}": line.set_index("compute_flops")[measure]
                for alpha, line in curves.groupby("alpha")
                for measure in MEASURES
            },
        )


def _in_parts(settings: list[Setting], size: int) -> list[list[Setting]]:
    return [settings[i : i + size] for i in range(0, len(settings), size)]


def _alphas(table: pd.DataFrame) -> str:
    return ", ".join(f"{alpha:g}" for alpha in sorted(set(table["alpha"])))


def _setting_text(setting: Setting) -> str:
    cells, shared = setting.cells, setting.shared
    first = cells.iloc[0]
    return (
        f"n={setting.n} mosaics, C={setting.num_classes}, {network_text(first)}, momentum "
        f"{shared['momentum']:g}, {first['split_scheme']} bases, data {first['data_digest']}, "
        f"budget {first['budget_amount']:,d} {first['budget_unit']}, train metrics on "
        f"{shared['train_metrics_size']:,d} mosaics, alpha {_alphas(cells)}, seeds "
        f"{', '.join(map(str, sorted(set(cells['seed']))))}, code "
        f"{', '.join(sorted(set(cells['code_version'])))}"
    )
