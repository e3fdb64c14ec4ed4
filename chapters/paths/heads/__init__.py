"""Cells that take trained networks apart: theory on their attention, scores of heads, pruning."""
