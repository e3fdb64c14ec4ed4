"""Rows of Parquet, JSON lines and CSV: read without the network, or the fault is named."""

from __future__ import annotations

import socket

import datasets
import pytest

from chapters.texts.tables import SUFFIXES, read_rows
from tests.made_up.commands import refusal

ROWS = {"text": ["a fine film", "dull"], "label": ["good", "bad"]}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_is_read_without_the_network(tmp_path, suffix, monkeypatch):
    """As Hugging Face's `datasets` writes it."""
    monkeypatch.setattr(socket, "getaddrinfo", None)
    rows = datasets.Dataset.from_dict(ROWS)
    path = tmp_path / f"films{suffix}"
    {".parquet": rows.to_parquet, ".csv": rows.to_csv, ".jsonl": rows.to_json}[suffix](path)
    assert [row for _, row in read_rows(path, "")] == list(rows)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.jsonl", '{"text": "a"}\n\n{"te', ", row 2 cannot be read ("),
        ("a.jsonl", '{"text": "a"}\n["b"]', ", row 2 cannot be read ("),
        ("a.parquet", "PAR1", " cannot be read ("),
        ("a.csv", "", " cannot be read ("),
        ("a.csv", "text,label\nno, not at all,bad\n", " cannot be read (a row has more values"),
    ],
)
def test_a_bad_table_is_named(tmp_path, name, content, fault):
    (tmp_path / name).write_text(content)
    message = refusal(lambda: list(read_rows(tmp_path / name, "Mend it.")))
    assert message.startswith(f"{tmp_path / name}{fault}")
    assert message.endswith("Mend it.")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize(
    ("encoding", "like"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("cp1252", "Windows-1252"),
    ],
)
def test_of_another_encoding_the_file_is_told_and_no_row(tmp_path, name, encoding, like):
    text = "caf\xe9" if encoding == "cp1252" else "coffee"
    (tmp_path / name).write_text(f'{{"text": "{text}"}}\n' * 9, encoding)
    message = refusal(lambda: list(read_rows(tmp_path / name, "Mend it.")))
    said = f"{tmp_path / name} cannot be read (it is not UTF-8 but looks like {like}"
    assert message.startswith(said)
