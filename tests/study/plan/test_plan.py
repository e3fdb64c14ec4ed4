"""From a study and `--set` to cells, and to what a plan says of them.

Which cells the presets declare, tests/golden records.
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import replace
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_spaces import STUDIES
from study.cell.axis import values_at
from study.errors import RequestError
from study.plan.describe import describe
from study.plan.divide import with_packing
from study.plan.grid import make_plan
from study.plan.plan import Division, Plan, rows_of
from study.request import Request
from study.run_options import requested, shown
from study.train.steps.packs import Packing
from tests.made_up.comparisons import make_cell
from tests.made_up.facts import published

SPACES = STUDIES


def asked(study: str, *sets: str, preset: str = "quick") -> Request:
    needed = ["foreground=heron+stork"] if study == "images" else []
    assignments = [f"--set={each}" for each in (*needed, *sets)]
    return requested([study, "--preset", preset, "--plan", *assignments])


def planned(request: Request) -> Plan:
    """The plan of a grid, on data as they are published."""
    return make_plan(request.space, request.preset, request.axes, published)


def plan(study: str, *sets: str, preset: str = "quick") -> Plan:
    return planned(asked(study, *sets, preset=preset))


def typed(text: str) -> Plan:
    """The plan of ``STUDY AXIS=VALUES ...``, or of ``STUDY/PRESET ...``."""
    study, *sets = text.split()
    name, _, preset = study.partition("/")
    return plan(name, *sets, preset=preset or "quick")


NARROW = (
    "5 soft lr=0.1 | 5 hard lr=0.2 | 5 lvml lr=0.2 | "
    "20 soft lr=0.1 | 20 hard lr=0.3 | 20 lvml lr=0.2"
)
CELLS = {
    # Every axis may be narrowed and widened.
    "digits lr=0.01,0.05 m=5,10 paradigm=soft seed=0-1,7 -> m lr seed": " | ".join(
        map(" ".join, itertools.product(("5", "10"), ("0.01", "0.05"), ("0", "1", "7")))
    ),
    "digits lr=0.1 paradigm=hybrid switch_point=0.2,0.4 -> schedule.text": (
        "soft lr=0.1 until 0.2 > hard lr=0.1 | soft lr=0.1 until 0.4 > hard lr=0.1"
    ),
    "digits lr=0.1 paradigm=hybrid switch_point=0.5 hard_lr=0.3,same -> schedule.text": (
        "soft lr=0.1 until 0.5 > hard lr=0.3 | soft lr=0.1 until 0.5 > hard lr=0.1"
    ),
    # Values by paradigm, by task, by numbers: there alone, and in one comparison.
    "digits paradigm=soft,hard lr@hard=0.3 -> schedule.text": (
        "soft lr=0.003 | soft lr=0.01 | soft lr=0.05 | hard lr=0.3"
    ),
    "digits lr@soft=0.2 lr@hard=0.3 paradigm=soft,hard -> schedule.text": (
        "soft lr=0.2 | hard lr=0.3"
    ),
    "fixed-focus n@digits=500 seed=0 -> task n": "digits 500 | linear-orthogonal 10000",
    "fixed-focus lr=1 lr@alpha:0.2=7 alpha=0.2,1 seed=0 -> alpha lr": "0.2 7.0 | 1.0 1.0",
    # The narrower condition holds, in whatever order they are typed; of others the last one.
    **{
        f"digits {' '.join(order)} m=5,20 paradigm=soft,hard,lvml -> m schedule.text": NARROW
        for order in itertools.permutations(("lr=0.1", "lr@hard,lvml=0.2", "lr@m:20@hard=0.3"))
    },
    "digits m=5,10 paradigm=soft,hard lr=0.3 lr@m:5=0.1,0.2 lr@m:5@hard=0.5 -> m schedule.text": (
        "5 soft lr=0.1 | 5 soft lr=0.2 | 5 hard lr=0.5 | 10 soft lr=0.3 | 10 hard lr=0.3"
    ),
    "digits lr@m:5=0.2 lr@hard=0.3 m=5 paradigm=hard -> lr": "0.3",
    "digits lr@hard=0.3 lr@m:5=0.2 m=5 paradigm=hard -> lr": "0.2",
    "digits lr@hard@m:5=0.4 lr@m:5=0.2 lr=1 m=5 paradigm=hard -> lr": "0.4",
    # Budgets, and what held attention changes.
    "digits alpha=none,0.5 confirm=none -> alpha budget.unit": "None flops | 0.5 mosaics",
    "digits alpha=0.5 confirm=none -> paradigm": "soft | hard | lvml",
    "digits budget_unit=mosaics epochs=3 paradigm=soft,lvml -> budget.amount budget.unit": (
        "6000 mosaics"
    ),
    # Settings of several tasks stay apart.
    "fixed-focus seed=0 -> task architecture": "digits perceptron | linear-orthogonal linear",
    "fixed-focus architecture=scripts task=cifar10 seed=0 -> task m": "cifar10 5",
    "foregrounds m=4,12 foregrounds=2,4 distractors=0 paradigm=soft -> m foregrounds": (
        "4 2 | 12 2 | 12 4"
    ),
    # Published: appendices A.3 and A.4, and section 3.
    "mscoco/paper paradigm=soft -> schedule.text": (
        "soft lr=0.001 adam encoder_lr=1e-05 until 0.24 > soft lr=0.0001 adam encoder_lr=1e-05"
    ),
    "hatexplain/paper -> n batch_size momentum": "15383 256 0.9",
    "fixed-focus/paper task=cifar10 -> n lr batch_size": "10000 0.004 256",
}
"""What is typed, and fields of cells -> their values."""


@pytest.mark.parametrize("text", CELLS)
def test_what_is_typed_are_these_cells(text):
    sets, _, fields = text.partition(" -> ")
    field_values = (
        [attrgetter(name)(cell) for name in fields.split()] for cell in typed(sets).cells
    )
    assert {" ".join(map(str, values)) for values in field_values} == {*CELLS[text].split(" | ")}


SAME = {
    "seed=3.0": "seed=3",
    "n=1e3,500.0": "n=1000,500",
    "depth=\N{MINUS SIGN}1": "depth=-1",
    "seed=0\N{EN DASH}2": "seed=0-2",
    "drop_at=None": "drop_at=none",
    "normalisation=None": "normalisation=none",
    "foreground=None": "foreground=none",
    "window=none": "",
}


@pytest.mark.parametrize("text", SAME)
def test_values_are_taken_as_tables_and_documents_write_them(text):
    """And none for an axis that the task lacks."""
    assert typed(f"digits {text}").cells == typed(f"digits {SAME[text]}").cells


REFUSED = {
    # Values.
    "digits lr": "axis=value",
    "digits lr=": "number",
    "digits lr=nan": "finite",
    "digits lr=1e400": "inf",
    "digits seed=1e-3": "whole",
    "digits seed=12345678901234567891.0": "whole",
    "digits seed=99999999999999999999": "<",
    "digits seed=5-2": "upwards",
    "digits seed=0-9999999999": "1,000,000",
    "digits seed=0-999999 paradigm=soft,hard confirm=none": "1,000,000 Narrow",
    "digits confirm=x": "none",
    "digits confirm=none,100": "not both",
    "digits epochs=1e30": "budget",
    "digits evaluations=1000000000": "10,000",
    "digits m=1000000000": "100,000",
    "digits width=1e9": "1000]",
    "digits momentum=1": "[0, 1)",
    "digits hard_drop_at=1": "--set hard_drop_at=1: (0, 1)",
    "digits weight_decay=0.1": "adam",
    "digits epochs=0.001 n=10": "nothing no step",
    "digits n=all": "number",
    "texts min_count=0": "1",
    "texts min_count=none": "whole 'none'",
    "series background=none": "names +",
    "fixed-focus alpha=1.5": "[0, 1]",
    "fixed-focus alpha=none": "no alpha=none: give a number in [0, 1]",
    "fixed-focus depth=-5": "-2 layers",
    "linear-orthogonal num_classes=1": "2",
    "linear-orthogonal depth=1": "0 linear",
    # Names.
    "digits bs=32": "'batch_size'",
    "digits num_segments=5": "'m'",
    "digits wd=0.1": "'weight_decay'",
    "digits nonsense=1": "confirm, task,",
    "digits paradigm=marginal": "'lvml' hard,",
    "digits task=CIFAR-10": "'cifar10'",
    "digits split=shared": "'shared-base'",
    "digits foreground=3+x": "'x' 9",
    "digits background=": "empty",
    "digits threads=2": "--threads",
    "digits pack@soft=none": "--pack",
    "digits budget_unit=seconds": "flops",
    # What has no meaning together.
    "digits teacher_forcing=0.5": "mscoco",
    "digits window=7": "series",
    "digits background=2": "'2' foreground=2+4+7",
    "series foreground=1": "two",
    "hatexplain split=shared-base": "own",
    "digits task=cifar10 foreground=none": "cifar10 'perceptron'",
    "digits alpha=0.5 paradigm=hybrid confirm=none": "soft, hard, lvml",
    "digits alpha=0.5 budget_unit=flops confirm=none": "mosaics",
    "fixed-focus confirm=100": "linear-orthogonal confirm=none",
    "fixed-focus num_classes=5": "linear-orthogonal",
    "fixed-focus num_classes=none": "given, linear-orthogonal",
    "mscoco m=50": "square",
    "mscoco encoder=small": "weights",
    "mscoco alpha=0.5 budget_unit=mosaics confirm=none": "foreground",
    # Conditions.
    "digits lr@hrad=0.1": "'hard'",
    "digits lr@=0.1": "unknown",
    "digits lr@hard,sotf=0.1": "'soft'",
    "digits lr@hard-sampled=0.1": "soft, lvml",
    "digits lr@cifar10=0.1": "digits.",
    "digits lr@m:7=0.1": "10.",
    "digits lr@mm:7=0.1": "unknown 'mm'",
    "digits lr@m:x=0.1": "whole",
    "digits lr@hard=fast": "number",
    "digits lr@hard": "axis=value",
    "digits lr@hard=0": "finite",
    "digits lrr@hard=0.1": "'lr'",
    "digits lr@hard@soft=0.1": "every",
    "digits hard_lr@hard=0.1": "hybrid lr@hard=VALUE",
    "digits seed@hard=0-11": "paradigm",
    "digits confirm@hard=100": "same",
    "digits lr@confirm:100=0.1": "same",
    "digits lr@lr:0.01=0.1": "cannot",
    "digits lr@hard@m:10=0.1 lr@m:10@hard=0.2": "twice",
}
"""What is typed -> words of the answer; tests/golden has the likeliest mistakes."""


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_is_named(text):
    with pytest.raises(RequestError) as caught:
        typed(text)
    said = str(caught.value)
    assert "\n" not in said
    assert [word for word in REFUSED[text].split() if word not in said] == []


@given(st.text(max_size=30) | st.from_regex(r"(lr|n|task)(@(hard|digits|m:10|\w:?)){1,2}=\w*"))
@settings(max_examples=200)
def test_any_text_after_set_is_understood_or_refused(text):
    try:
        request = asked("digits", text)
    except RequestError:
        return
    assert request.axes[re.split("[@=]", text)[0]]


def test_tasks_of_one_study_keep_their_own_defaults_and_bounds():
    optimisers = asked("digits", "task=digits,mscoco").axes["optimiser"]
    for task, usual in (("digits", "sgd"), ("mscoco", "adam")):
        assert values_at(optimisers, "optimiser", {"task": task}) == (usual,)
    assert asked("one-shot", "task=digits-one-shot,omniglot", "pixels@omniglot=80").axes["pixels"]


AXES = {
    "seed": ["0", "1", "2"],
    "lr": ["0.01", "0.1"],
    "switch_point": ["0.2", "0.7"],
    "paradigm": ["soft", "hard", "hybrid"],
    "m": ["3", "5"],
}
grids = st.fixed_dictionaries(
    {axis: st.lists(st.sampled_from(of), min_size=1, unique=True) for axis, of in AXES.items()}
)


@given(grids)
@settings(max_examples=20)
def test_a_wider_grid_only_adds_cells(some):
    narrow, wide = (
        plan("digits", *(f"{axis}={','.join(values)}" for axis, values in grid.items()))
        for grid in (some, AXES)
    )
    ids = {cell.id for cell in narrow.cells}
    rest = wide.resumed(ids)
    assert set(rest.known.loc[rest.known["done"], "id"]) == ids
    assert {cell.id for cell in rest.to_run} == {cell.id for cell in wide.cells} - ids


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("foregrounds m=4,12 foregrounds=2,4 distractors=0 paradigm=soft", "less than m=4"),
        ("digits epochs=0.2 n=100 batch_size=10 switch_point=0.05,0.5", "no step for its "),
        ("digits alpha=none,0.5 confirm=none", "soft, hard, lvml"),
    ],
)
def test_what_cannot_run_is_skipped_with_the_reason(text, reason):
    made = typed(text)
    assert made.cells
    assert made.skipped
    assert all(reason in text for text in made.skipped)


def test_a_plan_says_which_values_there_are():
    """Of each axis that has several, as `--set` takes them; of others nothing."""
    made = typed("digits seed=0-2,7 hard_lr@m:10=same,0.1 lr=0.1,0.2 lr@hard=0.5,1.0")
    assert made.grid == (
        "seed=0-2,7",
        "confirm=100-111",
        "paradigm=soft,hard,lvml,hybrid",
        "lr@soft,lvml,hybrid=0.1,0.2 lr@hard=0.5,1",
        "hard_lr=same,0.1",
        "switch_point=0.05,0.3,0.95",
    )
    assert typed("digits paradigm=soft seed=0 confirm=none lr=0.1").grid == ()
    lines = "\n ".join(("in this grid, as --set takes it:", *made.grid))
    assert f"{lines}\n" in describe(timed(made), "")


@pytest.mark.parametrize("study", SPACES)
def test_the_values_that_a_plan_says_give_the_same_cells(study):
    made = plan(study)
    again = plan(study, *" ".join(made.grid).split())
    assert again.cells == made.cells


@pytest.mark.parametrize("study", SPACES)
def test_what_is_shown_of_a_study_is_all_of_it(study, tmp_path):
    """From a file it gives the same cells, and another preset with it would change none."""
    request = asked(study)
    file = tmp_path / "shown"
    file.write_text("\n".join(shown(request)))
    again = requested([study, f"@{file}"])
    assert planned(replace(again, verb=request.verb)).cells == planned(request).cells
    for preset in [*request.space.presets][1:]:
        with pytest.raises(RequestError, match=f"--preset {preset} would change none"):
            requested([study, f"@{file}", "--preset", preset])


def test_all_options_come_back_from_what_is_shown(tmp_path):
    words = (
        "digits --search optuna --num-samples 3 --objective accuracy,saif --no-share --threads 1 "
        "--micro-batch 7 --keep-weights --checkpoint-every 2.5 --tracking none --set m=5 lr=0.1,1"
    )
    request = requested([*words.split(), "--results", "two words"])
    file = tmp_path / "shown"
    file.write_text("\n".join(shown(request)))
    again = requested(["digits", f"@{file}"])
    assert replace(again, axes={}, changes=()) == replace(request, axes={}, changes=())
    assert list(shown(again)) == list(shown(request))


def test_further_options_change_what_a_file_says(tmp_path):
    """An axis that is set replaces all that the file says of it, conditions too."""
    file = tmp_path / "shown"
    file.write_text("\ufeff# mine\n" + "\n".join(shown(requested(["digits", "--threads=1"]))))
    sets = ["m=10", "lr@soft=0.7,0.8"]
    request = requested(["digits", f"@{file}", "--set", *sets, "--threads", "2"])
    assert request.threads == 2
    assert request.changes[-2:] == tuple(sets)
    assert planned(request).cells == plan("digits", *sets).cells
    file.write_text("--set lr=0.3 --preset paper")
    assert requested(["digits", f"@{file}", "--preset", "quick"]).preset == "quick"


def test_a_file_that_can_be_read_once_is():
    ours, theirs = os.pipe()
    with os.fdopen(ours), os.fdopen(theirs, "w") as pipe:
        pipe.write("--set lr=0.3 paradigm=soft")
        pipe.close()
        assert requested(["digits", f"@/dev/fd/{ours}"]).changes == ("lr=0.3", "paradigm=soft")


@pytest.mark.parametrize(
    ("cores", "cells", "threads"), [*itertools.product((1, 2, 8, 64), (1, 3, 60), (None, 1, 3))]
)
def test_a_machine_is_divided_among_trials(monkeypatch, cores, cells, threads):
    """None share a core, and no core that a trial could use idles."""
    monkeypatch.setattr("study.plan.divide.usable_cores", lambda: cores)
    rows = rows_of([make_cell(seed=seed) for seed in range(cells)], [None] * cells)
    made = replace(plan("digits"), rows=rows, how=Division(gpus_per_trial=0))
    if threads and threads > cores:
        with pytest.raises(RequestError, match=f"--threads {threads}, but"):
            with_packing(made, Packing(), threads=threads)
        return
    divided = with_packing(made, Packing(), threads=threads).how
    idle = cores - divided.concurrent * divided.threads
    assert divided.concurrent == min(cells, cores // (threads or 1))
    assert idle >= 0
    assert divided.threads == threads if threads else idle < divided.concurrent
    fewer = with_packing(made, Packing(), threads=threads, max_concurrent=1).how
    assert (fewer.concurrent, fewer.threads) == (1, divided.threads)


@pytest.mark.parametrize("cores", [1, 64])
def test_a_cluster_is_divided_by_its_room_whatever_the_cores_here(monkeypatch, cores):
    """Nodes come and go, and numbers must not follow them: one thread, unless chosen."""
    monkeypatch.setattr("study.plan.divide.usable_cores", lambda: cores)
    made = plan("digits")
    for count, threads, divided in ((None, None, (30, 1)), (None, 4, (10, 4)), (3, 1, (3, 1))):
        few = replace(made, rows=made.rows[:count])
        found = with_packing(few, Packing(), room={1: 30, 4: 10}.get, threads=threads).how
        assert (found.concurrent, found.threads) == divided


def timed(made: Plan) -> Plan:
    """With an hour for each cell."""
    return replace(made, rows=made.rows.assign(alone=3600.0))


@pytest.mark.parametrize("study", ["digits", "hatexplain", "fixed-focus"])
def test_a_plan_is_no_wider_than_the_terminal(monkeypatch, study):
    made = timed(plan(study))
    texts = []
    for columns in ("400", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        texts.append(describe(made, SPACES[study].presets["quick"].about))
    wide, narrow = texts
    assert max(map(len, wide.splitlines())) > 40 >= max(map(len, narrow.splitlines()))
    assert set(re.split(r":?\s+", wide)) <= set(re.split(r":?\s+", narrow))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # What whole batches spend of a budget, where that is less.
        (
            "digits paradigm=soft n=256 batch_size=256 epochs=1.5",
            "of soft, of which whole batches spend 1.0",
        ),
        ("digits paradigm=soft n=256 batch_size=256 epochs=2", "= 2 epochs of soft\n"),
        (
            "digits paradigm=soft n=256 batch_size=256 epochs=1.5 budget_unit=mosaics",
            "384 mosaics = 1.5 epochs, of which whole batches spend 256\n",
        ),
    ],
)
def test_a_plan_says_what_a_budget_is(text, said):
    assert said in describe(timed(typed(text)), "")


@pytest.mark.parametrize(
    ("gpus", "threads", "price", "cost"),
    [
        (0.5, 1, 2, "GPU hours: 18, which cost 36.00 at 2 each"),
        (0, 4, 0.1, "core hours: 144, which cost 14.40 at 0.1 each"),
        (0, 4, None, ""),
    ],
)
def test_what_a_plan_costs(gpus, threads, price, cost):
    """GPU hours are those of the trials, a share of a GPU as a share; the rest is cores."""
    how = Division(gpus_per_trial=gpus, threads=threads)
    made = replace(timed(plan("digits")), how=how)
    described = describe(made, "", price)
    assert (f"estimated {cost}" if cost else "estimated time on this machine") in described
    assert ("hours:" in described) == bool(cost)


def test_the_time_of_a_plan_is_that_of_what_is_left_side_by_side():
    made = plan("digits", "m=5", "seed=0-3", "paradigm=soft", "lr=0.1", "confirm=none")
    made = replace(made, rows=made.rows.assign(alone=60.0), how=Division(concurrent=2))
    for finished, said in ((made.cells[:0], "2 min"), (made.cells[:2], "60 s")):
        part = made.resumed({cell.id for cell in finished})
        line = f"estimated time on this machine: {said} for training and evaluation\n"
        assert line in describe(part, "")
