"""What cannot be registered is refused in one line, and so is what cannot be imported later."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from unittest.mock import patch

import pytest

import analysis.kinds
from study import commands, run
from study.cell.column_groups import GROUPS
from study.cell.settings import SETTINGS
from study.errors import SYNONYMS, nearest
from study.kinds import KINDS
from study.parts import register_synonyms
from study.reported import FUNCTIONS, SECTIONS, SectionOf
from study.terminal.command import COMMANDS, UNUSABLE
from tests.conftest import PROJECT
from tests.made_up.commands import one_line, refusal
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.parts import forgotten

NEEDED = """
from dataclasses import make_dataclass, replace
from study.cell.declared import Whole, declared
from study.cell.settings import Settings
from study.parts import *
from study.reported import SectionOf
from study.tasks import MOSAICS, TASKS
from study.tasks.task import Measure

def like_digits(**modality):
    return replace(TASKS["digits"], modality=replace(MOSAICS, **modality))

def settings(axis, **more):
    field = (axis, int, declared("a size", Whole(1), 3))
    return make_dataclass("Mine", [field], bases=(Settings,), namespace=more, frozen=True)
"""
"""Of the calls below, before them in their file."""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten(), patch.dict(SYNONYMS):
        known = (COMMANDS, FUNCTIONS, GROUPS, KINDS, SECTIONS, SETTINGS)
        kept = [dict(each._parts) for each in known]
        yield
        for each, parts in zip(known, kept, strict=True):
            each._parts = parts


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("register_model('mine', ('digits',))(lambda *sizes: 1)", "<lambda> must be a class or"),
        ("register_settings(Whole)", "Whole is not a frozen dataclass on study.cell.settings."),
        ("register_settings(type('Mine', (Settings,), {'key': 'mine'}))", "Mine is not a frozen"),
        ("register_settings(settings('size'))", "study.cell.settings.Settings with a key."),
        ("register_settings(settings('width', key='mine'))", "the axes width of Mine are taken"),
        ("register_settings(settings('hidden', key='mine'))", "the axes hidden of Mine are taken"),
        ("register_settings(settings('size', key='decoder'))", "the settings decoder is taken by"),
        (
            "register_task('mine', like_digits(settings='nothing'))",
            "have the settings 'nothing', which are not registered: call register_settings",
        ),
        (
            "register_task('mine', like_digits(measures=(Measure('nothing', 'x'),)))",
            "is measured by nothing, of which results have no column: call register_columns",
        ),
        (
            "register_kind('mine', 'nowhere:KIND')",
            "'nowhere:KIND', the place of a part, cannot be imported (ModuleNotFoundError",
        ),
        (
            "register_kind('mine', 'not a place')",
            "'not a place', the place of a part, cannot be imported (ValueError",
        ),
        (
            "register_kind('mine', 'study.kinds:KINDS')",
            "study.kinds:KINDS must be a study.kind.Kind, got",
        ),
        ("register_kind('training', 'study.kinds:KINDS')", "the kind training is taken by the"),
        (
            "register_columns('Mine', 'lost', {'mine': ('number', 'x')})",
            "must be one of set up, found, measured",
        ),
        (
            "register_columns('Mine', 'found', {'mine': ('decimal', 'x')})",
            "types are text, whole number",
        ),
        (
            "register_columns('Mine', 'found', {'mine': 'number'})",
            "'number', must be (type, meaning)",
        ),
        (
            "register_columns('Mine', 'found', {'cider': ('number', 'x')})",
            "the column cider is taken",
        ),
        (
            "register_columns('Of captions', 'found', {})",
            "the columns Of captions is taken by the",
        ),
        (
            "register_columns('Mine', 'found', {'mine': ('number', 'x')})",
            "the columns mine come too late: results would be read without them. Register",
        ),
        ("register_section('mine')", "'mine' is not a study.reported.SectionOf"),
        (
            "register_section(SectionOf('mine', 'mine'))",
            "section mine shows no cells",
        ),
        (
            "register_section(SectionOf('mine', 'mine', tasks='digits'))",
            "section mine shows no cells",
        ),
        ("register_function('mine')", "the place of a function is module:name, got 'mine'"),
        ("register_command('run', 'mine', '')", "the command run is taken by the project"),
    ],
)
def test_what_cannot_be_registered_is_one_line_that_says_what_to_do(
    call, message, tmp_path, capsys
):
    file = tmp_path / "my_parts.py"
    file.write_text(NEEDED + call)
    status, line = one_line(run.main, capsys, "digits", "--plan", "--with", str(file))
    assert status == UNUSABLE
    assert message in line


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "from study.parts import load; load(['my_parts.py'])",
            "my_parts.py registers columns, which all who read the results have to know",
        ),
        (
            "import my_parts, study.results",
            "a package brings columns that results have already, accuracy: rename them there",
        ),
    ],
)
def test_columns_come_with_a_package_and_take_no_place_of_others(code, message, tmp_path):
    """In a new process, where results were not read yet."""
    call = "register_columns('Mine', 'found', {'accuracy': ('number', 'x')})"
    (tmp_path / "my_parts.py").write_text(NEEDED + call)
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert message in ended.stderr.splitlines()[-1]


def test_a_command_that_is_not_there_is_one_line():
    COMMANDS["mine"] = ("nowhere.to_be", "is none")
    message = refusal(lambda: commands._run("mine", []))
    assert "'nowhere.to_be:main', the place of a part, cannot be imported" in message


def test_a_section_that_is_not_there_is_one_line(tmp_path):
    results = make_results(tmp_path / "results")
    write(results, make_cell(task="mine"))
    SECTIONS["nowhere.to_be"] = SectionOf("nowhere.to_be", "mine", tasks=("mine",))
    message = refusal(lambda: analysis.kinds.find(results))
    assert "'nowhere.to_be', the place of a part, cannot be imported" in message


def test_synonyms_are_added_to_those_that_a_name_has():
    assert nearest("step_size", ["lr", "m"]) == "lr"
    register_synonyms({"lr": "pace"})
    assert {nearest(each, ["lr", "m"]) for each in ("step_size", "pace")} == {"lr"}
