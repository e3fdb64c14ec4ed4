"""Figures of learning dynamics: held attention, trajectories, curvature."""
