"""How the paradigms learn: fixed focus (section 3 of the paper) and trajectories (section 4)."""
