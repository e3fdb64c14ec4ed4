"""What the documents show in Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.synthetic_results import make_cell, make_results, write

DOCUMENTS = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/*.md")]


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
