"""Time and peak memory of the analysis of many cells.

    python benchmarks/analysis.py  # 10,000 and 100,000 cells: 3 and 30 million rows
    python benchmarks/analysis.py --cells 2000 --keep /tmp/made-up

Makes up a compacted results directory of so many cells, with 100 evaluations of three splits each,
and compares its paradigms in a process of its own: at equal compute, with the choice of options
and paired tests; then with the heat maps and curves of the chosen options, and as tables. Memory
is the largest resident size of that process.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure
from benchmarks.support.tables import Table
from study.cell import Budget, Cell, Schedule
from study.results import (
    CELLS_SCHEMA,
    EVALUATIONS_SCHEMA,
    SPLITS,
    Results,
    cell_columns,
    instances,
)
from study.results.cell_file import MERGED, rows_of
from study.results.merging import ROWS_A_FILE

EVALUATIONS = 100
POINTS = tuple((i + 1) / EVALUATIONS for i in range(EVALUATIONS))
SEEDS = 20
RATES = tuple(round(0.001 * 1.3**i, 6) for i in range(20))
SWITCH_POINTS = tuple(round((i + 1) / 23, 3) for i in range(22))

INSTANCES, M = 10_000, 20
"""Of the test split, and segments of each, as of CIFAR-10."""

ROWS_A_CELL = EVALUATIONS * len(SPLITS)
CELLS_A_FILE = ROWS_A_FILE // ROWS_A_CELL


def main() -> None:
    """Prints one row a number of cells."""
    args = measure.options(
        __doc__,
        cells=[10_000, 100_000],
        keep={"type": Path, "metavar": "DIR", "help": "make the directories in DIR"},
    ).parse_args()
    print(f"{os.cpu_count()} cores; numpy {np.__version__}, pyarrow {pa.__version__}")
    table = Table(
        "cells", "million rows", "GB", "compared s", "GB", "with heat maps s", "GB", "tables s",
        first=8,
    )  # fmt: skip
    for cells in args.cells:
        with contextlib.ExitStack() as stack:
            folder = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            directory = folder / f"results-{cells}"
            if not directory.exists():
                make(directory, cells)
            size = sum(file.stat().st_size for file in directory.rglob("*.parquet"))
            found = stack.enter_context(measure.in_a_process(analysed, str(directory)))()
        table.row(f"{cells:,d}", f"{found[0] / 1e6:.1f}", f"{size / 1e9:.1f}",
                  *(f"{each:.2f}" for each in found[1:]))  # fmt: skip


def analysed(directory: str) -> Callable[[], list[float]]:
    """Rows; seconds of the comparison and GB until its end, likewise with details; of tables."""
    from analysis.comparison.compare import compare_results
    from analysis.comparison.report.tables import comparison_cells

    def stages() -> list[float]:
        comparisons: list[Any] = []
        found: list[float] = []

        def stage(function: Callable[[], object]) -> None:
            found.extend([measure.seconds_of(function), measure.peak_bytes() / 1e9])

        stage(lambda: compare_results(directory, details=False))
        stage(lambda: comparisons.extend(compare_results(directory)))
        tables = measure.seconds_of(lambda: [*map(comparison_cells, comparisons)])
        return [sum(len(each.cells) for each in comparisons) * ROWS_A_CELL, *found, tables]

    return stages


def make(directory: Path, cells: int) -> None:
    """Writes a results directory of made-up numbers, as `study.compact` leaves one."""
    results = Results(directory)
    results.prepare()
    random = np.random.default_rng(0)
    foreground = random.integers(3_000, size=(INSTANCES, 1))
    background = 3_000 + random.integers(7_000, size=(INSTANCES, M - 1))
    digest = instances.keep(results.storage, np.hstack([foreground, background]))
    made = list(itertools.islice(all_cells(), cells))
    made.sort(key=lambda c: (c.comparison_id, c.paradigm, c.schedule.text, c.seed))
    for start in range(0, len(made), CELLS_A_FILE):
        some = made[start : start + CELLS_A_FILE]
        rows = [row_of(cell) for cell in some]
        held = evaluations_of(some, digest, np.random.default_rng(start))
        held = rows_of(pa.Table.from_pylist(rows, CELLS_SCHEMA), held)
        results.write(MERGED, held, {str(row["cell_id"]): str(row["cell"]) for row in rows})


def all_cells() -> Iterator[Cell]:
    """Cells, comparison by comparison, of growing m."""
    for m, rate in itertools.product(range(2, 1_000), RATES):
        schedules = [Schedule.single(name, rate) for name in ("soft", "hard", "lvml")]
        schedules += [Schedule.hybrid(rate, rate, point) for point in SWITCH_POINTS]
        for schedule, seed in itertools.product(schedules, range(SEEDS)):
            yield Cell(
                task="digits", data_digest="0123456789abcdef", m=m, n=10_000,
                architecture="perceptron", schedule=schedule, seed=seed, budget=Budget(10**12),
                evaluation_points=POINTS,
            )  # fmt: skip


def row_of(cell: Cell) -> dict[str, object]:
    """The columns of the cell."""
    return {
        "study": "made-up", "kind": "training", **cell_columns(cell), "num_classes": 3,
        "status": "done", "status_reason": "", "steps": 10_000, "total_train_seconds": 100.0,
        "total_evaluate_seconds": 5.0, "total_seconds": 106.0, "device": "cpu", "threads": 1,
        "pack": 1, "micro_batch": 64, "shared_prefix": False, "code_version": "0.1.0",
        "package_versions": '{"numpy": "2.4.6", "torch": "2.15.0"}',
        "finished_at": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip


def evaluations_of(cells: list[Cell], digest: str, random: np.random.Generator) -> pa.Table:
    """Their evaluations: growing scores with noise, in ten thousandths like real counts."""
    rows = len(cells) * ROWS_A_CELL
    fraction = np.tile(np.repeat(POINTS, len(SPLITS)), len(cells))
    level = np.repeat(random.uniform(0.3, 0.9, len(cells)), ROWS_A_CELL)

    def share(of: np.ndarray) -> np.ndarray:
        return np.round(np.clip(of * fraction + random.normal(0, 0.02, rows), 0, 1), 4)

    saif = share(level)
    heatmap = random.integers(0, 400, (rows, 25)) / 1e4
    heatmap[:, -1] = saif
    accuracy = share(0.5 + level / 2)
    columns: dict[str, Any] = {
        "cell_id": np.repeat([cell.id for cell in cells], ROWS_A_CELL),
        "step": (fraction * 10_000).astype(int),
        "mosaics_seen": (fraction * 640_000).astype(int),
        "budget_fraction": fraction,
        "compute_flops": (fraction * 10**12).astype(int) - random.integers(0, 1000, rows),
        "train_seconds": np.round(fraction * random.uniform(90, 110, rows), 3),
        "split": np.tile(SPLITS, len(cells) * EVALUATIONS),
        "inference": np.repeat("soft", rows),
        "num_evaluated": np.full(rows, 10_000),
        "loss": random.uniform(0.1, 1.0, rows),
        "accuracy": accuracy,
        "saif": saif,
        **{name: share(level) for name in ("foreground_attention_mean", "ftpt", "ffpt", "ftpf",
                                           "ffpf")},
        "heatmap": pa.FixedSizeListArray.from_arrays(heatmap.ravel(), 25),
        "instances": at_ends(itertools.repeat(digest, len(cells))),
        "instance_right": at_ends(bits(accuracy, random)),
        "instance_known": at_ends(bits(np.ones(rows), random)),
        "instance_saif": at_ends(bits(saif, random)),
    }  # fmt: skip
    # What is of texts, and of known foregrounds, is missing.
    every = {name: columns.get(name, pa.nulls(rows)) for name in EVALUATIONS_SCHEMA.names}
    return pa.table(every).cast(EVALUATIONS_SCHEMA)


def at_ends(values: Iterable[Any]) -> list[Any]:
    """A column with a value at the last evaluation on the test split of each cell."""
    return [each for value in values for each in (*[None] * (ROWS_A_CELL - 1), value)]


def bits(shares: np.ndarray, random: np.random.Generator) -> Iterator[bytes]:
    """What is marked of the instances at the last evaluation of each cell, so many of them."""
    for share in shares[ROWS_A_CELL - 1 :: ROWS_A_CELL]:
        marked = np.arange(INSTANCES) < round(share * INSTANCES)
        yield np.packbits(random.permutation(marked)).tobytes()


if __name__ == "__main__":
    main()
