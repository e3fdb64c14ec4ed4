"""Runs studies of attention paradigms: search space -> cells -> trials -> results."""

__version__ = "0.1.0"
