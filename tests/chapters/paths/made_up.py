"""What attention paths bring to the tests that are for all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from study.cell import Options
from study.results import Results
from tests.chapters.paths import heads_results
from tests.chapters.paths import path_results as paths
from tests.chapters.paths.omniglot_files import write_omniglot
from tests.made_up.chapters import Brought, Reported
from tests.made_up.cifar import md5
from tests.made_up.commands import Command
from tests.made_up.layout import Layout
from tests.made_up.tiny_studies import SIZES


def publish_omniglot(folder: Path, web: Path, url: str, patch: pytest.MonkeyPatch) -> None:
    """With the checksums made known to torchvision."""
    from torchvision.datasets import Omniglot  # takes seconds

    shutil.copytree(folder, web, dirs_exist_ok=True)
    md5s = {stem: md5((web / f"{stem}.zip").read_bytes()) for stem in Omniglot.zips_md5}
    patch.setattr(Omniglot, "download_url_prefix", url)
    patch.setattr(Omniglot, "zips_md5", md5s)


def attention_paths(results: Results) -> None:
    """All variants, two of them of one; a diverged cell, chains that have not converged."""
    for law in (paths.Law(), paths.Law(n=50), paths.NOISY, paths.Law(variant="own")):
        paths.write_study(results, law, seeds=2)
    paths.write(results, paths.Law(), seed=9, status="diverged")
    paths.write(results, paths.Law(), "slice", 100.0, r_hat=1.2)


def heads(results: Results) -> None:
    """Two settings, one of them with both ways to choose; what diverged."""
    published = heads_results.Law(choice="published")
    for law in (heads_results.Law(), heads_results.Law(task="digits-one-shot", layers=1)):
        heads_results.write_study(results, law, seeds=2)
    heads_results.write_study(results, published, seeds=2, rules=(), trained=False)
    heads_results.train(results, heads_results.Law(), seed=9, status="diverged")
    heads_results.write(results, heads_results.Law(), seed=8, status="diverged")


BROUGHT = Brought(
    layouts={
        "digits, one-shot": Layout("digits-one-shot", None, Options(pixels=8)),
        "omniglot": Layout("omniglot", write_omniglot, Options(pixels=16), prepares=True),
    },
    downloads={"omniglot": publish_omniglot},
    studies={
        "attention paths": "attention-paths --set seed=0 variant=noisy width@theory=10,1000 "
        "width@slice=10 n=20 draws=20 warmup=20 thin=1 chains=2",
        "one-shot": "one-shot --set task=digits-one-shot n=200 epochs=2 d_model=8 qk=4 heads=2 "
        f"batch_size=50 {SIZES} seed=1 examples=20 network_width=10 "
        "method=theory,gp,weight-norm,entropy,sensitivity,random,greedy,bound",
    },
    results={
        "attention paths": Reported(attention_paths, "chapters.paths.section.theory_section"),
        "heads": Reported(heads, "chapters.paths.section.heads_section"),
    },
    commands={
        "chapters.paths.prune": Command(
            f"{Path(__file__).with_name('network.npz')} --out {{}}",
            "FILE --width --temperature --readout --by --out attention.1 labels heuristic",
            {
                "": "the following arguments are required: FILE",
                "missing.npz": "missing.npz: there is no such file",
                "README.md": "README.md does not end in .npz or .safetensors",
                "net.npz --width 0": "argument --width: must be an integer >= 1, got 0",
                "net.npz --temperature 0": "must be a finite number > 0, got 0.0",
                "net.npz --by loss": "argument --by: invalid choice: 'loss'",
            },
            "chapters.paths.heads.pruning.by_score",
            "no file is half written",
            reads=False,
        )
    },
)
