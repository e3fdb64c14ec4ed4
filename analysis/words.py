"""Words that tables, figures and sentences share: tasks, metrics, axes and amounts.

Nothing here computes a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.groups import Axis
from analysis.rules.statistics import clopper_pearson
from study import tasks, terminal
from study.cell import declared

METRICS = ("saif", "accuracy")
"""The two columns by which paradigms are compared; recorded runs may have others."""

_LISTED = 11  # longest list whose values are named one by one: as many as the default evaluations
_OF_A_CELL = ("schedule", "seed")  # the cells of a comparison share all else
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

UNUSUAL = ("network", "foregrounds", "distractors")
"""Fields of a cell that most have not."""

SPREADS = {"seeds": "seed_se", "images": "image_se", "backgrounds": "background_se"}
"""What numbers are over -> column of the standard error, of a mean behind its metric."""

MANY = 10_000
"""Above this, a number of seeds or images is no longer stated."""


def by_architecture(task: str) -> bool:
    """Whether studies of a task always compare several architectures, so that names tell them."""
    return tasks.modality(task).named_by == "architecture"


def instances(*names: str) -> str:
    """Name of the instances of tasks: ``mosaics``, ``posts``, or ``instances`` for both."""
    nouns = {tasks.modality(name).noun for name in names} or {"mosaics"}
    return nouns.pop() if len(nouns) == 1 else "instances"


def of_draws(text: str, task: str) -> str:
    """A text about images in the words of a task, whose data may be a sample of posts, say."""
    draws = tasks.modality(task).draws
    return text.replace("images", draws).replace("image", draws.removesuffix("s"))


def setting_name(task: str, m: int, architecture: str) -> str:
    """Name that tells a page's comparisons apart: ``digits m=10``, ``texts embedding m=64``."""
    if not m:  # of recorded runs it need not be known
        return task
    return f"{task} {architecture} m={m}" if by_architecture(task) else f"{task} m={m}"


def full_name(settings: Mapping[str, Any]) -> str:
    """The name of a setting with what is unusual about its formula, networks and data.

    Args:
        settings: as `study.cell.Cell.to_dict` gives it.
    """
    name = setting_name(settings["task"], settings.get("m", 0), settings.get("architecture", ""))
    rules = [
        each
        for each, axis in _options(settings).items()
        if axis.said and (settings.get(each),) not in ((None,), axis.default)
    ]
    named = " ".join([name, *setting_words(settings, ["inference"])])
    return ", ".join([named, *setting_words(settings, [*UNUSUAL, *rules])])


def told_apart(name: str, settings: Mapping[str, Any], fields: Iterable[str]) -> str:
    """A name with some of the settings: ``digits m=10 [n=500, data 0123456789abcdef]``.

    Args:
        name: of the setting.
        settings, fields: see `setting_words`; without any, the name is enough.
    """
    words = setting_words(settings, fields)
    return f"{name} [{', '.join(words)}]" if words else name


def setting_words(settings: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Some of the settings in words: ``n=500``, ``data 0123456789abcdef``, ``momentum 0.5``.

    Args:
        settings: as `study.cell.Cell.to_dict` gives it.
        names: fields of `settings`; missing ones are left out.
    """
    texts = []
    for name in (name for name in names if name in settings):
        value = settings[name]
        if name == "budget":
            value = _budget(value["amount"], value["unit"], instances(settings["task"]))
        elif isinstance(value, list):
            few = len(value) <= _LISTED
            value = " ".join(map(str, value)) if few else f"({len(value)} values)"
        elif isinstance(value, dict):
            value = setting_text(value)
        form = _WORDS.get(name, f"{name.replace('_', ' ')} {{}}")
        if name in (options := _options(settings)) and options[name].said:
            form = options[name].said
        texts.append(form.format(value))
    return texts


def _options(settings: Mapping[str, Any]) -> Mapping[str, declared.Axis]:
    """The options of the task's data."""
    task = tasks.TASKS.get(settings.get("task", ""))
    return task.options if task else {}


def setting_text(value: Any) -> str:
    """A setting: a list with commas, several named ones as ``embedding 512, hidden 512``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def differences(names: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Fields of each setting that differ among the settings of its name.

    Args:
        names: one name a setting.
        settings: as `study.cell.Cell.to_dict` gives them.
    """
    of_name: dict[str, list[str]] = {}
    for own in set(names):
        first, *others = (each for name, each in zip(names, settings, strict=True) if name == own)
        fields = dict.fromkeys(field for each in (first, *others) for field in each)
        unlike = (f for f in fields if any(e.get(f) != first.get(f) for e in others))
        of_name[own] = [field for field in unlike if field not in _OF_A_CELL]
    return [of_name[name] for name in names]


def quantity(axis: Axis, noun: str = "mosaics") -> str:
    """What an axis measures; `noun` as `instances` gives it."""
    return {
        "flops": "training compute",
        "seconds": "measured training time",
        "mosaics": f"{noun} trained on",
    }[axis]


def made_equal(axis: Axis, noun: str = "mosaics") -> str:
    """What a comparison along an axis holds equal."""
    return {
        "flops": "equal training compute",
        "seconds": "equal training time",
        "mosaics": f"equal numbers of training {noun}",
    }[axis]


def metric_name(metric: str, threshold: float | None = None, task: str = "") -> str:
    """``SAIF``, or what people call the accuracy: ``accuracy``, of captions ``Bleu-4``.

    Args:
        metric: one of `METRICS`; another, as of recorded runs, keeps its name.
        threshold: of SAIF; said where it is not the task's own. None: the task's own.
        task: name of the task; empty: of mosaics.
    """
    if metric == "accuracy":
        return tasks.modality(task).score
    if metric != "saif":
        return metric.replace("_", " ")
    usual = threshold in (None, tasks.modality(task).saif_threshold)
    return "SAIF" if usual else f"SAIF at threshold {threshold:g}"


def score_name(*names: str) -> str:
    """What people call the accuracy of tasks: ``accuracy``; ``accuracy or Bleu-4`` of several."""
    return " or ".join(dict.fromkeys(tasks.modality(name).score for name in names or ("",)))


def lost_scores(*names: str, metrics: Iterable[str] = METRICS) -> str:
    """What a diverged cell of tasks counts as: ``SAIF 0 and accuracy 1/C``."""
    of_each = ([lost_score(metric, name) for name in names or ("",)] for metric in metrics)
    return listed([" or ".join(dict.fromkeys(texts)) for texts in of_each])


def lost_score(metric: str, task: str = "") -> str:
    """The same of one metric: ``SAIF 0``, ``accuracy 1/C``."""
    chance = metric == "accuracy" and tasks.modality(task).chance
    return f"{metric_name(metric, task=task)} {'1/C' if chance else 0}"


def amount(value: float, axis: Axis, noun: str = "mosaics") -> str:
    """``2.5e10 training FLOPs``, ``3.2 s of training``, ``65,664 mosaics``; ``-`` if not known."""
    if axis == "mosaics":
        return f"{value:,.0f} {noun}" if known(value) else "-"
    return f"{number(value)} {'s of training' if axis == 'seconds' else 'training FLOPs'}"


def share_of_budget(fraction: float, budget: float, unit: Axis, noun: str = "mosaics") -> str:
    """``10 % of the budget (4.9e9 training FLOPs)``: what the cells were given up to there.

    They spend up to a step less.

    Args:
        fraction: fraction of the budget.
        budget: budget of a cell, in units of `unit`, FLOPs or mosaics.
        unit: what the budget is counted in.
        noun: as `instances` gives it.
    """
    return f"{number(100 * fraction)} % of the budget ({amount(fraction * budget, unit, noun)})"


def _budget(value: int, unit: str, noun: str) -> str:
    """All digits of a budget: ``2e12 FLOPs``, ``2,048,000,001 FLOPs``, ``60,000 mosaics``."""
    if unit != "flops":
        return f"{value:,d} {noun}"
    return f"{number(value) if float(number(value)) == value else f'{value:,d}'} FLOPs"


def number(value: float) -> str:
    """Three significant digits: ``0.005``, ``1.25e12``; ``-`` if not finite."""
    if not known(value):
        return "-"
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def known(value: float) -> bool:
    """Whether a value is finite."""
    return not pd.isna(value) and math.isfinite(value)


def capital(text: str) -> str:
    """The text with a capital first letter: ``Accuracy``."""
    return text[:1].upper() + text[1:]


def listed(texts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def tally(counts: Mapping[Any, Any] | pd.Series) -> str:
    """``hard 6, soft 5``."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def level(confidence: float) -> str:
    """0.95 -> ``95 %``."""
    return f"{100 * confidence:g} %"


def span(counts: Iterable[int]) -> str:
    """``3``; ``3 to 6`` where counts differ; ``0`` without any."""
    found = [int(count) for count in counts]
    low, high = min(found, default=0), max(found, default=0)
    return f"{low}" if low == high else f"{low} to {high}"


def of_planned(count: str, planned: int) -> str:
    """``12``; ``6 of 12`` where some of the planned ones are missing."""
    return count if count == str(planned) else f"{count} of {planned}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table for the terminal, as lines."""
    return terminal.tabulated(header, rows, ruled=True)


def network_text(cell: Mapping[str, Any] | pd.Series) -> str:
    """Architecture, batch size and, where it is not float32, precision."""
    precision = "" if cell["precision"] == "float32" else f", {cell['precision']}"
    return f"{cell['architecture']}, batch {cell['batch_size']}{precision}"


def percent(fraction: float, digits: int = 1) -> str:
    """0.1234 -> ``12.3``; ``-`` if not finite."""
    return f"{round(100 * fraction, digits) + 0.0:.{digits}f}" if known(fraction) else "-"


def points(difference: float) -> str:
    """A difference in points (hundredths): 0.123 -> ``+12.3``; ``-`` if not finite."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}" if known(difference) else "-"


def three_decimals(value: float) -> str:
    """``0.123``; ``-`` if not finite."""
    return f"{value:.3f}" if known(value) else "-"


def interval(
    row: Mapping[Hashable, Any], metric: str, form: Callable[[float], str] = percent
) -> str:
    """``10.1 to 14.9``, by default in per cent, or why there is none."""
    if row["num_seeds"] < 2:
        return f"no interval (n={row['num_seeds']})"
    if known(row.get(f"{metric}_above", math.nan)):
        return learned(row, metric)
    return between(row[f"{metric}_low"], row[f"{metric}_high"], form)


def learned(row: Mapping[Hashable, Any], metric: str) -> str:
    """``11 of 12 learned (62 to 100 %)``: how many seeds, with an exact interval of the share."""
    count, n = int(row[f"{metric}_learned"]), int(row["num_seeds"])
    low, high = clopper_pearson(count, n)
    return f"{count} of {n} learned ({percent(low, 0)} to {percent(high, 0)} %)"


def interval_of_pair(row: Mapping[Hashable, Any]) -> str:
    """``+1.0 to +4.9``, in points, or why there is none."""
    if row["num_pairs"] == 0:
        return "no common seed"
    if row["num_pairs"] < 2:
        return f"no interval (n={row['num_pairs']})"
    if known(row.get("above", math.nan)):
        counts = f"{row['learned_first']:g} and {row['learned_second']:g}"
        return f"{counts} of {row['num_pairs']} learned"
    return between(row["low"], row["high"])


def between(low: float, high: float, form: Callable[[float], str] = points) -> str:
    """``+1.0 to +4.9``; ``-`` if an end is not finite."""
    return f"{form(low)} to {form(high)}" if known(low) and known(high) else "-"
