"""Names that people type or read: scores, and suffixes of files."""

from __future__ import annotations

SCORES = ("theory", "norm", "sensitivity", "entropy")

PREFERRED = ("theory", "sensitivity", "norm", "entropy")
"""Whose order is printed first: the first of these that the file gives."""

NPZ = ".npz"

SUFFIXES = (NPZ, ".safetensors")
