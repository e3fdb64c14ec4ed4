"""Requests that the command cannot carry out: one clear line, nothing trained.

Those whose axes are wrong: tests/study/plan/test_plan.py. The likeliest: tests/golden.
"""

from __future__ import annotations

import shlex
import sys

import pytest

from study import run
from tests.made_up.commands import called

OF_NO_USE = "is of no use to"


@pytest.mark.parametrize(
    ("typed", "fact"),
    [
        # What the study, or its task, has no use for.
        ("attention-paths --search optuna --num-samples 2", f"--search {OF_NO_USE}"),
        ("attention-paths --no-share", f"--no-share {OF_NO_USE}"),
        ("one-shot --select saif", f"--select {OF_NO_USE}"),
        (f"digits --weights {__file__}", f"--weights {OF_NO_USE} digits; leave the option out"),
        (f"hatexplain --category-words {__file__}", f"--category-words {OF_NO_USE}"),
        ("fixed-focus --scheduler asha", "held attention are not: leave it out"),
        # What the machine has not.
        (
            "one-shot --set task=digits-one-shot d_model=1000000",
            "its network needs more memory than this machine",
        ),
        ("digits --gpus-per-trial 1 --tracking none", "but this machine has 0 GPUs"),
        ("digits --address 127.0.0.1:1 --tracking none", "no Ray cluster at"),
        ("digits --address auto --tracking none", "no Ray cluster at"),
        # Places.
        ("texts --data-dir /no/such/place", "/no/such/place does not exist. Pass the directory"),
        ("mscoco --weights /tmp", "--weights /tmp: there is no such file"),
        ("digits --results /dev/null/results", "/dev/null/results"),
        (
            "digits --results /x/runtime_resources/working_dir_files/_ray_pkg_1/results",
            "_ray_pkg_1/results, a copy of the project that Ray deletes after the job. Submit",
        ),
        ("digits --results memory://a", "must be a directory, or a store that all processes can"),
        ("digits --results simplecache::https://a", "a store that all processes can write"),
        ("digits --results s3:/bucket/a", "s3:/bucket/a is not a URL. It must begin with"),
        ("digits --cache-dir s3:/bucket/a", "s3:/bucket/a is not a URL. It must begin with"),
        ("cifar10 --data-dir s3:/bucket/a", "s3:/bucket/a is not a URL. It must begin with"),
        # Files of options.
        (
            "digits @/no/such/file",
            "run: @/no/such/file cannot be read (No such file or directory).",
        ),
        (f"digits @{sys.executable}", "is no text file."),
        (f"digits @{__file__}", "a line is "),
        # Options that have no meaning together, or no such values.
        ("digits --plan --dry-run", "--dry-run: not allowed with argument --plan"),
        ("digits --objective saif", "--objective belongs to a search"),
        ("digits --objective sief", "Did you mean 'saif'"),
        (
            "digits --search optuna --num-samples 2 --scheduler asha --objective saif,accuracy",
            "--scheduler asha ranks by one metric",
        ),
        ("digits --scheduler asha --pack seed", "--pack seed cannot be combined"),
        ("digits --max-concurrent 0", "argument --max-concurrent"),
        ("digits --max-retries -1", "argument --max-retries"),
        ("digits --gpus-per-trial 2", "must be 0 or a share of a GPU (0.01 to 1), since a trial"),
        ("digits --price-per-hour -1", "must be a finite number >= 0, got -1.0"),
        ("digits --checkpoint-every 0", "must be a number > 0, got 0.0"),
        ("digits --address ''", "argument --address: must not be empty"),
    ],
)
def test_an_unusable_request_is_one_clear_line(
    typed,
    fact,
    tmp_path,
    capsys,
    monkeypatch,
):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    args = shlex.split(typed)
    if "auto" in args:  # it would find the Ray of a test that runs at the same time

        def nothing_runs(_: str) -> str:
            raise ConnectionError("Could not find any running Ray instance.")

        monkeypatch.setattr("ray._private.services.canonicalize_bootstrap_address", nothing_runs)
    given = args if "--results" in args else [*args, "--results", str(tmp_path / "results")]
    status, _, errors = called(run.main, capsys, *given)
    assert status == 2
    assert errors.count("\n") == 1
    assert fact in errors
    assert not list(tmp_path.rglob("*.parquet"))
