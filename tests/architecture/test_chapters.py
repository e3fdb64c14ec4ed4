"""The chapters: they come in by the door that outsiders use, and the core knows none of them."""

from __future__ import annotations

import ast
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib.metadata import distribution

import pytest

from search_spaces import STUDIES
from study import door, models, paradigms, tasks
from study.cell import Cell, Phase
from study.cell.column_groups import GROUPS
from study.cell.declared import axes_of
from study.cell.settings import SETTINGS
from study.kinds import KINDS
from study.reported import FUNCTIONS, SECTIONS
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA
from study.terminal.command import COMMANDS, DONE, UNUSABLE
from tests.architecture.test_architecture import (
    CHAPTERS,
    CORE,
    MODULES,
    OF_CORE,
    imported,
    imports,
)
from tests.conftest import PROJECT
from tests.made_up.commands import python

NEEDS: Mapping[str, set[str]] = {name: set() for name in CHAPTERS}
"""Chapter -> the others that it may import: none so far."""


HOMONYMS = {"attention", "linear", "texts", "weights"}
"""Names that mean something else in the core: a key of examples, a scale of a chart in MLflow, a
type of columns, and what networks learn."""


def brought() -> set[str]:
    """Every name that a chapter brings, unless the core has it, too."""
    registries = (
        STUDIES, tasks.TASKS, models.ARCHITECTURES, paradigms.REGISTERED, KINDS, COMMANDS,
        SETTINGS, SECTIONS, FUNCTIONS,
    )  # fmt: skip
    names = {name for each in registries for name in {*each} - {*each.core}}
    own = {name for task in tasks.TASKS.core for name in tasks.TASKS[task].options}
    columns = {name for group in GROUPS.values() for name in group.columns}
    options = {name for task in tasks.TASKS.values() for name in task.options} - own
    options |= {*tasks.places()}
    settings = {name for each in SETTINGS.values() for name in axes_of(each)}
    of_core = {*CELLS_SCHEMA.names, *EVALUATIONS_SCHEMA.names} - columns
    of_core |= {*axes_of(Cell), *axes_of(Phase), *(field.name for field in fields(Cell))}
    return (names | columns | options | settings) - of_core - HOMONYMS


def texts_of(module: str) -> Iterator[str]:
    """The strings of a module but its docstrings."""
    tree = ast.parse(OF_CORE[module].read_text())
    alone = {each.value for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in alone:
            yield node.value


def test_tests_that_are_for_all_import_no_chapter():
    """They take what each brings: see `tests.made_up.chapters`."""
    rooms = (PROJECT / "tests" / name for name in ("contracts", "golden", "made_up"))
    assert not [
        (path.name, name)
        for room in rooms
        for path in room.rglob("*.py")
        for name in imported(path)
        if name.removeprefix("tests.").startswith("chapters.")
    ]


def test_the_core_imports_no_chapter():
    assert not [
        (module, name)
        for module in OF_CORE
        for name in imports(module)
        if name.partition(".")[0] == "chapters"
    ]


def test_the_core_holds_no_name_that_a_chapter_brings():
    names = brought()
    assert {"mscoco", "heads", "bleu_4", "prune", "flow_time"} <= names
    assert not [(module, text) for module in OF_CORE for text in texts_of(module) if text in names]


def test_entry_points_are_the_folders_and_what_is_installed():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    declared = project["entry-points"][door.ENTRY_POINTS]
    assert declared == {name: f"chapters.{name}.parts" for name in CHAPTERS}
    installed = distribution("attention-study").entry_points.select(group=door.ENTRY_POINTS)
    assert {point.name: point.value for point in installed} == declared


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_imports_another_only_where_it_says_so(chapter):
    others = {f"chapters.{name}" for name in CHAPTERS if name not in {chapter, *NEEDS[chapter]}}
    mine = [name for name in MODULES if name.startswith(f"chapters.{chapter}")]
    assert not [
        (module, name)
        for module in mine
        for name in imports(module)
        if ".".join(name.split(".")[:2]) in others
    ]


def test_one_that_cannot_be_imported_costs_what_it_brings(tmp_path):
    """In a copy of the project."""
    for name in (*CORE, "chapters"):
        shutil.copytree(PROJECT / name, tmp_path / name)
    with (tmp_path / "chapters" / "series" / "task.py").open("a") as file:
        file.write("import nothing_there\n")
    refused, shown = (
        python("-m", "study.run", study, "--show", folder=tmp_path, PYTHONPATH=str(tmp_path))
        for study in ("series", "digits")
    )
    assert refused.returncode == UNUSABLE
    assert "unknown study 'series'" in refused.stderr
    assert shown.returncode == DONE
    for each in (refused, shown):
        (line,) = (line for line in each.stderr.splitlines() if "chapter" in line)
        assert "the chapter series brings is missing" in line
        assert "No module named 'nothing_there'" in line


TWO_THREADS = """
import importlib, threading
from study import tasks
begin = threading.Barrier(2)
def imports():
    begin.wait()
    importlib.import_module("chapters.texts.parts")
def reads():
    begin.wait()
    list(tasks.TASKS)
threads = [threading.Thread(target=each, daemon=True) for each in (imports, reads)]
for each in threads:
    each.start()
for each in threads:
    each.join(60)
    assert not each.is_alive(), "one waits for the other"
assert {"hatexplain", "series"} <= {*tasks.TASKS}
"""


def test_a_chapter_that_is_imported_waits_for_nobody_who_reads():
    done = python("-c", TWO_THREADS)
    assert done.returncode == 0, done.stderr
