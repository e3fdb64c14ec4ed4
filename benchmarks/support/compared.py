"""Compares the paradigms of a results directory, and prints a line a way: seconds, peak GB so far.

At equal compute, with the choice of options and paired tests; then also with the heat maps and
curves of the chosen options. It is a program, so that nothing else is in its memory.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a file, without an installation

from analysis import compare_results

for details in (False, True):
    started = time.perf_counter()
    compare_results(sys.argv[1], details=details)
    seconds = time.perf_counter() - started
    # `ru_maxrss` of `getrusage` would not do: a new process inherits its parent's.
    peak = Path("/proc/self/status").read_text("utf-8").partition("VmHWM:")[2].split()[0]
    print(f"{seconds:.2f} {1024 * int(peak) / 1e9:.2f}")
