"""Time and peak memory of the analysis of many cells.

    python benchmarks/analysis.py  # 10,000 and 100,000 cells: 3 and 30 million rows

Makes up a compacted results directory of so many cells, with 100 evaluations of three splits each,
and compares its paradigms in a process of its own: at equal compute, with the choice of options
and paired tests, then with the heat maps and curves of the chosen options. Memory is the largest
resident size of that process.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure
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

SHARES = ("foreground_attention_mean", "ftpt", "ffpt", "ftpf", "ffpf")
ROWS_A_CELL = EVALUATIONS * len(SPLITS)
CELLS_A_FILE = ROWS_A_FILE // ROWS_A_CELL


def main() -> None:
    """Prints one row a number of cells."""
    args = measure.options(__doc__, cells=[10_000, 100_000]).parse_args()
    print(f"{os.cpu_count()} cores; numpy {np.__version__}, pyarrow {pa.__version__}\n")

    def row(cells: int) -> tuple[str, ...]:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), cells)
            with measure.in_a_process(analysed, folder) as stages:
                return f"{cells:,d} cells", *map("{:.2f}".format, stages())

    head = ("million rows", "compared s", "peak GB", "with heat maps s", "peak GB")
    measure.table(("", *head), map(row, args.cells))


def analysed(directory: str) -> Callable[[], list[float]]:
    """Millions of rows; seconds of the comparison and GB until its end; likewise with details."""
    from analysis.comparison.compare import compare_results

    def stages() -> list[float]:
        found: list[float] = []
        for details in (False, True):
            started = time.perf_counter()
            cells = sum(len(each.cells) for each in compare_results(directory, details=details))
            found += [time.perf_counter() - started, measure.peak_bytes() / 1e9]
        return [cells * ROWS_A_CELL / 1e6, *found]

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
        evaluations = evaluations_of(some, digest, np.random.default_rng(start))
        held = rows_of(pa.Table.from_pylist(rows, CELLS_SCHEMA), evaluations)
        results.write(MERGED, held, {row["cell_id"]: row["cell"] for row in rows})


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


def row_of(cell: Cell) -> dict[str, Any]:
    """The columns of the cell."""
    return {
        "study": "made-up", "kind": "training", **cell_columns(cell), "num_classes": 3,
        "status": "done", "status_reason": "", "steps": 10_000, "total_train_seconds": 100.0,
        "total_evaluate_seconds": 5.0, "total_seconds": 106.0, "device": "cpu", "threads": 1,
        "pack": 1, "code_version": "0.1.0", "finished_at": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip


def evaluations_of(cells: list[Cell], digest: str, random: np.random.Generator) -> pa.Table:
    """Their evaluations: growing scores with noise, in ten thousandths like real counts."""
    rows = len(cells) * ROWS_A_CELL
    fraction = np.tile(np.repeat(POINTS, len(SPLITS)), len(cells))
    level = np.repeat(random.uniform(0.3, 0.9, len(cells)), ROWS_A_CELL)

    def share(of: np.ndarray) -> np.ndarray:
        return np.round(np.clip(of * fraction + random.normal(0, 0.02, rows), 0, 1), 4)

    def at_ends(values: Iterable[Any]) -> list[Any]:
        """A column with a value at the last evaluation on the test split of each cell."""
        return [each for value in values for each in (*[None] * (ROWS_A_CELL - 1), value)]

    def marked(of: np.ndarray) -> list[Any]:
        """So many instances, at the last evaluation of each cell."""
        counts = np.round(of[ROWS_A_CELL - 1 :: ROWS_A_CELL] * INSTANCES)
        held = (random.permutation(np.arange(INSTANCES) < count) for count in counts)
        return at_ends(np.packbits(each).tobytes() for each in held)

    saif, accuracy = share(level), share(0.5 + level / 2)
    heatmap = random.integers(0, 400, (rows, 25)) / 1e4
    heatmap[:, -1] = saif
    of_names = {name: share(level) for name in SHARES}
    columns: dict[str, Any] = {
        "cell_id": np.repeat([cell.id for cell in cells], ROWS_A_CELL),
        "step": (fraction * 10_000).astype(int),
        "mosaics_seen": (fraction * 640_000).astype(int),
        "budget_fraction": fraction,
        "compute_flops": (fraction * 10**12).astype(int) - random.integers(0, 1000, rows),
        "train_seconds": np.round(fraction * random.uniform(90, 110, rows), 3),
        "split": np.tile(SPLITS, len(cells) * EVALUATIONS),
        "inference": np.repeat("soft", rows),
        "num_evaluated": np.full(rows, INSTANCES),
        "loss": random.uniform(0.1, 1.0, rows),
        "accuracy": accuracy, "saif": saif, **of_names,
        "heatmap": pa.FixedSizeListArray.from_arrays(heatmap.ravel(), 25),
        "instances": at_ends([digest] * len(cells)), "instance_right": marked(accuracy),
        "instance_known": marked(np.ones(rows)), "instance_saif": marked(saif),
    }  # fmt: skip
    # What is of texts, and of known foregrounds, is missing.
    every = {name: columns.get(name, pa.nulls(rows)) for name in EVALUATIONS_SCHEMA.names}
    return pa.table(every).cast(EVALUATIONS_SCHEMA)


if __name__ == "__main__":
    main()
