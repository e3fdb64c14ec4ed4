"""Attention paths: networks that are solved and sampled, not trained (arXiv 2405.15926)."""
