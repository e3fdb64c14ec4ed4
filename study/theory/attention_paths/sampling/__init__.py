"""Exact sampling of the posterior of attention paths, by two methods that share no code."""
