"""The house: imports run downwards, from folder to folder, and the core needs no Ray or MLflow.

Each storey of the core imports from those below it, never from itself or above. Chapters stand on
all of it and beside each other: the core knows none (`test_chapters.py`). Inside a folder modules
import each other, without a circle. A new file needs no line here; a new folder of the core needs
one.
"""

from __future__ import annotations

import ast
import functools
import graphlib
from pathlib import Path

from tests.made_up.commands import python

PROJECT = Path(__file__).parents[2]

STOREYS = [
    ["study.run"],
    ["study.drive", "study.track", "analysis.report"],
    ["analysis.watch"],
    ["analysis.conclude"],
    ["analysis.kinds"],
    ["analysis.page"],
    ["analysis.page.across"],
    ["analysis.page.sentences", "analysis.page.where_it_looks"],
    ["analysis"],
    ["study.run_options", "study.check", "study.search"],
    ["study.plan", "analysis.section"],
    ["analysis.digest"],
    ["analysis.figures"],
    ["study.launch", "study.tracking", "study.compact", "study.commands"],
    ["analysis.digest.measures", "analysis.settings"],
    ["analysis.digest.read", "analysis.forms"],
    ["analysis.rules"],
    ["analysis.groups"],
    ["study.results"],
    ["study.train"],
    ["study.parts"],
    ["study.train.steps"],
    ["study.train.budget", "study.evaluate", "study.kinds"],
    ["study.kind", "study.request"],
    ["study.models"],
    ["study.tasks"],
    ["study.tasks.mosaics"],
    ["study.tasks.task", "study.terminal"],
    ["study.tasks.sources", "study.cell"],
    ["study.paradigms", "study.storage", "study.terminal.working"],
    ["search_spaces", "study.hardware", "study.reported", "study.tracking.looks"],
    ["search_spaces.open_questions"],
    ["search_spaces.base", "study.door"],
    ["study.errors", "study"],
]
"""From the roof down; the longest name that fits a module is its place."""

MOST_FILES = 15
MAY_IMPORT = {
    "ray": {"study.launch.tune", "study.launch.cluster", "study.launch.nodes"}
    | {"study.search.under_tune"},
    "mlflow": {"study.tracking.store", "study.tracking.making", "study.tracking.uris"},
    "optuna": {"study.search.search", "study.search.space"},
    "analysis": {"study.plan.choice", "study.drive.closing", "study.track"},
}
"""Package -> the only modules of `study` that know it."""

DOORS = (
    "study.results", "study.tasks", "study.terminal", "study.reported", "study.cell.declared",
    "study.door", "study.parts", "study.tracking.heat_map_image", "study.tracking.looks",
    "study.tracking.runs",
)  # fmt: skip
"""What `analysis` knows of `study`."""


def modules() -> dict[str, Path]:
    """Name -> file of every module of the project."""
    found = {}
    for package in (*CORE, "chapters"):
        for path in sorted((PROJECT / package).rglob("*.py")):
            parts = path.relative_to(PROJECT).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


CORE = ("study", "analysis", "search_spaces")
CHAPTERS = tuple(sorted(path.parent.name for path in (PROJECT / "chapters").glob("*/__init__.py")))
MODULES = modules()
OF_CORE = {name: path for name, path in MODULES.items() if name.partition(".")[0] in CORE}


@functools.cache
def imports(module: str) -> set[str]:
    """Every module that a module imports, wherever in its file."""
    return imported(MODULES[module]) - {module}


def imported(path: Path) -> set[str]:
    """The same of a file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            within = {f"{base}.{alias.name}" for alias in node.names} & MODULES.keys()
            names |= within | ({base} if len(within) < len(node.names) else set())
    return names


def place(module: str) -> str:
    """The entry of `STOREYS` that a module belongs to."""
    entries = [entry for storey in STOREYS for entry in storey]
    fitting = [entry for entry in entries if module == entry or module.startswith(f"{entry}.")]
    assert fitting, f"{module} has no storey"
    return max(fitting, key=len)


HEIGHT = {entry: -number for number, storey in enumerate(STOREYS) for entry in storey}


def test_imports_run_downwards():
    upwards = [
        f"{module} imports {name}, which does not stand below it"
        for module in OF_CORE
        for name in imports(module) & OF_CORE.keys()
        if place(name) != place(module) and HEIGHT[place(name)] >= HEIGHT[place(module)]
    ]
    assert not upwards


def test_no_modules_import_each_other():
    list(graphlib.TopologicalSorter({m: imports(m) for m in MODULES}).static_order())


def test_no_folder_is_crowded():
    folders = [path.parent for path in MODULES.values()]
    assert not {str(f) for f in folders if folders.count(f) > MOST_FILES}


def test_a_name_is_of_one_module():
    for package in (*CORE, *(f"chapters/{name}" for name in CHAPTERS)):
        names = [path.name for path in sorted((PROJECT / package).rglob("[!_]*.py"))]
        assert not {name for name in names if names.count(name) > 1}


def test_heavy_packages_have_one_door():
    for package, known in MAY_IMPORT.items():
        importing = {
            module
            for module in MODULES
            if module.startswith("study")
            and package in {name.split(".")[0] for name in imports(module)}
        }
        assert importing <= known


def test_analysis_knows_study_by_its_results_alone():
    known = {
        (module, name)
        for module in MODULES
        if module.startswith("analysis")
        for name in imports(module)
        if name.startswith("study.")
    }
    assert not [(module, name) for module, name in known if not name.startswith(DOORS)]


def test_the_core_runs_without_ray_and_mlflow(tmp_path, digits):
    """A trial needs torch, numpy, pandas and pyarrow (with fsspec, which torch brings)."""
    assert digits  # prepared before, as by the driver
    blocked = [
        "ray", "mlflow", "optuna", "matplotlib", "scipy", "torchvision", "analysis",
    ]  # fmt: skip
    code = f"""
import sys
for name in {blocked!r}:
    sys.modules[name] = None
from study import tasks
from study.cell import Cell, Schedule
from study.train.budget.cost import soft_epochs
from study.models import build
from study.results import Results
from study.launch.run_job import run_job
from study.cell.work import Job, Work
task = tasks.load("digits")  # the prepared form: without scikit-learn, too
flops = build("perceptron", "digits", (1, 8, 8), 3).flops((1, 8, 8))
cell = Cell(task="digits", data_digest=task.facts.digest, m=3, n=40, architecture="perceptron",
            schedule=Schedule.hybrid(.1, .1, .5), seed=0, budget=soft_epochs(2, flops, 3, 40),
            batch_size=8, train_metrics_size=20, validation_size=20, test_size=20)
results = Results({str(tmp_path)!r})
results.prepare()
work = Work(study="digits", results={str(tmp_path)!r}, code_version="test")
assert run_job(Job(((cell,),)), work) == {{cell.id: "done"}}
assert results.finished() == {{cell.id}}
loaded = [name for name in {blocked!r} if sys.modules.get(name) is not None]
assert not loaded, loaded
"""
    run = python("-c", code)
    assert run.returncode == 0, run.stderr


def test_nothing_heavy_is_imported_before_it_is_needed():
    """Ray and MLflow take seconds to import: `--help` and `--plan` do without them.

    What Tune calls, and what calls Optuna, is imported late as a whole.
    """
    early = {
        (module, name)
        for module, path in MODULES.items()
        for node in ast.parse(path.read_text()).body
        for name in named_by(node)
    }
    whole = {
        "study.launch.tune", "study.search.search", "study.search.space", "study.search.under_tune"
    }  # fmt: skip
    late = {"ray", "mlflow", "optuna", *whole}
    found = [(module, name) for module, name in early if {name, name.split(".")[0]} & late]
    assert {module for module, _ in found} == whole


def named_by(node: ast.stmt) -> set[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    return {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
