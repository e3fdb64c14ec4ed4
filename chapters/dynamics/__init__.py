"""Learning dynamics: attention held at alpha (section 3), and linear models in closed form (4).

`studies` declares both studies, `task` and `vectors` the orthogonal vectors, `model` the linear
model. `linear_orthogonal/` solves the setting without a network, on NumPy, SciPy and pandas;
`section/` and `figures/` compare what was trained with it. docs/dynamics.md derives the formulas.
"""
