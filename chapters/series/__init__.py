"""Mosaics whose segments are windows of time series."""
