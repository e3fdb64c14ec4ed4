"""The answer says what the verdicts say, and no more."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison.compare import Comparison
from analysis.comparison.paired import PAIRED_COLUMNS
from analysis.comparison.report.answer import answer
from analysis.comparison.report.limits import undecided
from analysis.words import METRICS, setting_name
from study.tasks import modality

PARADIGMS = ("hard", "soft", "hybrid", "lvml")


def pair(
    first: str,
    second: str,
    verdict: str = "undecided",
    *,
    metric: str = "saif",
    n: int = 12,
    needed: float = math.nan,
    seen: float = math.nan,
    images: float = math.nan,
) -> dict[str, Any]:
    """A row of `paired`."""
    return {
        **dict.fromkeys(PAIRED_COLUMNS, math.nan),
        "task": "digits",
        "metric": metric,
        "first": first,
        "second": second,
        "num_pairs": n,
        "verdict": verdict,
        "needed_seeds": needed,
        "seen_seeds": seen,
        "needed_images": images,
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
    choice = pd.DataFrame({"paradigm": list(paradigms), "select": select})
    made = SimpleNamespace(
        name=setting_name(task, m, "mlp"),
        task=task,
        modality=modality(task),
        metrics=METRICS,
        recorded=False,
        m=m,
        axis=axis,
        cells=pd.DataFrame({"comparison_id": [comparison_id]}),
        choice=choice,
        summary=choice,
        paired=pd.DataFrame(pairs, columns=PAIRED_COLUMNS),
    )
    return cast(Comparison, made)


# --- who is better


def test_winners_of_the_same_are_named_together() -> None:
    pairs = [
        pair(winner, loser, "better")
        for winner in ("hybrid", "lvml")
        for loser in ("hard", "soft")
    ]
    pairs += [pair("soft", "hard", "better"), pair("lvml", "hard", metric="accuracy")]
    (sentence,) = answer([comparison(pairs)])
    assert sentence == (
        "hybrid and lvml each beat hard and soft, and soft beats hard in SAIF; accuracy is "
        "undecided."
    )


@pytest.mark.parametrize(
    ("paradigms", "words"),
    [
        (["soft"], "Only soft has results"),
        ([], "No paradigm has an option"),
        (["soft", "hard"], "hard and soft share no setting"),
    ],
)
def test_one_paradigm_leaves_nothing_to_compare(paradigms: list[str], words: str) -> None:
    (sentence,) = answer([comparison([], paradigms=paradigms)])
    assert sentence.startswith(words)
    assert "run at least two paradigms" in sentence
    assert "better" not in sentence


# --- how far to trust it


@pytest.mark.parametrize(
    ("pairs", "facts"),
    [
        (
            [
                pair("soft", "hard", "better"),
                pair("hybrid", "hard", needed=14.2, seen=200.0),
                pair("hybrid", "soft", needed=60.0, seen=310.5),
                pair("lvml", "soft", needed=12.0, seen=math.inf),
            ],
            ["3 of 4 verdicts", "311 seeds for 2 of them and more than 10,000 for 1;", "up to 60"],
        ),
        (
            [
                pair("soft", "hard", needed=math.inf, images=900.0),
                pair("lvml", "hard", needed=math.inf, images=math.inf),
            ],
            ["1 is limited by the test images, not by seeds: at best it takes about 900"],
        ),
    ],
)
def test_what_undecided_pairs_would_take_is_that_of_all(
    pairs: list[dict[str, Any]], facts: list[str]
) -> None:
    (said,) = undecided(comparison(pairs).paired)
    assert all(fact in said for fact in facts)
    assert "900 seeds" not in said


# --- whatever the verdicts are

TABLES = st.lists(
    st.tuples(*[st.sampled_from(["better", "worse", "undecided"])] * 3), min_size=1, max_size=4
)


@given(TABLES, st.sampled_from([8.0, 30.0, math.inf, math.nan]))
def test_a_paradigm_is_better_only_where_a_verdict_says_so(
    tables: list[tuple[str, str, str]], needed: float
) -> None:
    names = [(b, a) for a, b in combinations(("hard", "soft", "lvml"), 2)]
    verdicts = [dict(zip(names, table, strict=True)) for table in tables]
    sentences = answer(
        [
            comparison([pair(*each, verdict, needed=needed) for each, verdict in of.items()], m=m)
            for m, of in enumerate(verdicts, start=5)
        ]
    )
    for sentence in sentences:
        assert re.fullmatch(r"\S.*[^.]\.", sentence), sentence
        assert not re.search("nan|inf", sentence)
    for sentence, of in zip(sentences, verdicts, strict=False):
        clause = sentence.partition(": ")[2] if len(tables) > 1 else sentence
        said = set()
        for part in clause.split(" in SAIF")[0].split(", and ") if " in SAIF" in clause else ():
            sides = re.split(" beats | each beat ", part)
            said |= set(product(*(re.split(", | and ", side) for side in sides)))
        assert said == {
            each if verdict == "better" else each[::-1]
            for each, verdict in of.items()
            if verdict != "undecided"
        }
