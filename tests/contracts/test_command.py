"""Before a study starts: what is refused in a moment, and Ctrl-C while Python imports."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from study.terminal.command import INTERRUPTED
from tests.conftest import PROJECT

HEAVY = ("torch", "pandas", "pyarrow", "ray", "mlflow", "optuna", "scipy", "matplotlib")


def test_help_and_refusals_import_nothing_heavy() -> None:
    """They take a moment: what takes seconds to import comes after them."""
    code = f"""
import sys
from study import run
for asked in (["digist"], ["digits", "--preset", "papr"], ["digits", "--set", "mm=3"],
              ["digits", "--set", "m=x"], ["digits", "--set", "architecture=perceptrn"],
              ["digits", "--search", "optuna"], ["digits", "--threads", "none"]):
    assert run.main(asked) == 2, asked
try:
    run.main(["--help"])
except SystemExit as end:
    assert end.code == 0
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert len(done.stderr.splitlines()) == 7


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("analysis.report nowhere", "no report was written"),
        ("study.run digits --plan", "the same command goes on where this one ended"),
        ("study.repeat nowhere 3f2a", "the results are as they were"),
        ("study.track nowhere", "the same command goes on where this one ended"),
        ("study.compact nowhere", "no result is lost, the same command goes on"),
    ],
)
def test_ctrl_c_while_python_imports_is_one_line(command: str, kept: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", *command.split()],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():  # the first of many
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert errors == f"\nstopped; {kept}\n"
