"""Further cells while a study runs, and cells that are stopped early."""
