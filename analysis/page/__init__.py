"""The report as files: HTML, Markdown, tables."""
