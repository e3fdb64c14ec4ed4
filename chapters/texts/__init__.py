"""Posts: texts whose tokens are segments."""
