"""Files: a path or a URL, whole files only."""
