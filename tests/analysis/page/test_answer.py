"""The answer says what the verdicts say, and no more."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from analysis.digest.classes import class_parts
from analysis.digest.compare import Comparison
from analysis.digest.pairs import PAIRED_COLUMNS
from analysis.page.sentences import answer
from analysis.section.templates import paragraphs
from study.tasks import modality

PARADIGMS = ("hard", "soft", "lvml")


def pair(first: str, second: str, verdict: str = "undecided", **columns: float) -> dict[str, Any]:
    """A row of `paired`."""
    known = {"task": "digits", "metric": "saif", "first": first, "second": second, "reason": ""}
    return dict.fromkeys(PAIRED_COLUMNS, math.nan) | known | {"verdict": verdict} | columns


def comparison(
    pairs: Sequence[dict[str, Any]], m: int = 10, paradigms: Sequence[str] = PARADIGMS
) -> Comparison:
    """What the answer reads of a comparison."""
    choice = pd.DataFrame({"paradigm": list(paradigms), "select": "accuracy"})
    return SimpleNamespace(
        name=f"digits m={m}",
        task="digits",
        modality=modality("digits"),
        names={"saif": "SAIF", "accuracy": "accuracy"},
        axis="flops",
        choice=choice,
        summary=choice,
        paired=pd.DataFrame(pairs, columns=PAIRED_COLUMNS),
        class_parts=class_parts(pd.DataFrame(columns=PAIRED_COLUMNS), lambda *_: pd.DataFrame()),
    )


def test_where_images_decide_no_seeds_are_asked_for():
    rows = [
        pair("soft", "hard", needed_seeds=math.inf, seen_seeds=math.inf, image_se=0.1),
        pair("lvml", "hard", needed_seeds=math.inf, seen_seeds=math.inf, image_se=math.nan),
    ]
    (said,) = paragraphs("undecided.j2", c=comparison(rows), paired=pd.DataFrame(rows))
    assert "1 is limited by the test images: no number of seeds would decide." in said
    assert "deciding 1 of them takes more than 10,000 seeds" in said


def test_a_look_before_the_end_has_no_answer_yet():
    rows = [
        pair(name, "hard", ended_seeds=n, planned_seeds=12)
        for name, n in {"soft": 7, "lvml": 6}.items()
    ]
    assert answer([comparison(rows)]) == ["No verdict yet (interim: 6 to 7 of 12 planned seeds)."]


VERDICTS = st.sampled_from(["better", "worse", "undecided"])


@given(st.lists(st.tuples(VERDICTS, VERDICTS, VERDICTS), min_size=1, max_size=4))
def test_a_paradigm_is_better_only_where_a_verdict_says_so(
    tables,
):
    names = [(later, earlier) for earlier, later in combinations(PARADIGMS, 2)]
    verdicts = [dict(zip(names, table, strict=True)) for table in tables]
    sentences = answer(
        [
            comparison([pair(*each, verdict) for each, verdict in of.items()], m)
            for m, of in enumerate(verdicts, start=5)
        ]
    )
    for sentence, of in zip(sentences, verdicts, strict=True):
        assert re.fullmatch(r"\S.*[^.]\.", sentence), sentence
        clauses = sentence.partition(": ")[2] if len(tables) > 1 else sentence
        said = set()
        for clause in re.split("; |[.]", clauses):
            if sides := re.fullmatch("(.+) (?:beats|each beat) (.+) in SAIF", clause):
                said |= set(product(*(re.split(", | and ", side) for side in sides.groups())))
        assert said == {
            each if verdict == "better" else each[::-1]
            for each, verdict in of.items()
            if verdict != "undecided"
        }
