"""The linear orthogonal setting of section 4, solved without a network.

docs/dynamics.md derives the formulas. It needs numpy, scipy and pandas; nothing else in `study`
imports it, so a trial runs without scipy.
"""
