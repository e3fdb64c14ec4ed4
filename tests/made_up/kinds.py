"""Results of every kind of sections, written as the product writes them."""

from __future__ import annotations

from study.results import Results
from tests.chapters.captions.caption_results import make_caption_cell, write_captions
from tests.chapters.dynamics import focus_results as held
from tests.chapters.dynamics import trajectory_results as trajectories
from tests.chapters.paths import heads_results
from tests.chapters.paths import path_results as paths
from tests.made_up import comparisons


def compared(results: Results) -> None:
    """Three settings, two of one task; in one of them options, a diverged and a censored cell."""
    for paradigm in ("lvml", "soft", "hybrid"):
        for seed in range(2):
            score = 0.5 + len(paradigm) / 30 + seed / 7
            comparisons.write(
                results, comparisons.make_cell(paradigm, seed=seed), score, score / 3
            )
    comparisons.write(results, comparisons.make_cell(m=5))
    comparisons.write(results, comparisons.make_cell(lr=0.3), status="diverged", points=(0.25,))
    comparisons.write(results, comparisons.make_cell(lr=0.4), status="censored", points=(0.25,))
    comparisons.write_text(results, comparisons.make_text_cell("soft"), 1 / 3)


def fixed_focus(results: Results) -> None:
    """More settings than one section has room for, a paradigm that section 3 does not know."""
    for m in (5, 10, 20):
        held.record_all(results, seeds=1, m=m)
    held.record(results, held.focus_cell("hybrid"), 1 / 3)


def linear_orthogonal(results: Results) -> None:
    trajectories.write_study(results, seeds=2, pairs=((5, 3), (20, 20)))
    trajectories.write(
        results, trajectories.make_cell(seed=9), status="diverged", points=(0, 0.05)
    )


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


def captions(results: Results) -> None:
    """Three paradigms, the later the better."""
    for paradigm, bleu in (("soft", 0.1), ("hard-sampled", 0.12), ("hybrid-sampled", 0.15)):
        for seed in range(6):
            cell = make_caption_cell(paradigm, seed=seed)
            write_captions(results, cell, bleu + seed / 300, bleu + seed / 200)
