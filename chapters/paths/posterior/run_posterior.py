"""Runs cells that solve or sample."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from threadpoolctl import threadpool_limits

from chapters.paths.posterior import hidden_markov, methods
from chapters.paths.posterior.ended import Columns, Rows, ended
from chapters.paths.posterior.network import Network, path_names
from chapters.paths.posterior.posterior_cell import SAMPLING, SLICE, PosteriorCell
from study.cell.events import Ended, Report
from study.cell.work import Work
from study.errors import RequestError
from study.tasks.task import SPLITS


def run(cells: Sequence[PosteriorCell], work: Work, report: Report | None = None) -> list[Ended]:
    """Runs cells one after the other; see `study.kind.Kind.runner`."""
    for cell in cells:
        if cell.data_digest != hidden_markov.DIGEST:
            raise RequestError(
                f"cell {cell.id} was planned on data {cell.data_digest}, but this version makes "
                f"{hidden_markov.DIGEST}. Run the command again to plan it anew."
            )
    with threadpool_limits(work.threads):
        return [_run(cell, report) for cell in cells]


def _run(cell: PosteriorCell, report: Report | None) -> Ended:
    sizes = cell.n, cell.validation_size, cell.test_size
    splits = _splits(cell.network, cell.tokens, cell.sigma_perp, sizes, cell.seed)
    return ended(cell, lambda: _found(cell, splits), report)


def _found(cell: PosteriorCell, splits: Mapping[str, methods.Split]) -> tuple[Columns, Rows]:
    heads = [len(layer) for layer in cell.network]
    if cell.method == SLICE:
        sampling = {name: getattr(cell, name) for name in ("width", "seed", *SAMPLING)}
        found = methods.sampled(splits, heads, cell.temperature, **sampling)
    else:
        predictor = methods.theory(splits["train"], heads, cell.width, cell.temperature)
        found = methods.predicted_by(predictor, splits, predictor.iterations, predictor.flops)
    return methods.recorded(found, splits, path_names(cell.network))


@functools.lru_cache(maxsize=2)
def _splits(
    network: Network, tokens: int, sigma_perp: float, sizes: tuple[int, ...], seed: int
) -> dict[str, methods.Split]:
    """The splits; the last ones stay in memory for further cells of this process."""
    splits = {}
    for split, size in zip(SPLITS, sizes, strict=True):
        data = hidden_markov.sample(seed, size, tokens, sigma_perp, split)
        features = hidden_markov.features(data.inputs, network, seed)
        splits[split] = methods.Split(features, data.labels)
    return splits
