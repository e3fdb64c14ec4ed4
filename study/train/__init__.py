"""The kind of cell that trains."""
