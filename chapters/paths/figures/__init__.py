"""Figures of the chapter."""
