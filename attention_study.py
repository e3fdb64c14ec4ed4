"""The project under a name of its own, for scripts that lie anywhere.

`study` and `analysis` are what people call files of their own, too. What is imported from here
finds the project's packages whatever lies beside a script, and imports little until it is used.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.digest.compare import compare_results
    from analysis.digest.read import load as load
    from study.results import load_network as load_network

    compare = compare_results

_FOUND = {
    "compare": "analysis:compare_results",
    "load": "analysis:load",
    "load_network": "study.results:load_network",
    "record": "analysis:record",
}
"""Name -> where it is; what begins with `register_` is in `study.parts`."""


def check(*files: str | os.PathLike[str]) -> bool:
    """Whether parts keep what the project promises of its own; prints it, as `study.check` does.

    Args:
        files: that register parts; none: those of installed packages.
    """
    from study.check import main

    return main([os.fspath(file) for file in files]) == 0


def report(
    results_dir: str | os.PathLike[str],
    out_dir: str | os.PathLike[str] | None = None,
    **asked: Any,
) -> str:
    """Writes the report of a results directory and returns the path, or URL, of report.html.

    Args:
        results_dir: local path or URL.
        out_dir: a folder, made if missing; None: `report` in the results directory.
        asked: fields of `analysis.conclude.Question`, such as ``study`` and ``test``.

    Raises:
        ResultsError: nothing can be read, compared or written.
    """
    from analysis.conclude import Question, conclude
    from study.results import Results, report_folder

    found = conclude(results := Results(results_dir), Question(**asked))
    found.require()
    return str(found.write(out_dir or report_folder(results.url, asked.get("study"))))


def __getattr__(name: str) -> Any:
    if name.startswith("register_"):
        return getattr(importlib.import_module("study.parts"), name)
    if name not in _FOUND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return pkgutil.resolve_name(_FOUND[name])


def __dir__() -> list[str]:
    """What TAB finds."""
    parts = dir(importlib.import_module("study.parts"))
    return ["check", "report", *_FOUND, *(each for each in parts if each.startswith("register_"))]


def _find_packages() -> None:
    """Imports the project's packages from where this file lies.

    Raises:
        ImportError: a script has imported another module of that name before.
    """
    home = Path(__file__).resolve().parent
    sys.path.insert(0, str(home))
    try:
        for name in ("study", "analysis", "search_spaces", "chapters"):
            there = Path(str(importlib.import_module(name).__file__)).resolve()
            if home not in there.parents:
                raise ImportError(
                    f"{there} was imported as {name}, which is a package of attention-study, too. "
                    "Import attention_study before it, or rename it."
                )
    finally:
        sys.path.remove(str(home))


_find_packages()
