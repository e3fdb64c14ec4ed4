"""From a search space and `--set` to cells."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_spaces import all_studies
from search_spaces.base import By, Preset, SearchSpace
from study import tasks
from study.cell import NetworkSettings, Options
from study.cell.axis import possible_values, values_at
from study.errors import RequestError
from study.kinds import KINDS
from study.plan.axes import resolve
from study.plan.describe import describe
from study.plan.divide import share_cores, with_packing
from study.plan.grid import make_plan
from study.plan.jobs import Seconds
from study.plan.plan import Plan
from study.tasks.base import Facts
from study.train.budget import cost
from study.train.cells import CellMaker
from study.train.steps.packs import Packing

SPACES = all_studies()


def plan(
    study: str, *assignments: str, preset: str = "quick", finished: set = frozenset()
) -> Plan:
    space = SPACES[study]
    axes = resolve(space, preset, assignments)
    return make_plan(space, preset, axes, nominal).resumed(finished)


def nominal(task: str, options: Options) -> Facts:
    return tasks.info(task, options).nominal


DYNAMICS = ("fixed-focus", "linear-orthogonal", "one-shot")
"""Studies that compare at equal numbers of inputs, and choose nothing."""

OF_DYNAMICS = ("held", "plateau")
"""Presets of other studies that do."""

SAMPLED = {"hard-sampled", "hybrid-sampled", "lvml-sampled"}
OTHER_PARADIGMS = {
    ("scaling", "quick"): {"soft", "hard", "lvml", "hybrid"} | SAMPLED,
    ("scaling", "paper"): {"soft", "hard", "lvml", "hybrid"} | SAMPLED,
    ("hatexplain", "scripts"): {"soft", "hard", "lvml-logits", "hybrid"},
    ("mscoco", "quick"): {"soft", "hard-sampled", "hybrid-sampled"},
    ("mscoco", "paper"): {
        "soft", "hard-running", "hybrid-running", "hard-sampled", "hybrid-sampled",
    },
}  # fmt: skip
PRESETS = [
    (study, preset)
    for study, space in SPACES.items()
    if KINDS[space.kind].trains
    for preset in space.presets
]


def chooses(study: str, preset: str) -> bool:
    """Whether options are compared at equal compute, and the best ones confirmed."""
    return study not in DYNAMICS and preset not in OF_DYNAMICS


@pytest.mark.parametrize(("study", "preset"), PRESETS)
def test_every_preset_lays_out(study: str, preset: str) -> None:
    laid_out = plan(study, "seed=0,1", preset=preset)
    usual = {"soft", "hard", "lvml"} | ({"hybrid"} if chooses(study, preset) else set())
    names = OTHER_PARADIGMS.get((study, preset), usual)
    assert {cell.paradigm for cell in laid_out.cells} == names
    assert not laid_out.skipped
    assert len({cell.id for cell in laid_out.cells}) == len(laid_out.cells)
    settings = {
        (
            *(cell.task, cell.m, cell.architecture, cell.alpha, cell.network),
            *(cell.foregrounds, cell.distractors, cell.options.get("foreground")),
        )
        for cell in laid_out.cells
    }
    assert len({cell.comparison_id for cell in laid_out.cells}) == len(settings)
    unit = "flops" if chooses(study, preset) else "mosaics"
    assert {cell.budget.unit for cell in laid_out.cells} == {unit}


def test_an_ablation_changes_widths_together_and_all_else_one_at_a_time() -> None:
    networks = {cell.network for cell in plan("ablation", preset="paper").cells}
    given = [{*network.to_dict()} for network in networks if network.to_dict()]
    widths = {"focus_width", "classifier_width"}
    assert sum(each <= widths for each in given) == 24
    others = [each for each in given if not each <= widths]
    assert all(len(each) == 1 for each in others)
    assert len(others) == 7
    assert NetworkSettings() in networks


@pytest.mark.parametrize(("study", "preset"), PRESETS)
def test_presets_that_choose_confirm_on_fresh_seeds(study: str, preset: str) -> None:
    """Learning dynamics choose nothing."""
    axes = resolve(SPACES[study], preset, ())
    seeds, confirm = (possible_values(axes[name]) for name in ("seed", "confirm"))
    if not chooses(study, preset):
        assert confirm == (None,)
        return
    assert len(seeds) <= 3
    assert len(confirm) >= 6
    assert max(seeds) < 100 <= min(confirm)
    if preset in ("paper", "full"):
        assert (seeds, confirm) == ((0, 1, 2), tuple(range(100, 112)))


def test_the_preset_of_mscoco_is_the_published_schedule() -> None:
    """Appendix A.4: rates and teacher forcing by phase, 25 epochs in all."""
    cells = plan("mscoco", preset="paper").cells
    assert {cell.options.get("encoder") for cell in cells} == {"vgg19"}
    texts = {cell.paradigm: cell.schedule.text for cell in cells}
    soft = [
        "soft lr=0.001 adam encoder_lr=1e-05 until {}",
        "soft lr=0.0001 adam encoder_lr=1e-05{}",
    ]
    hard = [
        "{} lr=0.0001 adam encoder_lr=1e-05 teacher_forcing=0.7 until {}",
        "{} lr=1e-05 adam encoder_lr=1e-05",
    ]
    assert texts["soft"] == " > ".join(soft).format(0.24, "")
    for name in ("running", "sampled"):
        alone, after = f"hard-{name}", f"hybrid-{name}"
        assert texts[alone] == " > ".join(hard).format(alone, 0.4, alone)
        both = " > ".join(soft + hard).format(0.12, " until 0.5", alone, 0.7, alone)
        assert texts[after] == both
    assert {cell.switch_point for cell in cells} == {None, 0.5}


@pytest.mark.parametrize(
    ("study", "setting", "reason"),
    [
        ("mscoco", "m=50", "a square grid, so m=50 must be a square number"),
        ("mscoco", "encoder=small", "the small encoder has no weights of its own: give it an"),
        ("digits", "teacher_forcing=0.5", "teacher_forcing is of mscoco, not of digits"),
        ("digits", "encoder_lr=0.1", "encoder_lr is of mscoco, not of digits"),
        ("digits", "hidden=64,128", "hidden is of mscoco, not of digits"),
        ("mscoco", "drop_at=1", r"drop_at must be a number in \(0, 1\)"),
        ("mscoco", "dropout=1", r"dropout must be a number in \[0, 1\)"),
        ("mscoco", "alpha=0.5", "captions may lack a foreground"),
    ],
)
def test_settings_of_captions_that_cannot_run(study: str, setting: str, reason: str) -> None:
    unit = "mosaics" if "alpha" in setting else "flops"
    with pytest.raises(RequestError, match=reason):
        plan(study, setting, "seed=0", "paradigm=soft", f"budget_unit={unit}")


def test_the_presets_of_hatexplain_are_the_published_settings() -> None:
    """Appendix A.3, and what the published scripts add."""
    maker = CellMaker(nominal)
    for preset, lvml in (("paper", "lvml"), ("scripts", "lvml-logits")):
        cells = plan("hatexplain", preset=preset).cells
        for architecture in ("embedding", "self-attention"):
            of_seed = [c for c in cells if c.architecture == architecture and c.seed == 0]
            assert len({cell.comparison_id for cell in of_seed}) == 1
            for name in ("soft", "hard", lvml):
                rates = {cell.lr for cell in of_seed if cell.paradigm == name}
                assert rates == {0.5, 0.3, 0.1, 0.05, 0.01}
            hybrids = [cell.schedule.phases for cell in of_seed if cell.paradigm == "hybrid"]
            assert {(soft.lr, hard.lr) for soft, hard in hybrids} == {(0.1, 0.01)}
            assert len(of_seed) == 15 + len(hybrids)
        for cell in cells:
            assert (cell.batch_size, cell.momentum, cell.options.get("min_count")) == (256, 0.9, 1)
            assert (cell.n, cell.validation_size, cell.test_size) == (15_383, 1_922, 1_924)
            rule, inference = ("majority", None) if preset == "paper" else ("first", "soft")
            assert (cell.options["label_rule"], cell.options["rationale_rule"]) == (rule, rule)
            assert cell.inference == inference
            flops = cost.training_flops("soft", maker.flops(cell), cell.m)
            assert cell.budget.amount == math.ceil(550 * cell.n * flops)


def test_the_paper_preset_of_fixed_focus_is_the_published_setting() -> None:
    """Sections 3.1 and 3.2, and what the published scripts add."""
    for preset, rates in (
        ("paper", {"cifar10": {0.004}, "cifar100": {0.004}}),
        ("tuned", {"cifar10": {0.01, 0.005}, "cifar100": {0.005, 0.001, 0.01}}),
    ):
        cells = plan("fixed-focus", preset=preset).cells
        assert {cell.alpha for cell in cells} == {0.2, 0.4, 0.6, 0.8, 1.0}
        for cell in cells:
            linear = cell.task == "linear-orthogonal"
            assert (cell.m, cell.n) == ((20, 5_000) if linear else (5, 10_000))
            assert cell.options.get("num_classes") == (20 if linear else None)
            assert cell.batch_size == 256
            assert cell.budget.amount == 100 * cell.n
            assert len(cell.evaluation_points) == 101  # each epoch
        for task, expected in rates.items():
            assert {cell.lr for cell in cells if cell.task == task} == expected
    chosen = {(c.task, c.paradigm): c.lr for c in cells}
    assert chosen["cifar10", "hard"] == 0.005
    assert chosen["cifar100", "soft"] == 0.005
    assert chosen["cifar100", "hard"] == 0.001


def test_the_paper_preset_of_linear_orthogonal_has_the_pairs_of_figure_4() -> None:
    pairs = {
        (cell.m, cell.options.get("num_classes"))
        for cell in plan("linear-orthogonal", preset="paper").cells
    }
    assert pairs >= {(20, 20), (100, 1_000)}


def test_axes_may_depend_on_axes_that_depend_on_others() -> None:
    space = SearchSpace(
        name="two",
        task="digits",
        about="",
        presets={
            "quick": Preset(
                about="",
                axes={
                    **SPACES["digits"].presets["quick"].axes,
                    "m": (5, 10),
                    "paradigm": ("soft", "hard"),
                    "lr": By("m", {5: By("paradigm", {"hard": (0.5,)}, (0.1, 0.2))}, (0.3,)),
                    "seed": (0,),
                },
            )
        },
    )
    cells = make_plan(space, "quick", resolve(space, "quick", ()), nominal).cells
    assert {(cell.m, cell.paradigm, cell.lr) for cell in cells} == {
        (5, "soft", 0.1),
        (5, "soft", 0.2),
        (5, "hard", 0.5),
        (10, "soft", 0.3),
        (10, "hard", 0.3),
    }


def test_a_study_of_several_tasks_keeps_their_settings_apart() -> None:
    cells = plan("fixed-focus", "alpha=0.2,none", "seed=0").cells
    assert {cell.task for cell in cells} == {"digits", "linear-orthogonal"}
    for cell in cells:
        assert cell.architecture == ("linear" if cell.options.get("num_classes") else "perceptron")
    only = plan("fixed-focus", "architecture=scripts", "task=cifar10", "seed=0").cells
    assert {(cell.task, cell.m, cell.architecture) for cell in only} == {("cifar10", 5, "scripts")}


def test_a_held_attention_is_compared_by_epochs_in_any_study() -> None:
    laid_out = plan("digits", "alpha=none,0.5", "seed=0")
    units = {(cell.alpha, cell.budget.unit) for cell in laid_out.cells}
    assert units == {(None, "flops"), (0.5, "mosaics")}
    held = {cell.paradigm for cell in laid_out.cells if cell.alpha is not None}
    assert held == {"soft", "hard", "lvml"}
    assert all("soft, hard, lvml" in skip.reason for skip in laid_out.skipped)


def test_mosaics_may_be_the_budget_of_any_study() -> None:
    cells = plan("digits", "budget_unit=mosaics", "epochs=3", "paradigm=soft,lvml").cells
    assert {(c.budget.amount, c.budget.unit) for c in cells} == {(3 * 2_000, "mosaics")}


@pytest.mark.parametrize(
    ("study", "assignments", "message"),
    [
        ("fixed-focus", ["alpha=1.5"], r"alpha must be a number in \[0, 1\], got 1.5"),
        ("fixed-focus", ["alpha=x"], "alpha takes a number or none, got 'x'"),
        ("fixed-focus", ["task=cifar"], "unknown task 'cifar'.*cifar10"),
        (
            "fixed-focus",
            ["num_classes=5"],
            "num_classes is for linear-orthogonal, not for digits",
        ),
        (
            "linear-orthogonal",
            ["num_classes=none"],
            "num_classes takes a whole number, got 'none'",
        ),
        ("linear-orthogonal", ["num_classes=1"], "num_classes must be an integer >= 2, got 1"),
        ("linear-orthogonal", ["m=1"], "m must be an integer >= 2, got 1"),
        ("digits", ["alpha=0.5", "paradigm=hybrid"], "is defined for soft, hard, lvml"),
        ("digits", ["alpha=0.5", "budget_unit=flops"], "its budget_unit is mosaics"),
        ("digits", ["budget_unit=seconds"], "unknown budget_unit 'seconds'"),
        ("digits", ["task=cifar10"], "unknown architecture for cifar10 'perceptron'"),
    ],
)
def test_settings_without_a_meaning_are_refused(
    study: str, assignments: list[str], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        plan(study, *assignments)


def test_the_paper_preset_of_cifar10_is_the_published_grid() -> None:
    cells = plan("cifar10", preset="paper").cells
    assert {cell.m for cell in cells} == {5, 20}
    assert {cell.seed for cell in cells} == {0, 1, 2}
    rates = {
        name: sorted({cell.lr for cell in cells if cell.paradigm == name})
        for name in ("soft", "hard", "lvml", "hybrid")
    }
    soft = [0.0005, 0.001, 0.002, 0.004, 0.01, 0.02, 0.05, 0.1, 0.2]
    hard = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    assert rates == {"soft": soft, "lvml": soft, "hard": hard, "hybrid": [0.005, 0.01, 0.02]}
    hybrids = [cell for cell in cells if cell.paradigm == "hybrid"]
    assert {cell.schedule.phases[1].lr for cell in hybrids} == {0.0025, 0.005, 0.01}
    assert sorted({cell.switch_point for cell in hybrids}) == [i / 10 for i in range(1, 10)]
    assert len(hybrids) == 2 * 3 * 3 * 3 * 9
    assert {cell.n for cell in cells} == {10_000}
    assert {cell.architecture for cell in cells} == {"scripts"}


def test_the_hard_rate_of_a_cifar100_hybrid_depends_on_m() -> None:
    hybrids = [c for c in plan("cifar100", preset="paper").cells if c.paradigm == "hybrid"]
    by_m = {m: {c.schedule.phases[1].lr for c in hybrids if c.m == m} for m in (5, 20)}
    assert by_m == {5: {0.0005, 0.001, 0.002}, 20: {0.0035, 0.007, 0.014}}


def test_set_narrows_and_widens_any_axis() -> None:
    sets = ("lr=0.01,0.05", "m=5,10", "paradigm=soft,hybrid", "switch_point=0.2,0.4")
    laid_out = plan("digits", *sets, "seed=0-2,7")
    cells = laid_out.cells
    assert {cell.lr for cell in cells} == {0.01, 0.05}
    assert {cell.m for cell in cells} == {5, 10}
    assert {cell.paradigm for cell in cells} == {"soft", "hybrid"}
    assert {cell.seed for cell in cells} == {0, 1, 2, 7}
    assert len(cells) == 2 * 4 * (2 + 2 * 2)
    # The second phase keeps the first one's rate unless hard_lr says otherwise.
    assert all(len({p.lr for p in cell.schedule.phases}) == 1 for cell in cells)
    other = plan("digits", "paradigm=hybrid", "hard_lr=0.3,same", "lr=0.1")
    assert {c.schedule.phases[1].lr for c in other.cells} == {0.3, 0.1}


def test_all_cells_of_a_comparison_share_one_budget() -> None:
    for (m, _), cells in itertools.groupby(
        sorted(plan("digits", "m=5,10").cells, key=lambda c: (c.m, c.comparison_id)),
        key=lambda c: (c.m, c.comparison_id),
    ):
        assert len({cell.budget for cell in cells}) == 1, m


def test_seeds_vary_slowest() -> None:
    seeds = [cell.seed for cell in plan("digits").cells]
    assert seeds == sorted(seeds)


CHOICES = {
    "seed": [0, 1, 2, 3],
    "lr": [0.01, 0.03, 0.1],
    "switch_point": [0.2, 0.4, 0.7],
    "paradigm": ["soft", "hard", "lvml", "hybrid"],
    "m": [3, 5],
}
grids = st.fixed_dictionaries(
    {axis: st.lists(st.sampled_from(of), min_size=1, unique=True) for axis, of in CHOICES.items()}
)


@given(grids, grids)
@settings(max_examples=40)
def test_a_wider_grid_only_adds_cells(some: dict[str, list], more: dict[str, list]) -> None:
    """plan(grid) + plan(wider grid) is plan(wider grid), whatever is widened."""
    wider = {axis: list(dict.fromkeys([*some[axis], *more[axis]])) for axis in CHOICES}

    def planned(grid: dict[str, list], finished: set[str] = frozenset()) -> Plan:
        sets = [f"{axis}={','.join(map(str, values))}" for axis, values in grid.items()]
        return plan("digits", *sets, finished=finished)

    ids = {cell.id for cell in planned(some).cells}
    whole = {cell.id for cell in planned(wider).cells}
    rest = planned(wider, ids)
    assert ids <= whole
    assert {cell.id for cell in rest.to_run} == whole - ids
    assert rest.finished == ids


def test_more_foregrounds_than_segments_are_skipped_with_the_reason() -> None:
    laid_out = plan("foregrounds", "m=4,12", "foregrounds=2,4", "distractors=0", "paradigm=soft")
    assert {(cell.m, cell.foregrounds) for cell in laid_out.cells} == {(4, 2), (12, 2), (12, 4)}
    assert "less than m=4" in laid_out.skipped[0].reason


def test_cells_without_a_step_in_a_phase_are_skipped_with_the_reason() -> None:
    laid_out = plan("digits", "epochs=0.2", "n=100", "batch_size=10", "switch_point=0.05,0.5")
    skipped = {skip.what.split(" ")[0] for skip in laid_out.skipped}
    assert skipped == {"hybrid"}
    assert "no step for its soft phase" in laid_out.skipped[0].reason
    with pytest.raises(RequestError, match="nothing to run in this grid"):
        plan("digits", "epochs=0.001", "n=10")


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("lr=0", "lr must be a finite number > 0, got 0.0"),
        ("lr=-0.1", "lr must be a finite number > 0"),
        ("lr=nan", "lr must be a finite number > 0"),
        ("lr=fast", "--set lr=fast: lr takes a number, got 'fast'"),
        ("lr=", "lr takes a number, got ''"),
        ("lr", r"--set takes axis=value\[,value...\], got 'lr'"),
        ("m=1", "m must be an integer >= 2, got 1"),
        ("m=5.5", "m takes a whole number, got '5.5'"),
        ("n=0", "n must be an integer >= 1, got 0"),
        ("switch_point=1", r"switch_point must be a number in \(0, 1\)"),
        ("switch_point=0", r"switch_point must be a number in \(0, 1\)"),
        ("epochs=0", "epochs must be a finite number > 0, got 0"),
        ("epochs=inf", "epochs must be a finite number > 0"),
        ("epochs=1e30", "budget must be an integer > 0 and <"),
        ("momentum=1", "momentum must be"),
        ("width=0", r"width must be a number in \(0, 1000\]"),
        ("width=inf", r"width must be a number in \(0, 1000\]"),
        ("width=1e9", r"width must be a number in \(0, 1000\]"),
        ("m=1000000000", "m must be at most 100,000"),
        ("test_size=1000000000000", "test_size must be at most"),
        ("evaluations=1000000000", "evaluations must be at most 10,000"),
        ("seed=99999999999999999999", "seed must be < 2"),
        ("batch_size=0", "batch_size must be an integer >= 1"),
        ("evaluations=0", "evaluations must be an integer >= 1, got 0"),
        ("test_size=0", "test_size must be an integer >= 1"),
        ("seed=5-2", "a range runs upwards"),
        ("seed=0-9999999999", "at most 1,000,000 values"),
        ("seed=-1", "seed must be an integer >= 0, got -1"),
        ("confirm=x", "confirm takes a whole number or none, got 'x'"),
        ("learning_rate=0.1", r"^unknown axis 'learning_rate'\. Did you mean 'lr'\?$"),
        ("bs=32", r"^unknown axis 'bs'\. Did you mean 'batch_size'\?$"),
        ("num_segments=5", r"^unknown axis 'num_segments'\. Did you mean 'm'\?$"),
        ("wd=0.1", "Did you mean 'weight_decay'"),
        ("nonsense=1", r"^unknown axis 'nonsense'\. Valid: seed, confirm, task, "),
        ("paradigm=REINFORCE", "Did you mean 'hard-sampled'"),
        ("paradigm=marginal", "Did you mean 'lvml'.* Valid: soft, hard,"),
        ("task=CIFAR-10", "Did you mean 'cifar10'"),
        ("weight_decay=0.1", "weight_decay must be none without the optimiser adam, got 0.1"),
        ("weight_decay=0", "weight_decay must be a finite number > 0, got 0.0"),
        ("lr=1e400", "lr must be a finite number > 0, got inf"),
        ("seed=1e-3", "seed takes a whole number, got '1e-3'"),
        ("seed=inf", "seed takes a whole number, got 'inf'"),
        ("seed=nan", "seed takes a whole number, got 'nan'"),
        ("sed=1", "Did you mean 'seed'"),
        ("patience=3", "Valid: seed, confirm, task, "),
        ("seed=12345678901234567891.0", "seed takes a whole number, got '12345678901234567891.0'"),
        ("hard_drop_at=1", r": hard_drop_at must be a number in \(0, 1\), got 1.0"),
        ("paradigm=sotf", "Did you mean 'soft'"),
        ("architecture=script", "unknown architecture"),
        ("split=shared", "Did you mean 'shared-base'"),
    ],
)
def test_bad_values_are_named(assignment: str, message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        plan("digits", assignment)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("assignment", "same"),
    [
        ("seed=3.0", "seed=3"),
        ("n=1e3,500.0", "n=1000,500"),
        ("depth=\N{MINUS SIGN}1", "depth=-1"),
        ("seed=0\N{EN DASH}2", "seed=0-2"),
        ("drop_at=None", "drop_at=none"),
        ("normalisation=None", "normalisation=none"),
        ("foreground=None", "foreground=none"),
    ],
)
def test_numbers_are_taken_as_tables_and_documents_write_them(assignment: str, same: str) -> None:
    written, typed = (plan("digits", each, "paradigm=soft") for each in (assignment, same))
    assert [cell.id for cell in written.cells] == [cell.id for cell in typed.cells]


def test_a_plan_says_which_values_there_are() -> None:
    """Of each axis that has several, as `--set` takes them; of others nothing."""
    assert plan("digits", "seed=0-2,7", "hard_lr@m:10=same,0.1").grid == (
        "seed=0-2,7",
        "confirm=100-111",
        "paradigm=soft,hard,lvml,hybrid",
        "lr@soft=0.01,0.05,0.2 lr@hard=0.03,0.1,0.3 lr@lvml=0.05,0.15,0.4 "
        "lr@hybrid=0.003,0.03,0.3",
        "hard_lr=same,0.1",
        "switch_point=0.05,0.3,0.95",
    )
    assert "lr@soft,lvml,hybrid=0.1,0.2 lr@hard=0.5,1" in (
        plan("digits", "lr=0.1,0.2", "lr@hard=0.5,1.0").grid
    )
    assert plan("digits", "paradigm=soft", "seed=0", "confirm=none", "lr=0.1").grid == ()
    described = describe(timed(plan("digits")), "")
    assert "in this grid, as --set takes it:\n seed=0-1\n confirm=100-111\n" in described


@pytest.mark.parametrize("study", SPACES)
def test_the_values_that_a_plan_says_give_the_same_cells(study: str) -> None:
    made = plan(study)
    again = plan(study, *" ".join(made.grid).split())
    assert [cell.id for cell in again.cells] == [cell.id for cell in made.cells]


def test_an_axis_is_set_once() -> None:
    with pytest.raises(RequestError, match="--set names lr twice"):
        plan("digits", "lr=0.1", "lr=0.2")


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(RequestError, match="unknown preset of digits 'papers'"):
        plan("digits", preset="papers")


def test_an_axis_without_values_asks_for_one() -> None:
    space = SearchSpace("odd", "digits", "", {"quick": Preset("", {"m": (5,)})})
    axes = resolve(space, "quick", [])
    with pytest.raises(RequestError, match="no value for the axis"):
        make_plan(space, "quick", axes, nominal)


def test_a_huge_grid_is_refused_rather_than_laid_out() -> None:
    with pytest.raises(RequestError, match=r"more than 1,000,000\. Narrow it"):
        plan("digits", "seed=0-999999", "paradigm=soft,hard")


def rates(laid_out: Plan) -> set[tuple[str, int, float]]:
    """(paradigm, m, lr of the first phase) of the cells."""
    return {(cell.paradigm, cell.m, cell.lr) for cell in laid_out.cells}


def test_rates_by_paradigm_are_one_grid() -> None:
    """A.2 of CIFAR-10: .01 for soft, .005 for hard, and a hybrid of both."""
    cells = plan(
        "digits", "lr=0.01", "lr@hard=0.005", "hard_lr=0.005", "paradigm=soft,hard,hybrid",
        "switch_point=0.2",
    ).cells  # fmt: skip
    texts = {cell.schedule.text for cell in cells}
    assert texts == {"soft lr=0.01", "hard lr=0.005", "soft lr=0.01 until 0.2 > hard lr=0.005"}
    assert len({cell.comparison_id for cell in cells}) == 1


def test_values_by_paradigm_replace_those_of_the_preset_there_only() -> None:
    preset, changed = (
        rates(plan("cifar10", "m=5", "seed=0", *more, preset="paper"))
        for more in ((), ("lr@hard=0.3",))
    )
    hard = {point for point in preset if point[0] == "hard"}
    assert len(hard) > 1
    assert changed == (preset - hard) | {("hard", 5, 0.3)}


def test_the_narrower_condition_holds_in_whatever_order_they_are_typed() -> None:
    asked = [
        "lr=0.1", "lr@hard,lvml=0.2", "lr@m:20@hard=0.3", "m=5,20", "paradigm=soft,hard,lvml",
        "seed=0",
    ]  # fmt: skip
    expected = {
        ("soft", 5, 0.1), ("hard", 5, 0.2), ("lvml", 5, 0.2),
        ("soft", 20, 0.1), ("hard", 20, 0.3), ("lvml", 20, 0.2),
    }  # fmt: skip
    for order in itertools.permutations(asked[:3]):
        assert rates(plan("digits", *order, *asked[3:])) == expected


def test_tasks_of_one_study_keep_their_own_defaults_and_bounds() -> None:
    axes = resolve(SPACES["digits"], "quick", ["task=digits,mscoco"])
    for task, usual in (("digits", "sgd"), ("mscoco", "adam")):
        assert values_at(axes["optimiser"], "optimiser", {"task": task}) == (usual,)
    both = ["task=digits-one-shot,omniglot", "pixels@omniglot=80"]
    assert resolve(SPACES["one-shot"], "quick", both)["pixels"]
    with pytest.raises(RequestError, match="num_classes must be given, as linear-orthogonal has"):
        plan("fixed-focus", "num_classes=none")


def test_an_axis_that_the_tasks_lack_may_be_none() -> None:
    assert plan("digits", "window=none").cells == plan("digits").cells
    with pytest.raises(RequestError, match="window is of series, not of digits"):
        plan("digits", "window=7")


def test_of_conditions_alike_the_last_holds() -> None:
    asked = ["lr@m:5=0.2", "lr@hard=0.3"]
    for order, rate in ((asked, 0.3), (asked[::-1], 0.2)):
        found = rates(plan("digits", *order, "m=5"))
        assert {lr for name, _, lr in found if name == "hard"} == {rate}
    said = rates(plan("digits", *asked, "lr@hard@m:5=0.4", "m=5", "lr=1"))
    assert {lr for name, _, lr in said if name == "hard"} == {0.4}
    apart = rates(plan("digits", "lr@soft=0.2", "lr@hard=0.3", "m=5"))
    assert ("soft", 5, 0.2) in apart
    assert ("hard", 5, 0.3) in apart


def test_values_by_task_and_by_numbers() -> None:
    cells = plan("fixed-focus", "n@digits=500", "lr@alpha:0.2=7", "alpha=0.2,1", "seed=0").cells
    assert {(cell.task, cell.n) for cell in cells} == {
        ("digits", 500),
        ("linear-orthogonal", 10_000),
    }
    assert {cell.alpha for cell in cells if cell.lr == 7} == {0.2}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("lr@hrad=0.1", "unknown paradigm or task in lr@ 'hrad'. Did you mean 'hard'"),
        ("lr@=0.1", "unknown paradigm or task in lr@ ''"),
        ("lr@hard,sotf=0.1", "unknown paradigm 'sotf'. Did you mean 'soft'"),
        ("lr@hard-sampled=0.1", "the study has no paradigm hard-sampled, only soft, hard, lvml"),
        ("lr@cifar10=0.1", "the study has no task cifar10, only digits"),
        ("lr@m:7=0.1", "--set lr@m:7: the study has no m 7, only 10"),
        ("lr@mm:7=0.1", "unknown axis in lr@mm:7 'mm'"),
        ("lr@m:x=0.1", "--set lr@m:x: m takes a whole number, got 'x'"),
        ("lr@hard=fast", "--set lr@hard=fast: lr takes a number, got 'fast'"),
        ("lr@hard", "got 'lr@hard'"),
        ("lrr@hard=0.1", "unknown axis 'lrr'. Did you mean 'lr'"),
        ("lr@hard@soft=0.1", "every @ names another axis"),
        ("hard_lr@hard=0.1", "only a hybrid has a hard_lr.*lr@hard=VALUE"),
        ("lr@hard=0", "lr must be a finite number > 0, got 0.0"),
        ("seed@hard=0-11", "seed cannot have values by paradigm"),
        ("confirm@hard=100", "confirm is the same for all cells of a study and takes no @"),
        ("lr@confirm:100=0.1", "confirm is the same for all cells .* nothing depends on it"),
        ("lr@lr:0.01=0.1", "lr cannot have values by lr"),
    ],
)
def test_bad_conditions_are_named(assignment: str, message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        plan("digits", assignment)
    assert "\n" not in str(caught.value)


def test_values_at_a_place_are_set_once() -> None:
    with pytest.raises(RequestError, match=r"--set names lr@m:10@hard twice"):
        plan("digits", "lr@hard@m:10=0.1", "lr@m:10@hard=0.2")


@given(st.text(max_size=30) | st.from_regex(r"(lr|n|task)(@(hard|digits|m:10|\w:?)){1,2}=\w*"))
@settings(max_examples=300)
def test_any_text_after_set_is_understood_or_refused(text: str) -> None:
    try:
        axes = resolve(SPACES["digits"], "quick", [text])
    except RequestError:
        return
    name = text.partition("=")[0].partition("@")[0]
    assert axes[name]


@pytest.mark.parametrize(
    ("study", "preset"), [(study, name) for study in SPACES for name in SPACES[study].presets]
)
def test_presets_declare_known_axes(study: str, preset: str) -> None:
    declared = SPACES[study].presets[preset].axes
    axes = KINDS[SPACES[study].kind].axes(tuple(tasks.TASKS))
    assert set(declared) <= set(axes)
    for values in declared.values():
        if isinstance(values, By):
            assert values.axis in axes


@given(st.integers(0, 10_000), st.integers(1, 256))
def test_cells_never_share_a_core(cells: int, cores: int) -> None:
    concurrent, threads = share_cores(cells, cores)
    assert concurrent >= 1
    assert threads >= 1
    assert concurrent * threads <= cores
    assert concurrent <= max(cells, 1)


def threads_of(made: Plan) -> tuple[int, int]:
    return made.concurrent, made.threads


def test_threads_of_a_trial_can_be_chosen_and_leave_fewer_trials_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("study.plan.divide.usable_cores", lambda: 8)
    made = replace(plan("digits"), gpus_per_trial=0)
    assert threads_of(with_packing(made, Packing())) == (8, 1)
    assert threads_of(with_packing(made, Packing(), threads=3)) == (2, 3)
    with pytest.raises(RequestError, match="--threads 9, but this process may use 8 cores"):
        with_packing(made, Packing(), threads=9)


def test_a_cluster_is_divided_by_its_room_whatever_the_cores_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nodes come and go, and numbers must not follow them: one thread, unless chosen."""
    made = plan("digits")
    room = {1: 30, 4: 10}.__getitem__
    for cores in (1, 64):
        monkeypatch.setattr("study.plan.divide.usable_cores", lambda cores=cores: cores)
        assert threads_of(with_packing(made, Packing(), room=room)) == (30, 1)
        assert threads_of(with_packing(made, Packing(), room=room, threads=4)) == (10, 4)
    few = replace(made, cells=made.cells[:3])
    assert threads_of(with_packing(few, Packing(), room=room)) == (3, 1)


def timed(made: Plan) -> Plan:
    """With an hour for each cell."""
    return replace(made, costs={cell.id: Seconds(3600.0, 0.0) for cell in made.cells})


@pytest.mark.parametrize("study", ["digits", "hatexplain", "fixed-focus"])
def test_a_plan_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, study: str) -> None:
    made = timed(plan(study))
    about = SPACES[study].presets["quick"].about
    monkeypatch.setenv("COLUMNS", "400")
    wide = describe(made, about)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = describe(made, about)
    assert max(map(len, wide.splitlines())) > 40 >= max(map(len, narrow.splitlines()))
    assert set(re.split(r":?\s+", wide)) <= set(re.split(r":?\s+", narrow))


@pytest.mark.parametrize(
    ("study", "missing"),
    [
        ("cifar10", "data not at hand"),
        ("mscoco", "data, or the weights of lite0, are not at hand"),
    ],
)
def test_a_plan_says_what_is_not_at_hand(study: str, missing: str) -> None:
    assert f"\n{missing}: " in describe(timed(plan(study, "seed=0")), "")


def test_what_a_plan_costs() -> None:
    """GPU hours are those of the trials, a share of a GPU as a share; the rest is cores."""
    made = timed(plan("digits"))
    count = len(made.cells)

    def cost(price: float | None = None, **changes: Any) -> str:
        described = describe(replace(made, **changes), "", price)
        return next((line for line in described.splitlines() if "hours:" in line), "")

    assert cost(gpus_per_trial=1).startswith(f"estimated GPU hours: {count:.3g} (")
    assert f": {count / 2:.3g}, which cost {count:.2f} at 2 each" in cost(2, gpus_per_trial=0.5)
    assert cost(gpus_per_trial=0) == ""
    assert f"core hours: {4 * count:.3g}, " in cost(0.1, gpus_per_trial=0, threads=4)
    assert f"on {made.where}" in describe(made, "")


@pytest.mark.parametrize(
    ("epochs", "unit", "text"),
    [
        (1.5, "flops", "of soft, of which whole batches spend 1.04e+08"),
        (2, "flops", "= 2 epochs of soft"),
        (1.5, "mosaics", "384 mosaics = 1.5 epochs, of which whole batches spend 256"),
    ],
)
def test_a_plan_says_what_whole_batches_spend_of_the_budget(
    epochs: float, unit: str, text: str
) -> None:
    """Where that is less; by the word of the report, which counts what was spent, too."""
    sizes = ("n=256", "batch_size=256", f"epochs={epochs}", f"budget_unit={unit}")
    lines = describe(timed(plan("digits", "paradigm=soft", *sizes)), "").splitlines()
    (line,) = (line for line in lines if line.startswith("budget a cell: "))
    assert line.endswith(text)
