"""Exact sampling of the posterior of attention paths, by slice sampling of U."""
