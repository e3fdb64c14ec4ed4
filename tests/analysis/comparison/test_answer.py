"""The answer's three sentences: they say what the verdicts say, and no more."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison.compare import Comparison
from analysis.comparison.paired import PAIRED_COLUMNS, SAME_EVERYWHERE
from analysis.comparison.report.answer import answer, question
from analysis.words import setting_name
from study.tasks import modality

PARADIGMS = ("hard", "soft", "hybrid", "lvml")
GLOSS = (
    "measured by SAIF (the share of instances classified rightly and confidently while attention "
    "rests confidently on the right place), "
)


def pair(
    first: str,
    second: str,
    verdict: str = "undecided",
    size: float = 0.0,
    *,
    metric: str = "saif",
    n: int = 12,
    needed: float = 30.0,
) -> dict[str, Any]:
    """A row of `paired`; `size` is first - second, its interval half as wide to either side."""
    half = abs(size) / 2
    return {
        **dict.fromkeys(PAIRED_COLUMNS, math.nan),
        "task": "digits",
        "metric": metric,
        "first": first,
        "second": second,
        "num_pairs": n,
        "difference": size,
        "low": size - half,
        "high": size + half,
        "verdict": verdict,
        "reason": "p=0.2 after Holm" if verdict == "undecided" else "",
        "seeds_to_decide": needed,
        "confidence": 0.95,
    }


def comparison(
    pairs: Sequence[dict[str, Any]],
    task: str = "digits",
    m: int = 10,
    axis: str = "flops",
    paradigms: Sequence[str] = PARADIGMS,
    select: str = "accuracy",
    comparison_id: str = "0123456789abcdef",
) -> Comparison:
    """What the answer reads of a comparison."""
    made = SimpleNamespace(
        name=setting_name(task, m, "mlp"),
        task=task,
        modality=modality(task),
        m=m,
        axis=axis,
        cells=pd.DataFrame({"comparison_id": [comparison_id]}),
        choice=pd.DataFrame({"paradigm": list(paradigms), "select": select}),
        paired=pd.DataFrame(pairs, columns=PAIRED_COLUMNS),
    )
    return cast(Comparison, made)


def in_accuracy(pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "metric": "accuracy"} for each in pairs]


# --- one comparison


def test_one_comparison_gives_differences_in_points() -> None:
    pairs = [
        pair("soft", "hard", "worse", -0.03),
        pair("lvml", "hard", "better", 0.08),
        pair("lvml", "soft", "better", 0.1),
        *in_accuracy(
            [pair("soft", "hard"), pair("lvml", "hard", "better", 0.02), pair("lvml", "soft")]
        ),
    ]
    assert answer([comparison(pairs)]) == [
        f"At equal training compute, {GLOSS}lvml is better than hard by 8.0 points (95 % interval "
        "4.0 to 12.0) and than soft by 10.0 points (5.0 to 15.0); hard is better than soft by "
        "3.0 points (1.5 to 4.5).",
        "Measured by accuracy, lvml is better than hard by 2.0 points (95 % interval 1.0 to 3.0); "
        "soft against hard and lvml against soft are undecided.",
        "The verdicts rest on n=12 common seeds; 2 of 6 are undecided: it would take about 30 "
        "seeds for soft against hard in accuracy and about 30 seeds for lvml against soft in "
        "accuracy, at 80 % power of the t test for the differences seen.",
    ]


def test_a_decided_table_says_so() -> None:
    pairs = [pair("soft", "hard", "better", 0.1)]
    both = [*pairs, *in_accuracy(pairs)]
    assert answer([comparison(both)])[2] == (
        "The verdicts rest on n=12 common seeds, and both are decided."
    )
    assert answer([comparison(pairs)])[1] == "Measured by accuracy, nothing was measured."


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ("flops", "At equal training compute, "),
        ("seconds", "At equal training time, "),
        ("mosaics", "At equal numbers of training mosaics, "),
    ],
)
def test_the_axis_is_named(axis: str, words: str) -> None:
    assert answer([comparison([pair("soft", "hard")], axis=axis)])[0].startswith(words)


def test_a_choice_by_the_hidden_foreground_is_named() -> None:
    first, *_ = answer([comparison([pair("soft", "hard")], select="saif")])
    assert "with options chosen by the hidden foreground" in first


# --- how sure


def test_with_few_seeds_nothing_is_decided() -> None:
    pairs = [pair("soft", "hard", n=3, needed=14.0)]
    *_, sure = answer([comparison(pairs)])
    assert sure == (
        "Nothing is decided, because fewer than 6 seeds (n=3) decide nothing; it would take about "
        "14 seeds for soft against hard in SAIF, at 80 % power of the t test for the differences "
        "seen."
    )
    pairs = [pair("soft", "hard", n=3, needed=2.4)]
    assert "about 6 seeds" in answer([comparison(pairs)])[2]  # never fewer than decide anything


def test_one_seed_has_no_interval() -> None:
    *_, sure = answer([comparison([pair("soft", "hard", n=1, needed=math.nan)])])
    assert sure == (
        "Nothing is decided, because one seed (n=1) has no interval: run at least 6 seeds a "
        "paradigm."
    )
    *_, sure = answer([comparison([pair("soft", "hard", n=0, needed=math.nan)])])
    assert "no two paradigms have a seed in common" in sure


def test_what_more_seeds_alone_do_not_decide_is_said() -> None:
    pairs = [
        pair("soft", "hard", needed=8.0),  # has 12
        pair("hybrid", "hard", needed=math.inf),
        pair("hybrid", "soft", needed=math.nan) | {"reason": SAME_EVERYWHERE},
        pair("lvml", "soft", needed=1e6),
    ]
    *_, sure = answer([comparison(pairs)])
    assert "all 4 are undecided: it would take more than 10,000 seeds for lvml against" in sure
    assert "1 is undecided not for want of seeds alone" in sure
    assert "1 is undecided because no difference is seen" in sure
    assert f"1 is undecided because {SAME_EVERYWHERE}" in sure
    assert "about" not in sure


def test_many_undecided_pairs_give_a_range() -> None:
    pairs = [
        pair(b, a, needed=20.0 + 10 * i) for i, (a, b) in enumerate(combinations(PARADIGMS, 2))
    ]
    first, _, sure = answer([comparison(pairs)])
    assert first.endswith(
        "no paradigm is shown to be better than another: all 6 pairs are undecided."
    )
    assert (
        "from about 20 seeds (soft against hard in SAIF) to about 70 (lvml against hybrid" in sure
    )


# --- nothing to compare


@pytest.mark.parametrize(
    ("paradigms", "words"),
    [(["soft"], "Only soft was run to a result"), ([], "No paradigm has an option")],
)
def test_one_paradigm_leaves_nothing_to_compare(paradigms: list[str], words: str) -> None:
    sentences = answer([comparison([], paradigms=paradigms)])
    assert len(sentences) == 3
    assert sentences[0].startswith(words)
    assert "run at least two paradigms" in sentences[2]
    assert "better" not in " ".join(sentences)


def test_an_answer_needs_a_comparison() -> None:
    with pytest.raises(ValueError, match="at least one comparison"):
        answer([])


# --- several comparisons


def test_several_comparisons_are_counted_and_named() -> None:
    verdicts = {5: "better", 10: "better", 20: "worse", 40: "undecided"}
    found = [
        comparison([pair("lvml", "soft", verdict, -0.1 if verdict == "worse" else 0.1)], m=m)
        for m, verdict in verdicts.items()
    ]
    first, _, sure = answer(found)
    assert first == (
        f"At equal training compute in 4 settings, {GLOSS}lvml is better than soft in 2 of 4 "
        "(digits m=5 and digits m=10), worse in 1 of 4 (digits m=20) and undecided in 1 of 4 "
        "(digits m=40)."
    )
    assert "1 of 4 is undecided: it would take about 30 seeds for lvml against soft" in sure
    assert "digits m=40" in sure


def test_a_pair_is_counted_where_both_were_run() -> None:
    found = [
        comparison([pair("soft", "hard", "better", 0.1), pair("lvml", "hard", "better", 0.1)]),
        comparison([pair("soft", "hard", "better", 0.1)], m=5),
        comparison([], m=20, paradigms=["soft"]),
    ]
    first, *_ = answer(found)
    assert "in 3 settings" in first
    assert "soft is better than hard in both settings" in first
    assert "lvml is better than hard in the one setting that has both, digits m=10" in first


def test_settings_with_one_name_are_told_apart() -> None:
    verdicts = ["better", "undecided"]
    found = [
        comparison([pair("soft", "hard", each, 0.1)], comparison_id=f"{i}abcdef0123456789")
        for i, each in enumerate(verdicts)
    ]
    first, *_ = answer(found)
    assert "1 of 2 (digits m=10 [0abcdef0])" in first
    assert "1 of 2 (digits m=10 [1abcdef0])" in first


# --- whatever the verdicts are

TABLES = st.lists(
    st.tuples(
        st.sampled_from(["better", "worse", "undecided"]),
        st.sampled_from(["better", "worse", "undecided"]),
        st.sampled_from(["better", "worse", "undecided"]),
    ),
    min_size=1,
    max_size=4,
)


@given(TABLES, st.sampled_from([8.0, 30.0, math.inf, math.nan]))
def test_a_paradigm_is_better_only_where_a_verdict_says_so(
    tables: list[tuple[str, str, str]], needed: float
) -> None:
    names = [(b, a) for a, b in combinations(("hard", "soft", "lvml"), 2)]
    signs = {"better": 0.1, "worse": -0.1, "undecided": 0.05}
    found = [
        comparison(
            [
                pair(first, second, verdict, signs[verdict], needed=needed)
                for (first, second), verdict in zip(names, table, strict=True)
            ],
            m=5 * (i + 1),
        )
        for i, table in enumerate(tables)
    ]
    sentences = answer(found)
    assert len(sentences) == 3
    for sentence in sentences:
        assert re.fullmatch(r"[A-Z].*[^.]\.", sentence), sentence
        assert "nan" not in sentence
    won = set()
    for table in tables:
        for (first, second), verdict in zip(names, table, strict=True):
            if verdict != "undecided":
                won.add((first, second) if verdict == "better" else (second, first))
    said = set()
    for clause in sentences[0].removeprefix("At").split("place), ")[1].split("; "):
        if match := re.match(r"(\w+) is better than", clause):
            said |= {(match[1], loser) for loser in re.findall(r"than (\w+)", clause)}
        if match := re.match(r"(\w+) is better than (\w+) in .*worse in", clause):
            said.add((match[2], match[1]))
    assert said == won
    undecided = sum(table.count("undecided") for table in tables)
    total = 3 * len(tables)
    if undecided == total:
        assert f"all {total} are undecided" in sentences[2]
    elif undecided:
        assert f"{undecided} of {total} " in sentences[2]
    else:
        assert f"all {total} are decided" in sentences[2]


@pytest.mark.parametrize("tasks", [["digits"], ["mscoco"], ["digits", "mscoco"]])
def test_the_question_is_one_sentence(tasks: Sequence[str]) -> None:
    asked = question([comparison([], task) for task in tasks])
    assert asked.endswith("?")
    assert asked.count("?") == 1
    assert ("classifies" in asked, "captions" in asked) == ("digits" in tasks, "mscoco" in tasks)


# --- reasons


def test_no_seed_in_common_is_said_only_where_it_is_so() -> None:
    barred = {"reason": "no option of lvml can be chosen"}
    unusable = {**pair("lvml", "soft", n=0, needed=math.nan), **barred}
    *_, sure = answer([comparison([unusable, *in_accuracy([unusable])])])
    assert sure == "Nothing is decided, because no option of lvml can be chosen."
    neither = {**pair("lvml", "hybrid", n=0, needed=math.nan)}
    neither["reason"] = "no option of lvml and hybrid can be chosen"
    *_, sure = answer([comparison([unusable, neither])])
    assert sure == "Nothing is decided, because no option of hybrid and lvml can be chosen."
    apart = pair("soft", "hard", n=0, needed=math.nan)
    *_, sure = answer([comparison([apart, unusable])])
    assert "no option of lvml can be chosen and no two others have a seed in common" in sure
    *_, sure = answer([comparison([pair("soft", "hard"), unusable])])
    assert "n=12 common seeds" in sure
    assert "1 is undecided because no option of lvml can be chosen" in sure
    assert "seed in common" not in sure
    assert "not known" not in sure


def test_one_reason_for_all_is_said_once() -> None:
    pairs = [pair(b, a, needed=math.inf) for a, b in combinations(PARADIGMS, 2)]
    *_, sure = answer([comparison([*pairs, *in_accuracy(pairs)])])
    assert sure == (
        "The verdicts rest on n=12 common seeds; all 12 are undecided because no difference is "
        "seen at all."
    )
