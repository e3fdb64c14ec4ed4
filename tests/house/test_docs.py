"""What the documents show in Python runs, and what they and messages name is there."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.made_up.comparisons import make_cell, make_results, write

DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    *(path for path in sorted(PROJECT.glob("docs/*.md")) if path.name != "log.md"),
]
"""All but the log, which tells of what was there once."""
PACKAGES = ("study", "analysis", "search_spaces", "benchmarks")


def snippets() -> dict[str, str]:
    """Document and line -> a block of Python."""
    found = {}
    for document in DOCUMENTS:
        text = document.read_text()
        for match in re.finditer(r"^```py\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            found[f"{document.name}:{line}"] = match[1]
    return found


SNIPPETS = snippets()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a reader stands after the commands of the documents, which make results."""
    path = tmp_path_factory.mktemp("reader")
    results, precision = (make_results(path / name) for name in ("results", "precision"))
    for seed in range(3):
        for rank, paradigm in enumerate(("soft", "hard", "lvml", "hybrid")):
            score = 0.5 + rank / 10 + seed / 100
            write(results, make_cell(paradigm, 0.1, seed), accuracy=score, saif=score / 2)
            for each in ("float32", "bfloat16"):
                write(precision, make_cell(paradigm, 0.1, seed, precision=each), accuracy=score)
    return path


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_runs_as_it_stands(
    snippet: str,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each by itself, and all that it prints can be read: no column is left out."""
    monkeypatch.chdir(directory)
    exec(compile(SNIPPETS[snippet], snippet, "exec"), {"__name__": "__main__"})
    assert "..." not in capsys.readouterr().out


def names_in_documents() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for name in re.findall(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)", document.read_text()):
            yield document.name, name


def calls_in_messages() -> Iterator[tuple[str, str]]:
    called = re.compile(rf"(?<![\w./])((?:{'|'.join(PACKAGES)})(?:\.\w+)+)\(")
    for package in PACKAGES:
        for path in (PROJECT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    for name in called.findall(node.value):
                        yield path.name, name


@pytest.mark.parametrize(("place", "name"), sorted({*names_in_documents(), *calls_in_messages()}))
def test_a_name_is_there(place: str, name: str) -> None:
    """As a reader finds it, who imports the package and follows the dots."""
    found = importlib.import_module(name.split(".")[0])
    for part in name.split(".")[1:]:
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
