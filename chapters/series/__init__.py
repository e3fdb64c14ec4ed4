"""Mosaics whose segments are windows of time series, bundled or your own.

`studies` declares the study, `task` its data, which `ts_files` reads and `windows` cuts; `model`
is its network. docs/studies.md tells of the data, docs/open-questions.md what came out.
"""
