"""Measures that are no shares, what each test instance got, and seeds of any name."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.conclude import conclude
from analysis.page.sentences import over_what
from analysis.page.tables import comparison_cells, pair_cells, paired_cells
from analysis.rules.crossed import crossed_mean
from study.results import Results, ResultsError
from tests.made_up.comparisons import compared

PERPLEXITY = {"perplexity": {"is_share": False, "larger_is_better": False}}
SEEDS = [f"fold {letter}" for letter in "abcdefgh"]


def language_models(gain=4.0, lrs=(1,), seeds=SEEDS):
    """The perplexity of `new` is lower by a gain; that of a larger learning rate is higher."""
    normal = np.random.default_rng(0).normal
    rows = [
        {
            "paradigm": paradigm,
            "seed": seed,
            "split": split,
            "seconds": seconds,
            "lr": lr,
            "perplexity": 30 + lr - gain * (paradigm == "new") + 5 / seconds + normal(0, 0.5),
        }
        for paradigm, seed in itertools.product(("old", "new"), seeds)
        for lr, seconds, split in itertools.product(lrs, (1, 2), ("validation", "test"))
    ]
    return pd.DataFrame(rows)


def graded(images, instances, seeds, rng, gain=0.0, of_image=1.0):
    """What two paradigms got on each instance; images and seeds vary, the gain of `b` too."""
    ids = np.repeat(np.arange(images), instances // images)
    common = rng.normal(0, 1, images)
    own = rng.normal(gain, of_image, images)
    rows = []
    for paradigm, seed in itertools.product("ab", range(seeds)):
        values = common[ids] + rng.normal(0, 0.2) + rng.normal(0, 1, instances)
        values = values + (paradigm == "b") * own[ids]
        rows.append({"paradigm": paradigm, "seed": seed, "compute": 1, "score": values})
    return rows, ids


# --- any measure


def test_a_quantity_of_which_less_is_better_is_chosen_tested_and_shown_in_its_unit(results):
    table = language_models(lrs=(1, 3))
    analysis.record(results, table, options=["lr"], measures=PERPLEXITY)
    found = compared(results)
    assert found.choice["lr"].tolist() == [1, 1]
    (row,) = found.paired.to_dict("records")
    at_end = table[(table["split"] == "test") & (table["seconds"] == 2) & (table["lr"] == 1)]
    by_seed = at_end.pivot(index="seed", columns="paradigm", values="perplexity")
    sign = 1 if row["first"] == "old" else -1
    expected = crossed_mean(sign * (by_seed["old"] - by_seed["new"]).to_numpy()[:, None])
    assert [row[name] for name in ("difference", "low", "high", "p")] == pytest.approx(
        [expected.mean, expected.low, expected.high, expected.p]
    )
    assert {"better": row["first"], "worse": row["second"]}[row["verdict"]] == "new"
    means = found.summary.set_index("paradigm")["perplexity"]
    assert means.to_dict() == pytest.approx(by_seed.mean().to_dict())
    shown = [comparison_cells(found), pair_cells(found), paired_cells(found)]
    texts = [text for header, rows in shown for row in (header, *rows) for text in row]
    assert f"{means['new']:.2f}" in texts
    assert not [text for text in texts if "%" in text.replace("95 %", "") or "points" in text]


def test_the_report_of_a_loss_alone_needs_no_words(results, tmp_path):
    table = language_models().rename(columns={"perplexity": "loss"}).drop(columns="lr")
    analysis.record(results, table)
    found = conclude(results)
    (section,) = found.sections
    assert section.subject.metrics == ("loss",)
    page = found.write(tmp_path / "report", "runs").read_text(encoding="utf-8")
    assert "new beats old in loss (nats)" in page
    assert "training time" in page


def test_a_diverged_run_counts_as_a_guess_where_that_is_known(tmp_path):
    table = language_models(gain=25, seeds=range(12)).drop(columns="lr")
    lost = (table["paradigm"] == "old") & (table["seed"] == 3)
    table["status"] = np.where(lost, "diverged", "done")
    known, unknown = Results(tmp_path / "known"), Results(tmp_path / "unknown")
    told = {"perplexity": PERPLEXITY["perplexity"] | {"chance": 900}}
    analysis.record(known, table, measures=told)
    old = compared(known).summary.set_index("paradigm").loc["old"]
    assert (old["perplexity_learned"], old["num_seeds"]) == (11, 12)  # the others, below
    assert 40 < old["perplexity_above"] < 900
    with pytest.raises(
        ResultsError, match=r"row .*old, seed 3.* What does a guess give in perplex"
    ):
        analysis.record(unknown, table, measures=PERPLEXITY)


# --- instances


def test_what_instances_belong_to_is_a_sample_as_in_our_own_studies(results):
    rows, ids = graded(24, 240, 6, np.random.default_rng(3), gain=0.4, of_image=0.2)
    told = {"score": {"is_share": False, "larger_is_better": True}}
    analysis.record(results, rows, measures=told, instances={"users": [f"u{i}" for i in ids]})
    found = compared(results)
    (row,) = found.paired.to_dict("records")
    of = {name: np.stack([r["score"] for r in rows if r["paradigm"] == name]) for name in "ab"}
    sign = 1 if row["first"] == "b" else -1
    difference = sign * (of["b"] - of["a"])
    by_image = np.stack([difference[:, ids == i].mean(axis=1) for i in range(24)], axis=1)
    expected = crossed_mean(by_image)
    assert row["num_images"] == 24
    names = ("difference", "low", "high", "p", "seed_se", "image_se")
    assert [row[name] for name in names] == pytest.approx(
        [getattr(expected, name if name != "difference" else "mean") for name in names]
    )
    assert "over seeds and 24 test users" in over_what(found)


def test_bits_decide_as_their_mean_and_few_users_decide_nothing(results, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {"paradigm": p, "seed": s, "compute": 1, "accuracy": rng.random(200) < chance}
        for p, chance in (("a", 0.5), ("b", 0.8))
        for s in range(8)
    ]
    analysis.record(results, rows)
    (row,) = compared(results).paired.to_dict("records")
    assert (row["num_images"], row["verdict"]) == (
        200,
        {"a": "worse", "b": "better"}[row["first"]],
    )
    few = Results(tmp_path / "few")
    analysis.record(few, rows, instances={"users": np.arange(200) % 3})
    (row,) = compared(few).paired.to_dict("records")
    assert (row["verdict"], row["reason"]) == ("undecided", "too few test users")


def test_without_an_effect_few_studies_decide(tmp_path):
    """With users that differ, tests over seeds alone would decide far more than one in twenty."""
    wrong = alone = 0
    told = {"score": {"is_share": False, "larger_is_better": True}}
    for study in range(40):
        rows, ids = graded(12, 120, 6, np.random.default_rng(study))
        results = Results(tmp_path / str(study))
        analysis.record(results, rows, measures=told, instances={"users": ids})
        wrong += compared(results).paired["verdict"].ne("undecided").sum()
        means = np.array([np.mean(row["score"]) for row in rows]).reshape(2, 6)
        alone += crossed_mean((means[1] - means[0])[:, None]).p < 0.05
    assert wrong <= 5  # more than these have a chance below .5 % at a level of .05
    assert alone >= 12


# --- seeds


def test_seeds_are_paired_by_any_name(results):
    table = language_models(seeds=["a", "b", 1.5, -3, 7, "a b"])
    analysis.record(results, table.drop(columns="lr"), measures=PERPLEXITY)
    found = compared(results)
    assert found.paired["num_pairs"].tolist() == [6]
    numbers = found.cells.groupby("paradigm")["seed"].agg(set)
    assert numbers["old"] == numbers["new"]
    assert 7 in numbers["new"]


# --- what is refused


@pytest.mark.parametrize(
    ("changes", "asked", "message"),
    [
        (
            {},
            {"measures": ["perplexity"]},
            "fraction in .*measures={'perplexity': {'is_share'.*got 3",
        ),
        ({}, {"measures": {"perplexity": {"is_share": False}}}, "perplexity is no share. Say"),
        (
            {},
            {"measures": {"perplexity": {"lower": 1}}},
            "may be said words, larger_is_better .True or False., ch",
        ),
        ({}, {"measures": {"accuracy": {"chance": 1}}}, "no column accuracy"),
        (
            {"accuracy": 0.5},
            {"measures": PERPLEXITY | {"accuracy": {"chance": 1}}},
            "'accuracy' cannot be an option or a measure",
        ),
        ({"perplexity": 1e-9}, {}, "so small that differences count as rounding"),
        ({}, {"instances": {"users": [1]}}, "1 users, the lists of measures 0 values"),
        ({"perplexity": [[1, 2]] * 64}, {"instances": {"users": [1]}}, "1 users, .* 2 values"),
        ({"perplexity": [[1, "a"]] * 64}, {}, "row 0: perplexity is a list of other things"),
        (
            {"perplexity": [[1, 2], [1]] * 32},
            {"instances": ["a", "b"]},
            "instances says what each",
        ),
        (
            {"perplexity": np.inf},
            {},
            "perplexity must be finite, unless the run diverged, which a",
        ),
        ({"perplexity": [[0.5, 2]] * 64}, {"measures": ["perplexity"]}, "others than fractions"),
        (
            {"perplexity": [[1, 2]] * 64},
            {"instances": {"users": [1, None]}},
            "each a number or te",
        ),
        ({"perplexity": [[1, 2]] * 63 + [[1]]}, {}, "row 63: perplexity has 1 values, another"),
    ],
)
def test_what_cannot_be_meant_is_told_and_nothing_is_written(tmp_path, changes, asked, message):
    table = language_models().drop(columns="lr").assign(**changes)
    with pytest.raises(ResultsError, match=message):
        analysis.record(tmp_path / "results", table, **{"measures": PERPLEXITY, **asked})
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "other", [{"instances": {"users": [0, 1]}}, {"instances": {"users": ["u", "v"]}}, {}]
)
def test_one_directory_has_one_set_of_instances(results, other):
    """As of the runs that are there, and as of new ones."""
    rows, _ = graded(2, 2, 6, np.random.default_rng(0))
    told = {"score": {"is_share": False, "larger_is_better": True}}
    of_a, of_b = ([row for row in rows if row["paradigm"] == name] for name in "ab")
    analysis.record(results, of_a, measures=told, instances={"users": [0, 0]})
    analysis.record(results, of_a, measures=told, instances={"users": [0, 0]})
    with pytest.raises(ResultsError, match="other instances than those in"):
        analysis.record(results, of_b, measures=told, **other)
    with pytest.raises(ResultsError, match="other instances than those in"):
        analysis.record(results, of_a, measures=told, **other)


def test_one_directory_has_one_word_on_a_measure(results):
    table = language_models().drop(columns="lr")
    analysis.record(results, table[table["paradigm"] == "old"], measures=PERPLEXITY)
    other = {"perplexity": {"is_share": False, "larger_is_better": True}}
    with pytest.raises(ResultsError, match="different words on the measure perplexity"):
        analysis.record(results, table[table["paradigm"] == "new"], measures=other)
    assert len(results.cells()) == len(SEEDS)
