"""What stands above and below comparisons: question, answer, method."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.comparison.compare import Comparison
from analysis.comparison.report.answer import QUESTION, answer
from analysis.comparison.report.rationales import data_notes, share_notes
from analysis.comparison.report.table_one import flat_header, table_one_cells, table_one_notes
from analysis.section.blocks import Block, Heading, Table, Text
from analysis.words import instances, made_equal

_METHOD = (
    "Equal compute: all cells of a comparison are cut at one fraction of their budget, where "
    "their compute differs by less than a step. Where something else is made equal, values are "
    "taken between the evaluations around one amount of it. A diverged cell counts as SAIF 0 and "
    "accuracy 1/C.",
    "Choice: learning rate and switch point of each paradigm by the mean over seeds on "
    "validation {noun}; all numbers are of the test {noun}.",
    "Intervals: over seeds, 95 %. Means have t intervals, interquartile means a bootstrap over "
    "seeds.",
    "Verdicts: paired by seed. A pair is decided if the paired t test holds after Holm's "
    "correction over the table (p < 0.05), a bootstrap that repeats the choice of learning rate "
    "and switch point agrees, and there are at least 6 common seeds; else it is undecided. "
    "'Seeds to decide' is the number at which the test would have 80 % power for the difference "
    "seen. P(first higher) is the share of all pairs of seeds in which the first paradigm scores "
    "higher, a tie counting half.",
)


_FOREGROUND = {
    "mosaics": "",
    "posts": ", the tokens of the rationale",
    "instances": ", of posts the tokens of the rationale",
}


def tail(found: Sequence[Comparison]) -> list[Block]:
    """What concerns all comparisons: the paper's table, the data, how all was computed."""
    if not found:
        return []
    header, rows = table_one_cells(found)
    data = data_notes(found)
    noun = _noun(found)
    return [
        Heading("In the layout of the paper's Table 1", 2, "table-1"),
        Table(flat_header(header), rows),
        *(Text(note, "quiet") for note in table_one_notes(found)),
        *([Heading("Data", 2, "data")] if data else []),
        *(Text(text) for text in data),
        Heading("How this was computed", 2, "method"),
        *(Text(text.replace("{noun}", noun)) for text in _METHOD),
    ]


def question(found: Sequence[Comparison]) -> list[Block]:
    if not found:
        return []
    threshold, noun = found[0].threshold, _noun(found)
    explanation = (
        f"SAIF is the share of test {noun} that are classified rightly and confidently while "
        f"attention rests confidently on the true foreground{_FOREGROUND[noun]}: attention on "
        f"the foreground a_z \u2265 {threshold:g} and score of the true class "
        f"s_y \u2265 {threshold:g}. The paradigms are compared at "
        f"{made_equal(found[0].axis, noun)}; intervals are over seeds."
    )
    return [
        Heading("Question", 2),
        Text(QUESTION, "lead"),
        Heading("Answer", 2),
        *(Text(sentence, "lead") for sentence in answer(found)),
        *(Text(text, "quiet") for text in (explanation, *share_notes(found))),
    ]


def _noun(found: Sequence[Comparison]) -> str:
    return instances(*(comparison.task for comparison in found))
