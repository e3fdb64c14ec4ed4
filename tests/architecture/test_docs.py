"""What documents show runs; what they, docstrings and messages name is there."""

from __future__ import annotations

import ast
import contextlib
import inspect
import pkgutil
import re
import runpy
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType

import pytest

from study import run, tasks
from study.cell.work import Job, Work
from study.launch.run_job import run_job
from study.plan.planning import planned
from study.results.columns import as_markdown
from study.run_options import requested
from study.terminal.command import DONE
from study.train.run_training import opened_task
from study.train.training_axes import axes
from tests.conftest import PROJECT, tiny_cell
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.parts import forgotten

DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    *(path for path in sorted(PROJECT.glob("docs/*.md")) if path.name != "log.md"),
    *sorted(PROJECT.glob("docs/your-own/*.md")),
    PROJECT / "examples" / "notebook.ipynb",
]
"""All but the log, which tells of what was there once."""
TOUR = PROJECT / "docs" / "how-a-cell-runs.md"
PACKAGES = ("study", "analysis", "search_spaces", "chapters", "benchmarks")
FOLDERS = (*PACKAGES, "tests", "docs")
CODE = [path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.py")]


def snippets() -> dict[str, str]:
    """Document and line -> a block of Python.

    Those of docs/your-own/runs.md need other tools; the tests of recorded runs stand in for them.
    """
    found = {}
    for document in (each for each in DOCUMENTS if each.name != "runs.md"):
        text = document.read_text()
        for match in re.finditer(r"^```py\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            found[f"{document.name}:{line}"] = match[1]
    return found


SNIPPETS = snippets()


@pytest.fixture(scope="module")
def directory(tmp_path_factory, digits) -> Path:
    """Where a reader stands after the commands of the documents, which make results."""
    path = tmp_path_factory.mktemp("reader")
    results, precision = (make_results(path / name) for name in ("results", "precision"))
    for seed in range(3):
        for rank, paradigm in enumerate(("soft", "hard", "lvml", "hybrid")):
            score = 0.5 + rank / 10 + seed / 100
            write(results, make_cell(paradigm, 0.1, seed), accuracy=score, saif=score / 2)
            for each in ("float32", "bfloat16"):
                write(precision, make_cell(paradigm, 0.1, seed, precision=each), accuracy=score)
    make_results(path / "kept")
    work = Work(study="digits", results=str(path / "kept"), code_version="test", keep_weights=True)
    run_job(Job(((tiny_cell(digits),),)), work)
    return path


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_runs_as_it_stands(
    snippet,
    directory,
    monkeypatch,
    capsys,
):
    """Each by itself, and all that it prints can be read: no column is left out."""
    monkeypatch.chdir(directory)
    file = directory / "snippet.py"
    file.write_text(SNIPPETS[snippet])
    with forgotten():
        code = compile(SNIPPETS[snippet], snippet, "exec")
        exec(code, {"__name__": "__main__", "__file__": str(file)})
    assert "..." not in capsys.readouterr().out


@pytest.mark.parametrize("file", sorted(PROJECT.glob("examples/*.py")), ids=lambda file: file.stem)
def test_an_example_makes_the_data_that_it_names(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(file), run_name="__main__")
    assert any((tmp_path / file.stem).iterdir())


def names_between_backticks() -> Iterator[tuple[str, str]]:
    for path in (*DOCUMENTS, *CODE):
        for name in re.findall(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)", path.read_text()):
            yield path.name, name


def names_in_strings() -> Iterator[tuple[str, str]]:
    """Messages, targets of patches, code for other processes; names of files are none."""
    name = re.compile(rf"(?<![\w./])((?:{'|'.join(PACKAGES)})(?:\.\w+)+)\b(?<!\.(?:env|pem|pub))")
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for found in name.findall(node.value):
                    yield path.name, found


def test_names_are_there():
    named = {*names_between_backticks(), *names_in_strings()}
    assert len(named) > 100
    assert not sorted(each for each in named if not is_there(each[1]))


def is_there(name: str) -> bool:
    """As a reader finds it, who imports the package and follows the dots."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def named(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_a_path_is_there(document):
    """From the root, in prose and in commands."""
    path = rf"(?<![\w/.~-])(?:{'|'.join(FOLDERS)})/[\w./-]*\w"
    found = re.findall(path, document.read_text())
    assert not [each for each in found if not (PROJECT / each).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_a_file_and_a_test_are_there(document):
    """`test_file.py::test_name`, the file named once a line where it stands for several tests.

    Without its folders, a file's name is the only one of its kind.
    """
    for line in document.read_text().splitlines():
        files = CODE
        for name, test in re.findall(r"`([\w/]+\.py)?(?:::)?(test_\w+)?`", line):
            if name:
                files = [path for path in CODE if f"/{named(path)}".endswith(f"/{name}")]
                assert len(files) == 1, f"{name}: {[*map(named, files)]}"
            if test and test not in axes(tuple(tasks.TASKS)):
                assert any(f"def {test}(" in path.read_text() for path in files), test


def places(document: Path) -> list[str]:
    """What a document names as `study/run.py:main`, as Python does: `study.run:main`."""
    found = re.findall(r"`([\w/]+)\.py:([\w.]+)`", document.read_text())
    files = ((file.removesuffix("/__init__"), name) for file, name in found)
    return [f"{file.replace('/', '.')}:{name}" for file, name in files]


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_what_stands_in_a_file_is_there(document):
    assert not [each for each in places(document) if not is_there(each)]


def code_of(place: str) -> CodeType | None:
    """Of a function, or of what makes an object of a class; None: it is neither."""
    found = inspect.unwrap(pkgutil.resolve_name(place))
    return getattr(found.__init__ if isinstance(found, type) else found, "__code__", None)


@contextlib.contextmanager
def calls_of(codes: Mapping[CodeType, str]) -> Iterator[list[str]]:
    """Their names, in the order of their calls in this thread."""
    calls = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            calls.append(codes[frame.f_code])

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.usefixtures("no_pictures", "without_ray")
def test_a_cell_runs_as_its_page_says(tmp_path, monkeypatch):
    """Its command makes its cell, and on less data calls its functions in its order.

    All but those that work for Ray and MLflow alone.
    """
    monkeypatch.setattr("study.plan.estimate.MOST_STEPS", 3)
    (words,) = (shlex.split(each) for name, each in study_commands() if name == TOUR.name)
    (cell_id,) = re.findall(r"`([0-9a-f]{16})`", TOUR.read_text())
    assert cell_id in {cell.id for cell in planned(requested(words)).cells}
    codes = {code: place for place in places(TOUR) if (code := code_of(place))}
    opened_task.cache_clear()  # an earlier test may have opened it
    less = ["n=100", "epochs=2", "train_metrics_size=20", "validation_size=20", "test_size=20"]
    here = ["--results", str(tmp_path), "--tracking", "none"]
    with calls_of(codes) as calls:
        assert run.main([*words, *here, "--set", *less]) == DONE
    beside = {"study.launch.tune:run_trials", "study.tracking.cells:of_cell"}
    assert {*codes.values()} - {*calls} == beside
    left = iter(calls)
    assert not [each for each in codes.values() if each not in beside and each not in left]


def links() -> Iterator[tuple[str, str]]:
    for document in (*DOCUMENTS, PROJECT / "docs" / "log.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if "://" not in target:
                yield named(document), target


def test_links_lead_somewhere():
    assert not [link for link in set(links()) if not leads_somewhere(*link)]


def leads_somewhere(place: str, target: str) -> bool:
    document = PROJECT / place
    file, _, anchor = target.partition("#")
    path = document.parent / file if file else document
    return path.exists() and (not anchor or anchor in anchors(path))


def test_the_index_names_every_document():
    index = PROJECT / "docs" / "README.md"
    named_there = {target for place, target in links() if place == "docs/README.md"}
    assert named_there == {path.name for path in index.parent.glob("*.md") if path != index}


def test_every_column_is_explained_as_it_is_declared():
    """Else `python -c "from study.results.columns import *; print(as_markdown())"` says how."""
    assert as_markdown() in (PROJECT / "docs" / "results.md").read_text()


def anchors(document: Path) -> set[str]:
    """What links may name after #, as GitHub makes it of headings."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def study_commands() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        text = document.read_text().replace("\\\n", " ")
        for block in re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            for command in re.findall(r"python -m study\.run (?!--help)([^\n'#]*)", block):
                yield document.name, command


@pytest.mark.parametrize(("place", "command"), sorted(set(study_commands())))
def test_a_study_command_is_understood(place, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in re.findall(r"--weights (\S+)", command):
        Path(file).touch()
    for file in re.findall(r"--with (\S+)", command):
        mine = (text for name, text in SNIPPETS.items() if name.startswith(place))
        Path(file).write_text(next(text for text in mine if "register_" in text))
    with forgotten():
        assert requested(shlex.split(command)).space.name in command, place
