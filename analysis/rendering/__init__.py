"""Blocks as HTML, as Markdown, tables as LaTeX."""
