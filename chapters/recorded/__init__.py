"""Runs of another training loop: a table of plain numbers becomes a results directory.

`taken` makes a data frame of what people have, `exports` knows W&B, MLflow and TensorBoard,
`table` checks, `recorder` has `analysis.record`. docs/your-own/training-loop.md shows its
use, and of exports docs/your-own/runs.md.
"""
