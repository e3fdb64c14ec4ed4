"""Runs of another training loop: a table of plain numbers becomes a results directory.

`table` reads and refuses, `recorder` has `analysis.record`. docs/your-own.md shows its use.
"""
