"""What people type or read, known without NumPy: scores, and suffixes of files."""

from __future__ import annotations

SCORES = ("theory", "norm", "sensitivity", "entropy")

PREFERRED = ("theory", "sensitivity", "norm", "entropy")
"""Printed first is the order of the first of these that the file gives."""

NPZ = ".npz"

SUFFIXES = (NPZ, ".safetensors")
