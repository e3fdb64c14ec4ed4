"""`python -m analysis.report`: what it prints, where it writes, what it refuses."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from analysis.page.files import Unwritable, link
from analysis.report import main
from study.drive import closing
from study.drive.launcher import Trained
from study.launch.workplace import looked_at
from study.results import Results, local_path
from study.run_options import requested
from tests.made_up.commands import called
from tests.made_up.comparisons import make_cell, write, write_seeds


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(
    results,
    tmp_path,
    capsys,
    monkeypatch,
):
    write_seeds(results, {"soft": 0.4, "hard": 0.4})
    (tmp_path / "file").touch()
    monkeypatch.setattr("analysis.conclude.find", None)  # would fail if called
    for folder, reason in (
        ("file", "Not a directory"),
        ("file/a/b", "Not a directory"),
        ("results/cells", "a results directory keeps files of its own there"),
        ("results/networks", "a results directory keeps files of its own there"),
        (300 * "a", "File name too long"),
    ):
        message = f"{folder} ({reason}). Choose a folder with --out DIR"
        _assert_refused([results.url, "--out", str(tmp_path / folder)], message, capsys)


@pytest.mark.usefixtures("no_pictures")
def test_a_full_disk_has_the_advice_of_the_command(
    results,
    tmp_path,
    capsys,
    monkeypatch,
):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    cell = write(results, make_cell())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        patch.setattr("analysis.page.comparisons.pictures", lambda *_, **__: [])
        message = "No space left on device). Choose a folder with --out DIR."
        _assert_refused([results.url], message, capsys)
        # At its end, study.run has no such option.
        request = requested(["digits", "--results", results.url])
        place = looked_at(results.url)
        plan = SimpleNamespace(cells=(cell,), skipped=())
        with pytest.raises(Unwritable) as refusal:
            closing.report(request, place, Trained([plan], [], Mock()))
    (command,) = re.findall("`python -m analysis.report (.*)`", str(refusal.value))
    out = tmp_path / "out"
    assert main(shlex.split(command.replace("DIR", str(out)))) == 0
    assert (out / "report.html").exists()


def test_before_the_first_cell_of_a_run_there_is_nothing_to_resume(results, capsys):
    with Results(results.url).lock():
        _assert_refused([results.url], "A study is running with it: ask again when", capsys)
    _assert_refused([results.url], "Run or resume the study first", capsys)


def test_as_a_command_without_warnings_for_a_reader_who_leaves(results, tmp_path):
    """Whatever the user has set for figures of their own."""
    write(results, make_cell())
    command = [sys.executable, "-W", "error", "-m", "analysis.report", results.url]
    of_figures = "text.usetex: True  # schön".encode("latin-1")
    for name in ("rc", "matplotlibrc"):  # the latter where the command runs
        (tmp_path / name).write_bytes(of_figures)
    of_user = {"MPLBACKEND": "Qt4Agg", "MATPLOTLIBRC": str(tmp_path / "rc")}
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=os.environ | of_user
    )
    os.close(writer)
    assert done.returncode == 0
    assert b"Error" not in done.stderr  # of a broken pipe, which Python says and goes on
    folder = tmp_path / "results" / "report"
    for end, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF")):
        drawn = [path.read_bytes() for path in (folder / "figures").glob(f"*{end}")]
        assert len(drawn) == 4
        assert all(len(data) > 5_000 and data.startswith(start) for data in drawn)


@pytest.mark.parametrize("kind", ["file", "memory"])
@pytest.mark.usefixtures("no_pictures")
def test_the_report_of_a_url_lies_beside_its_results_or_where_it_is_asked_for(
    kind, tmp_path, capsys
):
    url = f"memory://{uuid.uuid4().hex}" if kind == "memory" else (tmp_path / "r").as_uri()
    results = Results(url)
    results.prepare()
    write(results, make_cell())
    storage = results.storage
    storage.make("report/digits/figures")
    for name in ("comparison.csv", "notes.csv"):  # of an older report, and of someone else
        storage.write(f"report/digits/{name}", b"old")
    assert main([url + "/", "--study", "digits"]) == 0
    place = storage.path("report/digits/report.html")
    assert capsys.readouterr().out.endswith(f"report: {link(local_path(place) or place)}\n")
    assert storage.read("report/digits/notes.csv") == b"old"
    assert storage.read("report/digits/comparison.csv") != b"old"
    storage.write("report/digits/figures/heatmaps-test-01234567.png", b"of cells that are gone")
    storage.write("report/digits/figures/mine.png", b"")
    assert main([url, "--study", "digits", "--out", f"{url}/report/digits/"]) == 0
    assert storage.names("report/digits/figures") == ["report/digits/figures/mine.png"]
    assert main([url, "--out", str(tmp_path / "out")]) == 0
    written = {name.removeprefix("report/digits/") for name in storage.names("report/digits")}
    here = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*")}
    assert here == written - {"notes.csv", "figures/mine.png"}


def _assert_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed, errors = called(main, capsys, *arguments)
    assert (status, "report:" in printed, errors.count("\n")) == (2, False, 1)
    assert errors.startswith("analysis.report: ")
    assert message in errors
