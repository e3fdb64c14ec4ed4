"""What limits the verdicts of a comparison, in plain sentences for the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pandas as pd

from analysis.comparison.report.data import share_sentences
from analysis.digest.choose import summarised_metrics
from analysis.digest.compare import Comparison
from analysis.digest.cut import EARLY
from analysis.digest.option_warnings import barred_sentences, edge_warnings
from analysis.digest.pairs import POWER, SCREENING
from analysis.groups import AXES
from analysis.rules.learning import guess
from analysis.rules.overstated import optimism
from analysis.rules.stages import given, interim
from analysis.rules.statistics import LEVEL, MIN_SEEDS, clopper_pearson
from analysis.words import (
    MANY,
    amount,
    capital,
    known,
    listed,
    lost_scores,
    made_equal,
    metric_name,
    of_draws,
    percent,
    span,
)
from study.terminal import counted

HIDDEN_FOREGROUND = "chosen by validation SAIF: uses the hidden foreground"
HEAVY_IMAGE = 0.25
"""Where one image has as much of what is wrong, 108 images may well lack one like it."""

_OF_TWO_SORTS = (
    "A mean of two sorts of seeds has no interval that can be trusted: beside it stands the share "
    "that learned."
)


def limits(comparison: Comparison) -> list[str]:
    """All of them, what weighs most first: whose seeds, which options, how many, what is open."""
    kinds: tuple[Callable[[Comparison], Sequence[str] | Iterator[str]], ...] = (
        unusual_cut,
        of_stages,
        _of_options,
        of_seeds,
        of_verdicts,
        share_sentences,
    )
    return [text for kind in kinds for text in kind(comparison)]


def tuned(comparison: Comparison) -> list[str]:
    """What was tuned and confirmed; nothing where there is one stage."""
    if not comparison.staged or comparison.summary.empty:
        return []
    rows = comparison.options
    rows = rows[~rows["paradigm"].isin(given(comparison.at_budget))]
    fresh = f"n={counted(span(comparison.summary['num_seeds']), 'fresh seed')}"
    if rows.empty:
        return [f"All numbers are of {fresh}: no option had to be tuned."]
    options = counted(len(rows), "option was", "options were")
    seeds = counted(span(rows["num_seeds"]), "seed")
    return [f"{options} tuned on {seeds}; all numbers are of the chosen ones on {fresh}."]


def of_stages(comparison: Comparison) -> list[str]:
    """Options that were chosen and tested on the same seeds, or are not confirmed yet."""
    if not comparison.staged:
        return _one_stage(comparison)
    texts = [
        f"{name} was not tuned: one of {count} options was chosen and tested on the same seeds."
        for name, count in given(comparison.at_budget).items()
        if count > 1
    ]
    if names := comparison.unconfirmed:
        options = f"option{'s' * (len(names) > 1)}"
        why = "Not confirmed yet"
        by = f" with --select {comparison.select}" * (comparison.select != "accuracy")
        then = f"Run the study again{by} to confirm the chosen {options}."
        if comparison.asked is not None or comparison.axis != "flops":
            why = f"Other {options} than the confirmed look best at this cut"
            then = "A study confirms what is best at its whole budget."
        texts.append(f"{why}, so without numbers: {listed(names)}. {then}")
    return texts


def _one_stage(comparison: Comparison) -> list[str]:
    """The optimism of a choice among several options on the seeds that test it, if any."""
    counts = comparison.choice["num_options"]
    if counts.max() < 2 or comparison.summary.empty:
        return []
    texts = ["Options were chosen and tested on the same seeds, so their numbers are optimistic."]
    n, most, fewest = comparison.summary["num_seeds"].min(), counts.max(), counts.min()
    if n >= 2:
        found = optimism(int(n), int(most), int(fewest))
        texts.append(
            f"The best of {most} equal options looks {found.sds:.1f} standard deviations of a run "
            f"too good with n={n}."
        )
        if found.false_verdicts > LEVEL:
            texts.append(
                f"A test at 5 % then tells equal paradigms with {most} and {fewest} options apart "
                f"in {100 * found.false_verdicts:.0f} % of studies."
            )
    return [" ".join([*texts, "Fresh seeds cure that."])]


def unusual_cut(comparison: Comparison) -> list[str]:
    """What must be said where cells are not cut at equal FLOPs, or SAIF is not the usual one."""
    texts = []
    asked, axis, noun = comparison.asked, comparison.axis, comparison.noun
    if axis != "flops":
        equal, usual = made_equal(axis, noun), made_equal("flops")
        where = f" ({comparison.where})" if comparison.where != equal else ""
        texts.append(f"Cells are cut at {equal}{where}, not at {usual}.")
    if asked is not None and (comparison.budget is None or comparison.budget < asked):
        most = comparison.summary[AXES[axis]].max() if len(comparison.summary) else None
        spent = f"; at most {amount(most, axis, noun)} are spent there" if most else ""
        texts.append(
            f"Asked for: {amount(asked, axis, noun)}. Cut at: {comparison.where}, the last that "
            f"all cells have of it{spent}."
        )
    reach = min(comparison.reach, math.inf if asked is None else asked)
    together = comparison.budget if comparison.recorded else None
    if together is not None and together < EARLY * reach < math.inf:
        between = "" if comparison.interpolated else " --interpolate compares between evaluations."
        texts.append(
            f"All runs go on to {amount(reach, axis, noun)}, but are cut at {comparison.where}, "
            "the last moment up to which all were measured on the test split. Leave out runs that "
            f"were not measured later.{between}"
        )
    if comparison.unconfirmed and not comparison.staged:
        names = listed(comparison.unconfirmed)
        texts.append(f"Without evaluations on the test split, so without numbers: {names}.")
    if comparison.interpolated:
        texts.append("Numbers are interpolated between the evaluations around the cut.")
    own = comparison.modality.saif_threshold
    if comparison.threshold != own:
        texts.append(f"SAIF is that of threshold {comparison.threshold:g}, not of {own:g}.")
    return texts


def _of_options(comparison: Comparison) -> list[str]:
    """Options that cannot be chosen, the edge of a grid, and a choice by what is hidden."""
    hidden = (comparison.choice["select"] == "saif").any()
    return [
        *barred_sentences(comparison.options, comparison.cells, comparison.select),
        *edge_warnings(comparison.options, comparison.choice),
        *([f"Options were {HIDDEN_FOREGROUND}."] if hidden else []),
    ]


def two_sorts(comparison: Comparison) -> list[str]:
    """``1 of 6 seeds of lvml never focused (SAIF below 5 %): ...``, where seeds fall apart."""
    summary, task, texts = comparison.summary, comparison.task, []
    for metric in summarised_metrics(summary) if len(summary) else ():
        name = metric_name(metric, task=task)
        floor = guess(task, metric, float(comparison.cells["num_classes"].max()))
        for row in summary[summary[f"{metric}_above"].notna()].to_dict("records"):
            above, reached = row[f"{metric}_above"], row[f"{metric}_given"]
            count = int(row["num_seeds"] - row[f"{metric}_learned"])
            behind = "never focused" if metric == "saif" else "never learned"
            text = (
                f"{count} of {row['num_seeds']} seeds of {row['paradigm']} "
                f"{behind if above == floor else 'stayed behind'} ({name} below "
                f"{percent(above, 0)} %)"
            )
            others = f"; the mean of the others is {percent(reached)} %" * known(reached)
            texts.append(f"{text}{others}.")
    return [*texts, *([_OF_TWO_SORTS] if texts else [])]


def of_seeds(comparison: Comparison) -> Iterator[str]:
    """Seeds that learned nothing, are lost or missing, and images that count for too much."""
    summary, task = comparison.summary, comparison.task
    if summary.empty:
        return
    metrics = summarised_metrics(summary)
    if "accuracy" in metrics and len(rows := summary[summary["accuracy_learned"] == 0]):
        yield f"No seed of {listed([*rows['paradigm']])} is beyond a guess."
    if "saif" in metrics and len(rows := summary[summary["saif_learned"] == 0]):
        floor = percent(guess(task, "saif", math.nan), 0)
        name = metric_name("saif", task=task)
        yield f"No seed of {listed([*rows['paradigm']])} focused ({name} below {floor} %)."
    learned = summary[[f"{metric}_learned" for metric in metrics]]
    all_learned = learned.eq(summary["num_seeds"], axis=0).any(axis=1)
    if all_learned.any() and (n := int(summary.loc[all_learned, "num_seeds"].min())) > 1:
        most = percent(clopper_pearson(0, n)[1], 0)
        every = "both" if n == 2 else f"all {n}"
        yield f"Where {every} seeds learned, up to {most} % of further ones may not."
    if (summary["num_diverged"] > 0).any():
        yield f"A diverged seed counts as {lost_scores(task, metrics=metrics)}."
    if summary[metrics].isna().any(axis=None):
        yield "A '-' is a number that is not known: a seed recorded no value (NaN)."
    if (summary["num_seeds"] < summary["most_seeds"]).any():
        yield "Seeds are missing where cells failed or have not run yet."
    for metric in metrics:
        column = f"{metric}_of_one_image"
        heavy = summary[summary[column].astype(float) >= HEAVY_IMAGE]
        for row in heavy.nlargest(1, column).to_dict("records"):
            gets = "wrong" if row[metric] > 0.5 else "right"
            text = (
                f"One image makes {percent(row[column], 0)} % of what {row['paradigm']} gets "
                f"{gets} in {metric_name(metric, task=task)}: with other images its mean may lie "
                "outside the interval."
            )
            yield of_draws(text, task)


def of_verdicts(comparison: Comparison) -> list[str]:
    """Few seeds, later ones, pairs that cannot be tested, and what deciding would take."""
    return [*pair_notes(comparison.paired), *undecided(comparison.paired)]


def pair_notes(paired: pd.DataFrame) -> list[str]:
    """Why pairs are undecided where their row does not show it, few seeds, and later ones.

    Args:
        paired: as `analysis.digest.pairs` gives it, of one comparison.
    """
    texts = [*_untested(paired)]
    enough = (paired["num_pairs"] >= MIN_SEEDS) & ~is_interim(paired)
    n = paired.loc[enough, "num_pairs"].min()
    if n < SCREENING:
        texts.append(
            f"n={n:g} seeds are few: this is a screening. A small difference that they decide is "
            "likely smaller than it looks."
        )
    later = paired[paired["later_seeds"] > 0] if "later_seeds" in paired else paired[:0]
    if len(later):
        texts.append(
            f"Seeds were added after a look at the first {span(later['num_pairs'])}. Verdicts "
            "stay those of the first, or they would be false more often than 5 times in 100. For "
            "another verdict, run fresh seeds into a directory of their own."
        )
    return texts


def is_interim(paired: pd.DataFrame) -> pd.Series:
    """Whether the planned seeds of each pair have not all ended, so that it has no verdict yet."""
    if "ended_seeds" not in paired:  # of kinds without a plan
        return pd.Series(False, index=paired.index)
    return paired["ended_seeds"].notna()


def so_far(early: pd.DataFrame) -> str:
    """``interim: 6 to 8 of 12 planned seeds``, of the rows that are interim."""
    return interim(span(early["ended_seeds"]), span(early["planned_seeds"]))


def _untested(paired: pd.DataFrame) -> Iterator[str]:
    early = is_interim(paired)
    if early.any():
        open_pairs = paired.loc[early, "first"] + "/" + paired.loc[early, "second"]
        which = "any pair" if early.all() else listed([*open_pairs.unique()])
        yield f"{capital(so_far(paired[early]))}: no verdict yet on {which}."
    rest = paired[(paired["verdict"] == "undecided") & ~early]
    untested = (rest["num_pairs"] < MIN_SEEDS) | rest[["p_holm", "seen_seeds"]].isna().any(axis=1)
    shown = rest["reason"].str.contains("after Holm")
    hidden = rest[~shown & (untested | (rest["p_holm"] < LEVEL))]
    for reason, rows in hidden.groupby("reason", sort=False):
        pairs: dict[str, list[str]] = {}
        for row in rows.to_dict("records"):
            name = metric_name(str(row["metric"]), task=str(row["task"]))
            pairs.setdefault(name, []).append(f"{row['first']}/{row['second']}")
        named = "; ".join(f"{metric} {', '.join(each)}" for metric, each in pairs.items())
        which = "every pair" if len(rows) == len(paired) else named
        yield f"Undecided: {which}: {reason}."


def undecided(paired: pd.DataFrame) -> list[str]:
    """What deciding the undecided pairs would take."""
    rows = paired[paired["verdict"] == "undecided"]
    by_images = rows["needed_seeds"].map(math.isinf) & (rows["image_se"] > 0)
    seeds, images = rows[rows["seen_seeds"].notna() & ~by_images], rows[by_images]
    if seeds.empty and images.empty:
        return []
    count = "1 verdict is" if len(rows) == 1 else f"{len(rows)} of {len(paired)} verdicts are"
    parts = [[f"{count} undecided, which does not mean equal."], _by_seeds(seeds)]
    if len(images):
        verb = "is" if len(images) == 1 else "are"
        parts.append(
            [f"{len(images)} {verb} limited by the test images: no number of seeds would decide."]
        )
    return [of_draws(" ".join(chain(*parts)), str(rows["task"].iloc[0]))]


def _by_seeds(rows: pd.DataFrame) -> Iterator[str]:
    if rows.empty:
        return
    within = rows.loc[rows["seen_seeds"] <= MANY, "seen_seeds"]
    take = f"{_up_to(within)} seeds" if len(within) else f"more than {MANY:,d} seeds"
    if 0 < len(within) < len(rows):
        beyond = len(rows) - len(within)
        take += f" for {len(within)} of them and more than {MANY:,d} for {beyond}"
    text = f"If differences and spreads are as large as they look, deciding takes {take}"
    far = rows.loc[rows["needed_seeds"] <= MANY, "needed_seeds"]
    if len(far):
        text += f"; if they are as large as their intervals allow, {_up_to(far)}"
    yield f"{text}, for a power of {100 * POWER:g} %."


def _up_to(numbers: pd.Series) -> str:
    most = math.ceil(numbers.max())
    return f"{most:,d}" if len(numbers) == 1 else f"up to {most:,d}"
