"""Runs studies of attention paradigms: search space -> cells -> trials -> results."""

__version__ = "1.0.0"
