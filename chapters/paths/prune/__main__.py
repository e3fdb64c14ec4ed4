"""Runs the command."""

from chapters.paths.prune import main
from study.terminal.command import run_as_command

if __name__ == "__main__":
    run_as_command(main)
