"""Runs of another training loop: a table of plain numbers becomes a results directory."""
