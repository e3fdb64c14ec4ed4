"""Settings in words: the names of comparisons, and what tells one from another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.forms import number
from study import tasks
from study.cell import declared

_LISTED = 11  # longest list whose values are named one by one: as many as the default evaluations
_OF_A_CELL = ("schedule", "seed")  # the cells of a comparison share all else
_UNUSUAL = ("network", "foregrounds", "distractors")  # fields of a cell that most have not
_WORDS = {
    "m": "m={}",
    "n": "n={}",
    "num_classes": "C={}",
    "architecture": "{}",
    "batch_size": "batch {}",
    "precision": "{}",
    "inference": "{} inference",
    "split": "{} bases",
    "data_digest": "data {}",
    "network": "{}",
}


def full_name(settings: Mapping[str, Any]) -> str:
    """The name of a setting with what is unusual about its formula, networks and data.

    ``digits m=10``, ``texts embedding m=64``: where studies of a task always compare several
    architectures, names tell them. Of recorded runs m need not be known.

    Args:
        settings: as `study.cell.Cell.to_dict` gives it.
    """
    task = settings["task"]
    sizes = ["architecture", "m"] if tasks.modality(task).named_by == "architecture" else ["m"]
    rules = [
        each
        for each, axis in _options(settings).items()
        if axis.said and (settings.get(each),) not in ((None,), axis.default)
    ]
    names = [*sizes * bool(settings.get("m")), "inference"]
    named = " ".join([task, *setting_words(settings, names)])
    return ", ".join([named, *setting_words(settings, [*_UNUSUAL, *rules])])


def told_apart(name: str, settings: Mapping[str, Any], fields: Iterable[str]) -> str:
    """A name with some of the settings: ``digits m=10 [n=500, data 0123456789abcdef]``.

    Args:
        name: of the setting.
        settings, fields: see `setting_words`; without any, the name is enough.
    """
    words = setting_words(settings, fields)
    return f"{name} [{', '.join(words)}]" if words else name


def differences(names: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Fields of each setting that differ among the settings of its name.

    Args:
        names: one name a setting, at least one.
        settings: as `study.cell.Cell.to_dict` gives them.
    """
    fields = pd.DataFrame([*settings], dtype=object).drop(columns=[*_OF_A_CELL], errors="ignore")
    texts = fields.where(fields.notna(), None).map(repr)
    differs = texts.groupby([*names]).nunique() > 1
    of_name = {name: [*row.index[row]] for name, row in differs.iterrows()}
    return [of_name[name] for name in names]


def setting_words(settings: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Some of the settings in words: ``n=500``, ``data 0123456789abcdef``, ``momentum 0.5``.

    Args:
        settings: as `study.cell.Cell.to_dict` gives it.
        names: fields of `settings`; missing ones are left out.
    """
    options, texts = _options(settings), []
    for name in (name for name in names if name in settings):
        value = settings[name]
        if name == "budget":
            value = _budget(value["amount"], value["unit"], settings["task"])
        elif isinstance(value, list):
            few = len(value) <= _LISTED
            value = " ".join(map(str, value)) if few else f"({len(value)} values)"
        form = _WORDS.get(name, f"{name.replace('_', ' ')} {{}}")
        if name in options:
            form = options[name].said or form
        texts.append(form.format(setting_text(value)))
    return texts


def setting_text(value: Any) -> str:
    """A setting: a list with commas, several named ones as ``embedding 512, hidden 512``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def network_text(cell: Mapping[str, Any] | pd.Series) -> str:
    """Architecture, batch size and, where it is not float32, precision."""
    precision = "" if cell["precision"] == "float32" else f", {cell['precision']}"
    return f"{cell['architecture']}, batch {cell['batch_size']}{precision}"


def _budget(value: int, unit: str, task: str) -> str:
    """All digits of a budget: ``2e12 FLOPs``, ``2,048,000,001 FLOPs``, ``60,000 mosaics``."""
    if unit != "flops":
        return f"{value:,d} {tasks.modality(task).noun}"
    return f"{number(value) if float(number(value)) == value else f'{value:,d}'} FLOPs"


def _options(settings: Mapping[str, Any]) -> Mapping[str, declared.Axis]:
    """The options of the task's data."""
    task = tasks.TASKS.get(settings.get("task", ""))
    return task.options if task else {}
