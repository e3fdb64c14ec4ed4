"""The command `attention-study spread RESULTS_DIR`, and `analysis.attended_segments`."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

import analysis
from study.errors import ResultsError
from study.terminal.command import DONE, Parser, guarded


def attended_segments(results_dir: str) -> pd.DataFrame:
    """The mean over seeds of each comparison and paradigm, at equal compute."""
    found = analysis.compare_results(results_dir)
    table = pd.concat([each.summary.assign(comparison=each.name) for each in found])
    if "attended_segments" not in table:
        raise ResultsError(f"{results_dir} holds no attended segments: run the study rings first.")
    return table[["comparison", "paradigm", "attended_segments"]].dropna(ignore_index=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done or 2 unusable request."""
    return guarded("attention-study spread", lambda: _run(argv), "stopped")


def _run(argv: Sequence[str] | None) -> int:
    parser = Parser("my_attention.spread_command", "Among how many segments attention is shared.")
    parser.add_results_dir()
    found = attended_segments(parser.parse_args(argv).results_dir)
    print(found.to_string(index=False, float_format="{:.2f}".format))
    return DONE
