"""The linear orthogonal setting (section 4 of the paper)."""
