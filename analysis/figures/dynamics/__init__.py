"""Figures of learning dynamics: held attention, trajectories, curvature, the plateau."""
