"""Search for further cells while a study runs (Optuna), and early stops (ASHA)."""
