"""Comparisons as sections of the report, and the chapter they make: answer, limits, method."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analysis.comparison.across.across_blocks import across_blocks, effect_blocks
from analysis.comparison.across.family_pictures import family_pictures
from analysis.comparison.report.answer import answer, lone_paradigm
from analysis.comparison.report.comparison_blocks import ANSWERING, comparison_blocks
from analysis.comparison.report.data import data_notes, said_once
from analysis.comparison.report.exported_tables import (
    across_tables,
    cell_rows,
    comparison_tables,
    for_papers,
)
from analysis.comparison.report.limits import limits, tuned, two_sorts
from analysis.comparison.report.pictures import heat_map_pictures, pictures
from analysis.comparison.report.summaries import group_summaries
from analysis.comparison.report.table_one import (
    names_of,
    table_one_notes,
    table_one_rows,
)
from analysis.comparison.report.tables import chosen_text, comparison_cells, setting_text
from analysis.comparison.report.verdicts import over_what, pair_cells, sampled
from analysis.digest.across.factors import families, setting_names
from analysis.digest.across.order import count_sentences
from analysis.digest.claims import claims
from analysis.digest.compare import Comparison, compare_results, metrics_of
from analysis.groups import is_compared
from analysis.rules.claim import Claim, tallied
from analysis.rules.stages import cells_left
from analysis.section.blocks import Block, Details, Heading, Points, Shown, Table, Text
from analysis.section.picture import Picture
from analysis.section.section import Chapter, Question
from analysis.words import aligned, instances, listed, lost_scores, of_draws
from study import tasks, terminal
from study.results import Results
from study.terminal import counted
from study.tracking.runs import Run

LIMITS = "What limits this"

_OF_BUDGETS = (
    "Equal compute: all cells of a comparison are cut at one fraction of their budget, where "
    "their compute differs by less than a step. Where something else is made equal, values are "
    "taken between the evaluations around one amount of it."
)
_OF_RECORDED = (
    "Equal compute: recorded runs have no budget. They are cut at the amount that all of a "
    "comparison have spent, where values are taken between their evaluations."
)
_METHOD = (
    "A diverged cell counts as {lost}.",
    "Choice: {options} of each paradigm by the mean over seeds on validation {noun}, on the seeds "
    "that tune where there are such. All other numbers are of the test {noun}, on the seeds that "
    "confirm.",
    "Intervals, 95 %: {intervals}. Those of shares are on the logit scale.",
    "Verdicts: paired by seed{instance}. Better means: not of one law, and higher on average in "
    "these seeds. A pair is decided if there are at least 6 common seeds, the test holds after "
    "Holm's correction over all tests of its study here (p < 0.05), and so does the exact "
    "sign-flip test of its seeds, uncorrected. Where seeds fall apart into those that learned and "
    "those that did not, the mean has no interval; how often each learned is told, and decides "
    "nothing. No verdict is given before the planned seeds have ended, nor where fewer than 4 "
    "degrees of freedom say how much test images differ.",
)
_BY_IMAGE = (
    "of {scores} and their differences over {factors}, all as samples, where that is recorded of "
    "each instance; else, and of all other numbers, t intervals over seeds"
)

MOST_IN_FULL = 6
"""Comparisons of one report that show all of their figures: of more, a page would be too large."""


class Comparisons(Chapter["Compared"]):
    """Asks which paradigm is better at equal compute, and answers it."""

    name = about = "Attention at equal compute"
    compares = has_published = True

    def names(self, sections: Sequence[Compared]) -> dict[Compared, str]:
        """What tells each setting from the base, which comes first."""
        of = {section.comparison: section for section in sections}
        return {of[each]: name for each, name in setting_names(_of(sections)).items()}

    def answer(self, sections: Sequence[Compared]) -> list[str]:
        """Who beats whom, in each setting or, of many, in how many; and how much is left."""
        said = count_sentences if _are_many(sections) else answer
        left = self.cells_left(sections)
        more = counted(left, "planned cell is", "planned cells are")
        return [*said(_of(sections)), *[f"{more} left."] * bool(left)]

    def cells_left(self, sections: Sequence[Compared]) -> int:
        return sum(cells_left(each.cells, each.choice) for each in _of(sections))

    def head(
        self,
        sections: Sequence[Compared],
        shown: Mapping[Compared, Sequence[Shown]],
        published: bool,
    ) -> list[Block]:
        """The answer: a sentence, a table, the figure of differences; then what limits it."""
        found = _of(sections)
        blocks: list[Block] = [Text(text, "lead") for text in self.answer(sections)]
        definition = [Text(text, "quiet") for text in _saif(found)]
        if _are_many(sections):
            blocks += definition
        else:
            settings = [setting_text(each) for each in found if len(each.summary)]
            alone = len(settings) == 1
            blocks += [Text(text, "quiet") for text in settings if alone]
            blocks += _answer_tables(found, published)
            if sorts := said_once(found, two_sorts):
                blocks.append(Text(" ".join(sorts), "warning"))
            blocks += [*definition, *_differences(shown)]
            basis = said_once(found, _basis)
            if alone:
                blocks.append(Text(" ".join(basis), "quiet"))
            elif settings:
                blocks.append(Details("What these numbers are of", [Points([*settings, *basis])]))
        if limiting := said_once(found, limits):
            blocks += [Heading(LIMITS, 2), Points(limiting)]
        return blocks

    def pictures(self, sections: Sequence[Compared]) -> list[Picture]:
        """What the settings of each task change."""
        of_families = (family_pictures(family) for family in families(_of(sections)))
        return [*itertools.chain(*of_families)]

    def across(self, sections: Sequence[Compared], shown: Sequence[Shown]) -> list[Block]:
        """Which settings vary, what that changes, and whether verdicts hold in all of them."""
        return across_blocks(_of(sections), shown)

    def tail(self, sections: Sequence[Compared]) -> list[Block]:
        """The paper's table; effects of the settings, the data, and how all was computed."""
        found = _of(sections)
        blocks: list[Block] = []
        if not all(each.recorded for each in found):
            blocks += [
                Heading("In the layout of the paper's Table 1", 2),
                Table(*table_one_rows(found), csv="table1.csv"),
                Details(
                    "What stands in brackets, and what differs from the paper",
                    [Points(table_one_notes(found))],
                ),
            ]
        data = [Details("Data", [Points(notes)])] if (notes := data_notes(found)) else []
        return [
            *blocks,
            *effect_blocks(found),
            *data,
            Details("How this was computed", [*map(Text, _method(found))]),
        ]

    def tables(self, sections: Sequence[Compared]) -> dict[str, pd.DataFrame]:
        """Each table with the rows of all comparisons."""
        found = _of(sections)
        return comparison_tables(found) | across_tables(found)

    def papers(self, sections: Sequence[Compared]) -> dict[str, str]:
        """Table 1 and the paired differences."""
        return for_papers(_of(sections))


COMPARISONS = Comparisons()


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison as a section of the report; see `analysis.section.section.Section`.

    Attributes:
        comparison: the comparison.
        num_settings: how many its page has.
    """

    comparison: Comparison
    num_settings: int = 1

    @property
    def one_of_many(self) -> bool:
        """Whether its page has so many that it shows no figures but heat maps."""
        return self.num_settings > MOST_IN_FULL

    @property
    def chapter(self) -> Comparisons:
        return COMPARISONS

    @property
    def title(self) -> str:
        return self.comparison.name

    @property
    def key(self) -> str:
        return self.comparison.key

    @property
    def cells(self) -> pd.DataFrame:
        return self.comparison.cells

    @property
    def labels(self) -> dict[str, object]:
        comparison = self.comparison
        return {
            "task": comparison.task,
            "m": comparison.m,
            "architecture": comparison.architecture,
            "comparison_id": comparison.id,
            "axis": comparison.axis,
            "threshold": comparison.threshold,
        }

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """C1 to C6, C16 and C17."""
        return claims(self.comparison)

    @functools.cached_property
    def pictures(self) -> list[Picture]:
        """Its figures; an empty list where nothing can be compared."""
        drawn = heat_map_pictures if self.one_of_many else pictures
        return drawn(self.comparison)

    def text(self, published: bool = False) -> str:
        """The table, its differences, and what limits them, as the page has them."""
        comparison = self.comparison
        parts: list[Iterable[str]] = []
        if len(comparison.summary):
            table = aligned(*comparison_cells(comparison, published))
            notes = map(terminal.sentence, two_sorts(comparison))
            parts += [[terminal.sentence(setting_text(comparison)), "", *table, *notes]]
        if not lone_paradigm(comparison):
            over = terminal.sentence(over_what(comparison.paired))
            parts.append([*aligned(*pair_cells(comparison)), over])
        parts.append(map(terminal.sentence, _basis(comparison)))
        if limiting := limits(comparison):
            points = [terminal.sentence(f"- {each}", "  ") for each in limiting]
            parts.append([f"{LIMITS}:", *points])
        parts.append([terminal.sentence(tallied(self.claims))])
        return "\n\n".join(filter(None, map("\n".join, parts)))

    def tables(self) -> dict[str, pd.DataFrame]:
        comparison = self.comparison
        return {
            "summary": comparison.summary,
            "paired": comparison.paired,
            "options": comparison.options,
        }

    def cell_rows(self) -> pd.DataFrame:
        return cell_rows(self.comparison)

    def blocks(self, shown: Sequence[Shown], results: str, published: bool = False) -> list[Block]:
        in_full = not self.one_of_many
        return comparison_blocks(self.comparison, self.claims, shown, results, in_full)

    def summaries(self) -> list[Run]:
        alone = self.num_settings == 1
        return group_summaries(self.comparison, self.tables(), lambda: self.pictures, alone)


def mine(cells: pd.DataFrame) -> pd.Series:
    """Whether each row belongs to a comparison; see `analysis.section.section.Kind`."""
    return is_compared(cells)


def find(results: Results, cell_ids: Collection[str], question: Question) -> list[Compared]:
    """Every comparison; see `analysis.section.section.Kind`."""
    found = compare_results(
        results,
        cell_ids=cell_ids,
        budget=question.budget,
        select=question.select,
        axis=question.axis,
        threshold=question.threshold,
        interpolate=question.interpolate,
        test=question.test,
    )
    return [Compared(comparison, len(found)) for comparison in found]


def _answer_tables(found: Sequence[Comparison], published: bool) -> list[Table]:
    """One table of all comparisons, or where their columns differ, several."""
    rows: dict[tuple[str, ...], list[list[str]]] = {}
    for comparison in (each for each in found if len(each.summary)):
        header, mine = comparison_cells(comparison, published)
        if len(found) > 1:
            names = [comparison.name, *[""] * len(mine)]
            header = ["setting", *header]
            mine = [[name, *row] for name, row in zip(names, mine, strict=False)]
        rows.setdefault(tuple(header), []).extend(mine)
    left = range(1 + (len(found) > 1))
    return [
        Table(header, mine, left, wrap=left[:-1], csv="comparison.csv")
        for header, mine in rows.items()
    ]


def _differences(shown: Mapping[Compared, Sequence[Shown]]) -> list[Block]:
    """The figures of differences; of several comparisons, named; how to read them, once."""
    found = [
        replace(each, title=f"{each.title}, {section.title}") if len(shown) > 1 else each
        for section, of_section in shown.items()
        for each in of_section
        if each.name.startswith(ANSWERING)
    ]
    # Their first sentence is their own; what stands below most of them is said below all.
    parts = [each.caption.partition(". ") for each in found]
    shared, count = Counter(rest for *_, rest in parts).most_common(1)[0] if parts else ("", 0)
    if count < 2:
        return [*found]
    short = [
        replace(each, caption=f"{own}.") if rest == shared else each
        for each, (own, _, rest) in zip(found, parts, strict=True)
    ]
    return [*short, Text(shared, "quiet")]


def _basis(comparison: Comparison) -> list[str]:
    """What the numbers of a comparison are of, in sentences; none without numbers."""
    if comparison.summary.empty:
        return []
    had_options = comparison.summary["num_options"].max() > 1
    chosen = [chosen_text(comparison)] if had_options or not comparison.recorded else []
    return [*chosen, *tuned(comparison)]


def _method(found: Sequence[Comparison]) -> list[str]:
    """How all was computed, a paragraph each."""
    recorded = {each.recorded for each in found}
    most = max(found, key=lambda each: len(sampled(each.paired)))
    factors, scores = sampled(most.paired), ", ".join(names_of(found))
    by_image, over = len(factors) > 1, of_draws(listed(factors), most.task)
    of_shares = _BY_IMAGE.format(scores=scores, factors=over)
    words = {
        "noun": _noun(found),
        "lost": lost_scores(*(each.task for each in found), metrics=metrics_of(found)),
        "options": "learning rate and switch point" if False in recorded else "one option",
        "intervals": of_shares if by_image else "t intervals over seeds",
        "instance": " and test instance" if by_image else "",
    }
    of_cuts = {False: _OF_BUDGETS, True: _OF_RECORDED}
    texts = [of_cuts[each] for each in sorted(recorded)]
    return [*texts, *(text.format(**words) for text in _METHOD)]


def _are_many(sections: Sequence[Compared]) -> bool:
    return any(section.one_of_many for section in sections)


def _of(sections: Sequence[Compared]) -> list[Comparison]:
    return [section.comparison for section in sections]


def _saif(found: Sequence[Comparison]) -> list[str]:
    """What SAIF is: a sentence for what is classified, and one of each other modality."""
    found = [each for each in found if "saif" in each.metrics]
    if found and all(each.recorded for each in found):
        return ["SAIF is as the runs recorded it."]
    classified = [each for each in found if not each.modality.saif_text]
    texts = []
    if classified:
        at = f"\u2265 {classified[0].threshold:g}"
        texts.append(
            f"SAIF is the share of test {_noun(classified)} with attention on the true "
            f"foreground{_foreground(classified)} a_z {at} and score of the true class s_y {at}."
        )
    texts += dict.fromkeys(
        each.modality.saif_text.format(at=f"\u2265 {each.threshold:g}")
        for each in found
        if each.modality.saif_text
    )
    return texts


def _foreground(found: Sequence[Comparison]) -> str:
    """What the foreground is, where that needs words; with several modalities, in each."""
    known = dict.fromkeys(tasks.modality(comparison.task) for comparison in found)
    of = {each: f"of {each.noun} " if len(known) > 1 else "" for each in known}
    return "".join(f", {of[each]}{each.foreground}," for each in known if each.foreground)


def _noun(found: Sequence[Comparison]) -> str:
    return instances(*(comparison.task for comparison in found))
