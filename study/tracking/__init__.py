"""Tracking of studies in MLflow, from their results."""
