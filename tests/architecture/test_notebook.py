"""The notebook goes from results to figures, and shows what it says.

What a cell shows depends on IPython's display, so the least that can tell is a kernel (5 s).
"""

from __future__ import annotations

import os
from copy import deepcopy

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

from tests.conftest import PROJECT

NOTEBOOK = PROJECT / "examples" / "notebook.ipynb"
FIGURES = ("forest_figure(", "compute_figure(", "heatmap_figure(", ".plot(")


@pytest.fixture(scope="module")
def executed(tmp_path_factory) -> NotebookNode:
    """Run from its first cell to its last; a cell that raises is an error here.

    With `WRITE_NOTEBOOK=1` its outputs become those that are committed.
    """
    home = tmp_path_factory.mktemp("jupyter")
    folders = {
        name: str(home) for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")
    }
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    metadata = deepcopy(notebook.metadata)
    client = NotebookClient(
        notebook,
        timeout=120,
        record_timing=False,
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
        config=Config(KernelManager={"transport": "ipc", "ip": str(home / "kernel")}),  # no port
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**folders, "PYTHONPATH": str(PROJECT)}.items():
            patch.setenv(name, value)
        client.execute()
    notebook.metadata = metadata  # without the version of this Python
    if os.environ.get("WRITE_NOTEBOOK"):
        nbformat.write(notebook, NOTEBOOK)
    return notebook


def shown(notebook: NotebookNode, kind: str) -> list[str]:
    """All outputs of a kind, in order; nothing is printed, and so no warning either."""
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", [])]
    assert {each.output_type for each in outputs} <= {"execute_result", "display_data"}
    return [each.data[kind] for each in outputs if kind in each.data]


def test_every_figure_is_made(executed):
    cells = [cell for cell in executed.cells if any(name in cell.source for name in FIGURES)]
    assert len(cells) == len(FIGURES)
    for cell in cells:
        assert [each for each in cell.outputs if "image/png" in each.data], cell.source


def test_what_is_committed_is_what_it_gives(executed):
    """`WRITE_NOTEBOOK=1 uv run pytest tests/architecture/test_notebook.py` makes it so."""
    committed = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell.metadata for cell in committed.cells] == [{}] * len(committed.cells)
    assert NOTEBOOK.stat().st_size < 300_000
    for kind in ("text/plain", "text/html"):
        assert shown(committed, kind) == shown(executed, kind)
    assert len(shown(committed, "image/png")) == len(shown(executed, "image/png"))
