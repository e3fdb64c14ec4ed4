"""Fixed focus (section 3 of the paper)."""
