"""The command `study.run attention-paths` on Ray: launched equals called."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from study import run
from study.results import Results
from study.terminal.command import DONE
from tests.made_up.commands import called

TINY = [
    "attention-paths", "--set", "variant=noisy", "n=20", "test_size=20", "validation_size=20",
    "width@theory=4,8", "width@slice=4", "draws=8", "warmup=5", "seed=0,1",
]  # fmt: skip


@pytest.mark.faults
@pytest.mark.usefixtures("ray_instance", "no_pictures")
def test_on_ray_the_numbers_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {}
    for name, options in {
        "called": ["--shard", "1/1"],
        "launched": ["--tracking", "none"],
    }.items():
        results = str(tmp_path / name)
        status, _, errors = called(run.main, capsys, *TINY, *options, "--results", results)
        assert status == DONE, errors
        tables[name] = Results(results).evaluations().drop(columns="train_seconds")
    assert errors.startswith("starting Ray's workers on this machine\n")  # long before a cell runs
    pd.testing.assert_frame_equal(tables["called"], tables["launched"], rtol=1e-9)
