"""The command `python -m study.prune FILE`: scores the heads of a network that a user brings."""

from study.prune.prune_command import main as main
