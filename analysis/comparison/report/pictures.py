"""The figures of one comparison with their captions."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.comparison.report.looks import gallery
from analysis.comparison.report.verdicts import sampled
from analysis.digest.choose import SCORE, SEEDS, STOPPED, UNSWITCHED, barred
from analysis.digest.compare import Comparison
from analysis.digest.means import common, heatmap_seeds, learning_curve, mean_heatmaps
from analysis.digest.responses import MAX_RATES, learning_rate_response, switch_response
from analysis.figures.curves import compute_figure
from analysis.figures.forest import forest_figure
from analysis.figures.heatmaps import heatmap_figure
from analysis.figures.response_figures import REFERENCES, learning_rate_figure, switch_figure
from analysis.figures.style import SMALL, by_paradigm, own_settings
from analysis.section.picture import Picture, file_stem
from analysis.words import (
    by_architecture,
    capital,
    level,
    listed,
    lost_score,
    metric_name,
    of_draws,
    of_planned,
    quantity,
    span,
    tally,
)

_LETTERS = 56  # of the name of a setting, on one line above a panel

_BARRED = {
    STOPPED: "censored seeds",
    UNSWITCHED: "not switched within the cut",
    SEEDS: "missing seeds",
    SCORE: "validation score not known",
}


def pictures(comparison: Comparison) -> list[Picture]:
    """Every figure that the comparison has the data for, in the order of the report.

    Left out are differences of fewer than two paradigms, missing heat maps, and responses to a
    single learning rate or switch point. Without any option that has numbers there is no picture.
    """
    of_options = _switch_points, _learning_rates
    return _drawn(comparison, (_differences, _heatmaps, _curves, *of_options, gallery))


def heat_map_pictures(comparison: Comparison) -> list[Picture]:
    """Its heat maps alone."""
    return _drawn(comparison, [_heatmaps])


def _drawn(
    comparison: Comparison, kinds: Iterable[Callable[[Comparison], Iterator[Picture]]]
) -> list[Picture]:
    if comparison.summary.empty:
        return []
    found = [picture for kind in kinds for picture in kind(comparison)]
    return (
        [_named(each, comparison) for each in found] if by_architecture(comparison.task) else found
    )


@own_settings()
def _named(picture: Picture, comparison: Comparison) -> Picture:
    """With the setting on it: of text, every figure is there once for each architecture."""
    if not picture.name.startswith("heatmaps"):  # whose panels have titles
        name = textwrap.fill(comparison.name, _LETTERS)
        panel = picture.figure.axes[0]
        panel.set_title(name, fontsize=SMALL, loc="left", parse_math=False)
    return picture


def _differences(comparison: Comparison) -> Iterator[Picture]:
    known = comparison.paired[comparison.paired["num_pairs"] > 0]
    for metric, paired in known.groupby("metric", sort=False):
        of_pairs = {}
        for first, second in zip(paired["first"], paired["second"], strict=True):
            rows = comparison.tested(first, second).query("split == 'test'")
            scores = rows.pivot(index="seed", columns="paradigm", values=metric)
            of_pairs[first, second] = scores[first] - scores[second]
        seeds = pd.concat(of_pairs, names=["first", "second"]).dropna().rename("difference")
        name, over = comparison.names[str(metric)], listed(sampled(paired))
        n = of_planned(span(paired["num_pairs"]), max(_planned(comparison).values()))
        yield Picture(
            name=file_stem("differences", str(metric)),
            title=f"Paired differences in {name}",
            caption=(
                f"Differences of {name} on the test split, in percentage points "
                f"(n={n}). Right of 0 the first is better. Circle: mean "
                "over the seeds that both paradigms have, full where the verdict is decided, "
                "which holds for all pairs together (Holm over the study). Line: "
                f"{level(paired['confidence'].iloc[0])} interval of the pair by itself, over "
                f"{of_draws(over, comparison.task)}. Dots: each seed."
            ),
            figure=forest_figure(paired, seeds.reset_index(), comparison.threshold),
        )


def _heatmaps(comparison: Comparison) -> Iterator[Picture]:
    chosen, choice, threshold = comparison.chosen, comparison.choice, comparison.threshold
    task, counted = comparison.task, comparison.modality.counted
    name = metric_name("saif", threshold, task)
    splits = ("test", "validation", "train")
    of_split = {split: mean_heatmaps(chosen, choice, split) for split in splits}
    if of_split["train"] and not comparison.modality.partly:
        del of_split["validation"]  # it is as the test split
    for split, heatmaps in of_split.items():
        if not heatmaps:
            continue
        counts = heatmap_seeds(chosen, choice, split)
        planned = _planned(comparison)
        seeds = {p: of_planned(str(n), planned.get(p, n)) for p, n in counts.items()}
        yield Picture(
            name=f"heatmaps-{split}",
            title=f"Focus-prediction heat maps, {split} split",
            caption=(
                "Joint distribution of the attention on the true foreground a_z and the score "
                f"of the true class s_y on the {split} split, in % of the {counted}; "
                f"outlined: {name}. Mean over the seeds of the chosen option, n: {tally(seeds)}; "
                f"diverged seeds have no heat map.{_missing('heat map', comparison, heatmaps)}"
            ),
            figure=heatmap_figure(heatmaps, threshold, seeds, task),
        )


def _curves(comparison: Comparison) -> Iterator[Picture]:
    confidence = float(comparison.summary["confidence"].iloc[0])
    axis = quantity(comparison.axis, comparison.noun)
    ends = comparison.chosen[comparison.chosen["split"] == "test"]
    for metric in comparison.metrics:
        name = comparison.names[metric]
        whole = learning_curve(comparison.evaluations, metric, "test", confidence, comparison.axis)
        lines = by_paradigm(common(whole))
        if not lines:
            continue
        floor, planned = lost_score(metric, comparison.task), _planned(comparison)
        most = {p: int(line["num_cells"].max()) for p, line in lines.items()}
        seeds = {p: of_planned(str(n), planned.get(p, n)) for p, n in most.items()}
        early = sum(map(len, lines.values())) < len(whole)
        cut = " A line ends where a seed has no evaluation." if early else ""
        yield Picture(
            name=file_stem("compute", metric),
            title=f"{capital(name)} against {axis}",
            caption=(
                f"{capital(name)} on the test split against {axis}. Mean over the seeds of the "
                f"chosen option, n: {tally(seeds)}"
                f"; bands: {level(confidence)} interval over seeds alone (from n=2); dots: each "
                "seed at the end. The axis shows what lies between the second evaluation and the "
                "last; lines from before it, and wide bands, are cut. A diverged seed "
                f"counts as {floor} from its first missing evaluation on."
                f"{cut}{_missing('line', comparison, lines)}"
            ),
            figure=compute_figure(
                *(whole, metric, ends, comparison.axis),
                *(comparison.threshold, comparison.task, planned),
            ),
        )


def _switch_points(comparison: Comparison) -> Iterator[Picture]:
    response = switch_response(comparison.at_budget, comparison.options, comparison.select)
    if response["switch_point"].nunique() < 2:
        return
    choice = comparison.choice
    levels = choice[choice["paradigm"].isin(REFERENCES)]
    beside = ""
    if len(levels):
        beside = f" Horizontal: the chosen option of {listed(list(levels['paradigm']))}."
    for metric in comparison.metrics:
        name = comparison.names[metric]
        yield Picture(
            name=file_stem("switch-point", metric),
            title=f"{capital(name)} against the switch point",
            caption=(
                f"{capital(name)} on the validation split against the switch point. Of each "
                f"switch point the best learning rates: {_seeds(response)}"
                f"{_unmarked(response, comparison)}{beside}"
            ),
            figure=switch_figure(response, choice, metric, comparison.threshold),
        )


def _learning_rates(comparison: Comparison) -> Iterator[Picture]:
    response = learning_rate_response(comparison.at_budget, comparison.options, comparison.select)
    if response["lr"].nunique() < 2:
        return
    tried = comparison.options["lr"].nunique()
    phase = " (of the first phase)" if comparison.options["switch_point"].notna().any() else ""
    of_each = f"Of each learning rate{phase} the best option"
    if tried > MAX_RATES:
        of_each = (
            f"Of each of {MAX_RATES} equal parts of the range of the {tried} learning rates "
            f"tried{phase} the best option"
        )
    for metric in comparison.metrics:
        name = comparison.names[metric]
        yield Picture(
            name=file_stem("learning-rate", metric),
            title=f"{capital(name)} against the learning rate",
            caption=(
                f"{capital(name)} on the validation split against the learning rate. {of_each}: "
                f"{_seeds(response)}{_unmarked(response, comparison)}"
            ),
            figure=learning_rate_figure(response, metric, comparison.threshold),
        )


def _unmarked(response: pd.DataFrame, comparison: Comparison) -> str:
    """Says of a response where it has no score, and why if that is the same everywhere."""
    without = response[response["num_seeds"] == 0]
    if without.empty:
        return ""
    marks = "1 mark is" if len(without) == 1 else f"{len(without)} marks are"
    reasons = barred(comparison.options, comparison.select)
    found = set(reasons[comparison.options["paradigm"].isin(without["paradigm"])]) - {""}
    why = f" ({_BARRED[found.pop()]})" if len(found) == 1 else ""
    return f" {marks} missing where no option can be chosen{why}."


def _planned(comparison: Comparison) -> dict[str, int]:
    """Paradigm -> how many seeds it was to have; one with nothing at the budget is absent."""
    summary = comparison.summary
    return dict(zip(summary["paradigm"], summary["most_seeds"], strict=True))


def _seeds(response: pd.DataFrame) -> str:
    seeds = response["num_seeds"]
    return (
        "mean, lowest and highest of the seeds that options were chosen by "
        f"(n={span(seeds[seeds > 0])}); filled: chosen."
    )


def _missing(what: str, comparison: Comparison, shown: Mapping[str, Any]) -> str:
    """Names the paradigms of the summary that a figure cannot show."""
    absent = [name for name in comparison.summary["paradigm"] if name not in shown]
    return f" No {what}: {', '.join(absent)}." if absent else ""
