"""The files of a results directory, behind a path or URL."""
