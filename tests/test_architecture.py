"""The house: imports run downwards only, and the core runs where Ray and MLflow are missing."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from study.tasks.mosaics.mosaics import MosaicTask

PROJECT = Path(__file__).parents[1]

# Each storey may import from those below it and from its own, in this order. docs: the design.
STOREYS = [
    ["study.run", "study.track"],
    ["study.drive"],
    ["study.closing", "study.relog"],
    ["analysis"],
    [
        "study.launch.tune",
        "study.tracking.tracker",
        "study.compact",
        "study.options",
        "study.plan.dry_run",
        "study.repeat",
        "study.repetition",
    ],
    ["study.tracking.store"],
    ["study.launch.cluster", "study.search.search", "study.search.halving"],
    ["study.launch.nodes"],
    ["study.plan.describe", "study.launch.trial", "study.terminal.progress"],
    ["study.plan.estimate"],
    ["study.plan.plan", "study.search.space"],
    ["study.plan.axes", "study.train.loop", "study.plan.prefixes"],
    ["study.train.member", "study.train.checkpoints"],
    ["study.evaluate", "study.train.cost", "study.train.step"],
    ["study.results", "study.tasks", "study.models", "study.train.optimiser"],
    [
        "study.train.packs",
        "study.launch.jobs",
        "study.evaluate.heat_map",
        "study.tracking.heat_map_image",
        "study.evaluate.plausibility",
        "study.results.copies",
        "study.results.coverage",
        "study.results.parquet",
    ],
    ["study.results.schema", "study.storage.storage", "study.tracking.artifacts"],
    ["study.storage.urls"],
    ["study.theory"],
    [
        "study.cell",
        "search_spaces",
        "study.hardware",
        "study.launch.failures",
        "study.plan.overhead",
    ],
    ["study.paradigms"],
    ["study.terminal.command"],
    ["study.errors", "study.terminal", "study.cell.version", "study"],
]
MAY_IMPORT_RAY = {
    "study.search.halving",
    "study.launch.cluster",
    "study.launch.tune",
    "study.launch.nodes",
}
MAY_IMPORT_MLFLOW = {"study.tracking.store"}
MAY_IMPORT_ANALYSIS = {"study.closing", "study.relog"}


def modules() -> dict[str, Path]:
    """Name -> file of every module of the project."""
    found = {}
    for package in ("study", "analysis", "search_spaces"):
        for path in sorted((PROJECT / package).rglob("*.py")):
            parts = path.relative_to(PROJECT).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


@functools.cache
def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            names |= {f"{base}.{alias.name}" for alias in node.names} | {base}
    return names


def storey(module: str) -> int | None:
    """Number of the storey of a module, counted from the roof; the longest name decides."""
    best, level = "", None
    for number, names in enumerate(STOREYS):
        for name in names:
            inside = module == name or module.startswith(f"{name}.")
            if inside and len(name) > len(best):
                best, level = name, number
    return level


MODULES = modules()


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_downwards(module: str) -> None:
    own = storey(module)
    assert own is not None, f"{module} has no storey"
    for name in imports(MODULES[module]):
        level = storey(name)
        if level is not None and name.split(".")[0] in ("study", "analysis", "search_spaces"):
            assert level >= own, f"{module} imports {name}, which stands above it"


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_have_one_door(module: str) -> None:
    roots = {name.split(".")[0] for name in imports(MODULES[module])}
    assert "ray" not in roots or module in MAY_IMPORT_RAY
    assert "mlflow" not in roots or module in MAY_IMPORT_MLFLOW
    assert (
        "analysis" not in roots or module.startswith("analysis") or (module in MAY_IMPORT_ANALYSIS)
    )


def test_analysis_knows_study_by_its_results_alone() -> None:
    for module, path in MODULES.items():
        if module.startswith("analysis"):
            known = {n for n in imports(path) if n == "study" or n.startswith("study.")}
            doors = ("study.results", "study.theory", "study.terminal", "study.terminal.command")
            assert all(n == "study" or n.startswith(doors) for n in known), module


def test_the_core_runs_without_ray_and_mlflow(tmp_path: Path, digits: MosaicTask) -> None:
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
from study.train.cost import model_flops, soft_epochs
from study.models import build
from study.results import Results
from study.launch.trial import train_cells
from study.launch.work import Work
task = tasks.load("digits")  # the prepared form: without scikit-learn, too
flops = model_flops(build("perceptron", "digits", (1, 8, 8), 3), (1, 8, 8))
cell = Cell(task="digits", data_digest=task.facts.digest, m=3, n=40, architecture="perceptron",
            schedule=Schedule.hybrid(.1, .1, .5), seed=0, budget=soft_epochs(2, flops, 3, 40),
            batch_size=8, train_metrics_size=20, validation_size=20, test_size=20)
results = Results({str(tmp_path)!r})
results.prepare()
work = Work(cells=(cell,), study="digits", results={str(tmp_path)!r}, code_version="test")
assert train_cells(work) == {{cell.id: "done"}}
assert results.finished() == {{cell.id}}
loaded = [name for name in {blocked!r} if sys.modules.get(name) is not None]
assert not loaded, loaded
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("module", [m for m in MODULES if m != "study.run"])
def test_nothing_heavy_is_imported_before_it_is_needed(module: str) -> None:
    """Ray and MLflow take seconds to import: `--help` and `--plan` do without them."""
    top_level = {
        alias.name.split(".")[0]
        for node in ast.parse(MODULES[module].read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    } | {
        (node.module or "").split(".")[0]
        for node in ast.parse(MODULES[module].read_text()).body
        if isinstance(node, ast.ImportFrom)
    }
    assert not top_level & {"ray", "mlflow", "optuna"}
