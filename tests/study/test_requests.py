"""Requests that the command cannot carry out: one clear line, nothing trained."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from study import run
from tests.made_up.commands import called


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("digits --set lr=0", "lr must be a finite number > 0, got 0.0"),
        ("digits --set m=1", "m must be an integer >= 2, got 1"),
        ("digits --set seed=0-2 confirm=2-4", "seed and confirm have 2 in common"),
        ("digits --set seed=0-2 confirm=2-4", "e.g. --set confirm=100-102, or leave the second"),
        ("digits --set confirm=none,100", "confirm takes seeds or none, not both"),
        ("digits --set confirm=-1", "confirm must be an integer >= 0, got -1"),
        ("fixed-focus --set confirm=100", "where attention is held, and in linear-orthogonal, no"),
        ("linear-orthogonal --set confirm=100", "Have one stage with --set confirm=none seed="),
        ("attention-paths --set confirm=100", "unknown axis 'confirm'"),
        ("digits --set paradigm=sotf", "Did you mean 'soft'"),
        ("attention-paths --set width=0", "width must be an integer >= 1, got 0"),
        ("attention-paths --set temperature=0", "temperature must be a finite number > 0"),
        ("attention-paths --set heads=good+rundom/uniform", "Did you mean 'random'"),
        ("attention-paths --set lr=0.1", "unknown axis 'lr'"),
        ("attention-paths --set n=200000 seed=0", "GB of memory, and"),
        (
            "attention-paths --search optuna --num-samples 2",
            "--search is of no use to attention-paths",
        ),
        ("attention-paths --no-share", "--no-share is of no use to attention-paths"),
        ("attention-paths --data-dir /x", "--data-dir is of no use to attention-paths"),
        ("hatexplain --set m=0", "m must be an integer >= 2, got 0"),
        ("hatexplain --set min_count=0", "min_count must be an integer >= 1"),
        ("hatexplain --set label_rule=most", "unknown label_rule 'most'. Did you mean 'majority'"),
        ("hatexplain --set inference=sofd", "Did you mean 'soft'"),
        ("hatexplain --set alpha=0.5 confirm=none", "attention is held on mosaics, not on hatex"),
        ("hatexplain --set split=shared-base", "hatexplain has splits of its own"),
        ("hatexplain --data-dir /no/such/place", "/no/such/place does not exist"),
        ("digits --set n=all", "n must be a number for mosaics"),
        (
            "digits --set min_count=2",
            "min_count belongs to hatexplain, texts, mscoco, not to digits. Leave",
        ),
        ("texts --set min_count=none", "min_count takes a whole number, got 'none'"),
        ("texts --set label_rule=first", "label_rule belongs to hatexplain, not to texts"),
        ("texts --data-dir /no/such/place", "/no/such/place does not exist. Pass the directory"),
        ("fixed-focus --scheduler asha", "held attention are not: leave it out"),
        ("digits --data-dir somewhere", "--data-dir is of no use to digits"),
        (f"digits --weights {__file__}", "--weights is of no use to digits; leave the option out"),
        (f"hatexplain --category-words {__file__}", "--category-words is of no use to hatexplain"),
        ("mscoco --weights /no/such/file", "--weights /no/such/file: there is no such file"),
        ("mscoco --weights /tmp", "--weights /tmp: there is no such file"),
        ("one-shot --search optuna --num-samples 2", "--search is of no use to one-shot"),
        ("one-shot --select saif", "--select is of no use to one-shot"),
        ("one-shot --data-dir /no/such/place", "/no/such/place"),
        ("one-shot --set pixels=3", "pixels must be an integer >= 4, got 3"),
        ("one-shot --set d_model=1000000", "its network needs more memory than this machine"),
        ("one-shot --set task=digits", "unknown architecture for digits 'attention-paths'"),
        ("series --set foreground=1", "foreground must name two classes or more, got '1'"),
        ("series --set background=1+4", "the class '1' is in foreground=1+2+3 and in background"),
        ("series --set window=2", "window must be an integer >= 3, got 2"),
        ("series --set background=none", "background takes names joined by +, got 'none'"),
        ("series --set window=none", "window takes a whole number, got 'none'"),
        ("series --set window=seven", "window takes a whole number, got 'seven'"),
        ("series --data-dir /no/such/place", "/no/such/place does not exist"),
        ("fixed-focus --set alpha=none,0.5", "no alpha=none: give a number in [0, 1]"),
        ("fixed-focus --set depth=-5", "depth must be at least -2, as there are so many layers"),
        (
            "linear-orthogonal --set depth=1",
            "depth must be 0, as the architecture linear",
        ),
        ("cifar10 --set foreground=cat+unicorn", "unknown class 'unicorn'"),
        ("digits --set threads=2", "threads is not an axis, but the option --threads"),
        ("digits --set pack@soft=none", "pack is not an axis, but the option --pack"),
        ("digits --set foregrounds=0", "foregrounds must be an integer >= 1, got 0"),
        ("digits --set distractors=-1", "distractors must be an integer >= 0, got -1"),
        ("digits --set background=3", "the class '3' is in foreground=3+5+8 and in background=3"),
        ("digits --set background=", "background= has an empty name. Name each class once"),
        ("digits --set foreground=3+x", "unknown class 'x'. Valid: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9."),
        ("digits --set window=7", "window belongs to series, not to digits"),
        (
            "hatexplain --set foreground=a+b",
            "foreground belongs to digits, cifar10, cifar100, images",
        ),
        (
            "images --set pixels=3",
            "--set pixels=3: pixels must be an integer >= 4, got 3",
        ),
        ("images --data-dir /no/such/place", "/no/such/place does not exist. Pass the directory"),
        ("images --set window=5", "window belongs to series, not to images"),
        ("images --set architecture=paper", "unknown architecture 'paper'. Valid: scripts, small"),
        ("attention-paths --weights /x", "--weights is of no use to attention-paths"),
        ("cifar10 --data-dir /no/such/place", "/no/such/place"),
        ("digits --results /dev/null/results", "/dev/null/results"),
        (f"digits --plan --results {__file__}", "is a file. Name a directory with --results"),
        ("digits --plan --dry-run", "--dry-run: not allowed with argument --plan"),
        ("digits --address 127.0.0.1:1 --tracking none", "no Ray cluster at"),
        ("digits --tracking nonsense://", "--tracking"),
        ("digits --tracking sqlite:////proc/x.db", "MLflow cannot track to sqlite"),
        ("digits --num-samples 3", "--num-samples belongs to a search"),
        (
            "digits --search optuna --num-samples 0",
            "--num-samples: must be an integer >= 1",
        ),
        (
            "digits --search optuna --num-samples 2 --set m=5,10",
            "m has 2 values (5, 10). Give one with --set m=5",
        ),
        ("digits --objective sief", "Did you mean 'saif'"),
        ("digits --objective saif", "--objective belongs to a search"),
        (
            "digits --search optuna --num-samples 2 --scheduler asha --objective saif,accuracy",
            "--scheduler asha ranks by one metric",
        ),
        ("digits --scheduler asha --pack seed", "--pack seed cannot be combined"),
        ("digits --max-concurrent 0", "argument --max-concurrent"),
        ("digits --max-retries -1", "argument --max-retries"),
        ("digits --gpus-per-trial 1.5", "must be a fraction of a GPU (0.01 to 1)"),
        (
            "digits --gpus-per-trial 1000 --tracking none",
            "--gpus-per-trial 1000, but this machine has",
        ),
        ("digits --threads 0", "argument --threads: must be an integer >= 1"),
        ("digits --threads 9999", "--threads 9999, but this process may use"),
        ("digits --price-per-hour -1", "must be a finite number >= 0, got -1.0"),
        ("digits --price-per-hour dear", "must be a number, got 'dear'"),
        ("digits --address auto --tracking none", "no Ray cluster at"),
        ("digits --address '' --tracking none", "argument address: must not be empty"),
        ("digits --results ''", "argument results: must not be empty"),
        ("cifar10 --data-dir ''", "argument data-dir: must not be empty"),
        ("digits --address ray://127.0.0.1:1", "an address is HOST:PORT or auto"),
        ("digits --checkpoint-every 0", "must be a number > 0, got 0.0"),
        (
            "digits --results /x/runtime_resources/working_dir_files/_ray_pkg_1/results",
            "_ray_pkg_1/results, a copy of the project that Ray deletes after the job. Submit",
        ),
        ("digits --results s3:/bucket/a", "s3:/bucket/a is not a URL. It must begin with"),
        ("digits --cache-dir s3:/bucket/a", "s3:/bucket/a is not a URL. It must begin with"),
        ("cifar10 --data-dir s3:/bucket/a", "s3:/bucket/a is not a URL. It must begin with"),
    ],
)
def test_an_unusable_request_is_one_clear_line(
    typed: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    args = shlex.split(typed)
    if "auto" in args:  # it would find the Ray of a test that runs at the same time

        def nothing_runs(_: str) -> str:
            raise ConnectionError("Could not find any running Ray instance.")

        monkeypatch.setattr("ray._private.services.canonicalize_bootstrap_address", nothing_runs)
    given = args if "--results" in args else [*args, "--results", str(tmp_path / "results")]
    status, _, errors = called(run.main, capsys, *given)
    assert status == 2
    assert errors.count("\n") == 1
    assert message in errors
    assert not list(tmp_path.rglob("*.parquet"))
