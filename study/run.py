"""The command `python -m study.run STUDY`: what was asked for, then the study."""

from __future__ import annotations

from collections.abc import Sequence

from study.terminal.command import guarded, importing, run_as_command


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done, 1 cells failed, 2 unusable request."""
    stopped = "stopped; the same command goes on where this one ended"
    return guarded("study.run", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    with importing():
        from study.options import requested

    request = requested(argv)  # in a moment; PyTorch and pandas take seconds
    with importing():
        from study.drive import drive

    return drive(request)


if __name__ == "__main__":
    run_as_command(main)
