"""Results on S3: a real server on loopback, real processes, and what is wrong at start."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pandas as pd
import pytest
import s3fs
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from analysis.report import main as report
from study import compact, repeat, run, track
from study.cell import Cell, Schedule
from study.cell.work import Job, Work
from study.launch.run_job import run_job
from study.results import Results, ResultsError, Survey
from study.storage.storage import Storage
from study.tasks.mosaics.mosaics import MosaicTask
from study.tracking.uris import database_folder
from tests.conftest import PROJECT, tiny_cell
from tests.contracts import test_storage as contract
from tests.made_up.comparisons import make_cell, make_results, write

TINY = [
    "digits", "--tracking", "none", "--set", "n=40", "m=3", "epochs=2", "lr=0.1", "seed=0,1",
    "confirm=none", "paradigm=soft,hard", "batch_size=8", "evaluations=2", "train_metrics_size=20",
    "validation_size=20", "test_size=20",
]  # fmt: skip
CELLS = 4


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"test-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def results(bucket: str) -> Results:
    results = Results(f"s3://{bucket}/results")
    results.prepare()
    return results


def rows(results: Results) -> pd.DataFrame:
    """Everything that is measured, but the times."""
    return results.evaluations().drop(columns="train_seconds")


def keys(s3: Any, bucket: str) -> list[str]:
    return [each["Key"] for each in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def work_in(results: Results) -> Work:
    return Work(study="digits", results=results.url, code_version="test", gpu=False)


def on_disk(folder: Path, cells: list[Cell]) -> Results:
    results = Results(folder / "on-disk")
    results.prepare()
    for cell in cells:
        run_job(Job(((cell,),)), work_in(results))
    return results


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


class Calls:
    """Counts what s3fs asks of the server.

    Attributes:
        counts: operation -> number of calls.
        most: calls at a time.
        refuse: told of operation and arguments; what it raises, the call raises.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self.most = self._now = 0
        self.refuse: Callable[[str, dict[str, Any]], None] = lambda *_: None
        call = s3fs.S3FileSystem._call_s3

        async def counted(system: Any, method: str, *args: Any, **options: Any) -> Any:
            self.refuse(method, options)
            self.counts[method] += 1
            self._now += 1
            self.most = max(self.most, self._now)
            try:
                return await call(system, method, *args, **options)
            finally:
                self._now -= 1

        patch.setattr(s3fs.S3FileSystem, "_call_s3", counted)


# What holds of a directory on a disk and in memory.


@pytest.fixture
def storage(bucket: str) -> Storage:
    return Storage(f"s3://{bucket}/root")


test_names_are_those_of_all_files = contract.test_names_are_those_of_all_files_below_a_folder


def test_what_is_written_is_read_moved_and_removed(storage: Storage) -> None:
    for content in (b"old", b"new"):
        storage.write("a/x", content)
    assert storage.read("a/x") == b"new"
    assert storage.move("a/x", "b/x") == "b/x"
    storage.write("a/x", b"other")
    assert storage.move("a/x", "b/x") != "b/x"
    assert storage.read("b/x") == b"new"
    for _ in range(2):
        storage.remove("b/x")
    assert not storage.exists("b/x")


@pytest.mark.parametrize("place", ["", "/", "/a", "/a/b//"])
def test_a_directory_may_be_the_whole_bucket_or_any_folder(
    s3: Any, bucket: str, place: str
) -> None:
    results = Results(f"s3://{bucket}{place}")
    results.prepare()
    cell = write(results, make_cell(), 0.8)
    (name,) = results.storage.names("cells")
    assert keys(s3, bucket) == [f"{place.strip('/')}/{name}".lstrip("/")]
    assert results.finished() == {cell.id}
    assert results.storage.path("x") == f"s3://{bucket}{place}".rstrip("/") + "/x"


def test_results_equal_those_on_a_disk(
    results: Results, digits: MosaicTask, tmp_path: Path
) -> None:
    cells = [tiny_cell(digits), tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.4))]
    local = on_disk(tmp_path, cells)
    for cell in cells:
        assert run_job(Job(((cell,),)), work_in(results)) == {cell.id: "done"}
        assert results.status(cell.id) == "done"
    pd.testing.assert_frame_equal(rows(results), rows(local), check_exact=True)
    times = ["total_seconds", "total_train_seconds", "total_evaluate_seconds", "finished_at"]
    ours, theirs = (each.cells().drop(columns=times) for each in (results, local))
    pd.testing.assert_frame_equal(ours, theirs)
    assert results.survey() == local.survey()
    assert results.storage.names("checkpoints") == []


def test_a_killed_trial_goes_on_from_its_checkpoint(
    results: Results, digits: MosaicTask, tmp_path: Path
) -> None:
    cell = tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.4), n=400)
    local = on_disk(tmp_path, [cell])
    work = replace(work_in(results), checkpoint_every=0).to_dict()
    code = "from study.launch.run_job import run_job; from study.cell.work import Job, Work; "
    code += "from study.cell import Cell; "
    code += f"run_job(Job(((Cell.from_dict({cell.to_dict()!r}),),)), Work.from_dict({work!r}))"
    trial = subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT)
    name = f"checkpoints/{cell.id}.ckpt"
    deadline = time.monotonic() + 60
    while not results.storage.exists(name):
        assert trial.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    trial.kill()
    trial.wait()
    assert results.storage.names("cells") == []
    events: list[dict[str, Any]] = []
    run_job(Job(((cell,),)), work_in(results), events.append)
    assert any("goes on from its checkpoint" in event.get("text", "") for event in events)
    pd.testing.assert_frame_equal(rows(results), rows(local), check_exact=True)
    assert results.storage.names("checkpoints") == []


def test_damaged_files_are_set_aside_and_small_ones_merged(results: Results) -> None:
    cells = [write(results, make_cell(seed=seed), 0.8) for seed in range(3)]
    (name,) = results.storage.names("cells", cells[0].id)
    results.storage.write(name, results.storage.read(name)[:-100])
    (damage,) = results.survey().damaged
    assert results.set_aside([damage]) == [results.storage.path(f"damaged/{name}")]
    assert results.finished() == {cell.id for cell in cells[1:]}
    write(results, cells[0], 0.8, seconds=3.0)  # no run takes as long as another
    before = results.tables()
    assert compact.main([results.url]) == 0
    assert len(results.storage.names("cells")) == 1
    assert results.tables() == before
    assert compact.main([results.url]) == 0


# The commands.


class Studied(NamedTuple):
    """What the command printed of a study with its results on S3."""

    results: Results
    printed: str


@pytest.fixture(scope="module")
def studied(s3_server: str) -> Studied:
    """The command as people type it: Ray, workers, report."""
    bucket = f"test-{uuid.uuid4().hex}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    results = Results(f"s3://{bucket}/some/results")
    done = subprocess.run(
        [sys.executable, "-m", "study.run", *TINY, "--results", f"{results.url}/"],
        cwd=PROJECT, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return Studied(results, done.stdout)


def test_a_study_with_its_results_on_s3(studied: Studied) -> None:
    results, printed = studied
    assert f"{CELLS} cells: 0 done already, {CELLS} to run" in printed
    assert len(results.finished()) == CELLS
    page = re.search(r"^report: (.*)$", printed, re.M)[1]
    assert page == f"{results.url}/report/digits/report.html"
    assert results.storage.read("report/digits/report.html").startswith(b"<!DOCTYPE html>")
    assert results.storage.names("report", ".part") == []
    assert results.storage.names("checkpoints") == []


@pytest.mark.usefixtures("no_pictures")
def test_the_same_command_again_runs_nothing(
    studied: Studied, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main([*TINY, "--results", studied.results.url]) == 0
    printed = capsys.readouterr().out
    assert f"{CELLS} cells: {CELLS} done already, 0 to run" in printed
    table = studied.printed[studied.printed.index("digits m=3: ") :]
    assert table.replace("results//report", "results/report") in printed


def test_a_cell_of_it_is_repeated(studied: Studied, capsys: pytest.CaptureFixture[str]) -> None:
    """On this disk; to the bit, since the threads are as many."""
    (first, *_) = sorted(studied.results.finished())
    assert repeat.main([studied.results.url, first]) == 0
    assert "largest difference 0 (metrics, heat maps, instances)" in capsys.readouterr().out


@pytest.mark.usefixtures("no_pictures")
def test_its_report_is_written_anew_beside_it_elsewhere_and_here(
    studied: Studied, bucket: str, tmp_path: Path
) -> None:
    results = studied.results
    assert report([results.url]) == 0
    assert report([results.url, "--out", f"s3://{bucket}/r"]) == 0
    assert report([results.url, "--out", str(tmp_path / "r")]) == 0
    here = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert here == set(Storage(f"s3://{bucket}").names(""))
    beside = {name for name in results.storage.names("report") if "/digits/" not in name}
    assert beside == {f"report/{name.removeprefix('r/')}" for name in here}


@pytest.mark.usefixtures("no_pictures")
def test_no_credential_is_written_anywhere(
    studied: Studied, tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by the command, nor into results, reports, checkpoints or MLflow."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(empty_database, database_folder(studied.results.url) / "mlflow.db")
    assert track.main([studied.results.url]) == 0
    written = [path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()]
    assert any(studied.results.url.encode() in data for data in written)
    written += [studied.results.storage.read(name) for name in studied.results.storage.names("")]
    tables = [studied.results.cells(), studied.results.evaluations()]  # their files are packed
    written += [studied.printed.encode(), *(table.to_csv().encode() for table in tables)]
    for data in written:
        assert b"test-secret" not in data
        assert b"test-key" not in data


# Writers that are killed.


def test_an_upload_that_was_not_completed_is_not_there(
    s3: Any, bucket: str, results: Results
) -> None:
    cell = write(results, make_cell(), 0.8)
    held = {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys(s3, bucket)}
    other = make_cell(seed=1)
    for key, data in held.items():
        for half in (key, key.replace(cell.id, other.id)):  # of a new file, and of an old one
            upload = {"Bucket": bucket, "Key": half}
            upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
            s3.upload_part(**upload, PartNumber=1, Body=data[: len(data) // 2])
    assert len(s3.list_multipart_uploads(Bucket=bucket)["Uploads"]) == 2
    assert len(results.storage.names("cells")) == 1
    assert results.survey() == Survey({cell.id: "done"}, ())
    assert results.status(other.id) is None
    assert write(results, other, 0.8).id in results.finished()


def test_a_writer_killed_in_the_middle_leaves_what_was_there(
    s3: Any, bucket: str, storage: Storage
) -> None:
    """A file so large that it is sent in parts."""
    storage.write("checkpoints/x", b"old")
    code = f"""
import os, signal
import s3fs
from study.storage.storage import Storage
call = s3fs.S3FileSystem._call_s3
async def killed(system, method, *args, **options):
    if options.get("PartNumber") == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return await call(system, method, *args, **options)
s3fs.S3FileSystem._call_s3 = killed
Storage({storage.url!r}).write("checkpoints/x", bytes(101 * 2**20))
"""
    writer = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False)
    assert writer.returncode == -signal.SIGKILL
    (upload,) = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert upload["Key"] == "root/checkpoints/x"
    assert storage.names("") == ["checkpoints/x"]
    assert storage.read("checkpoints/x") == b"old"
    storage.write("checkpoints/x", bytes(101 * 2**20))  # the next one, to its end
    assert storage.read("checkpoints/x") == bytes(101 * 2**20)


def test_a_lost_connection_is_no_damage(results: Results, calls: Calls) -> None:
    """Else a compacted file would be set aside, and all of its cells run again."""
    for seed in range(2):
        write(results, make_cell(seed=seed), 0.8)
    compact.main([results.url])

    def refuse(method: str, _: dict[str, Any]) -> None:
        if method == "get_object":
            raise EndpointConnectionError(endpoint_url="http://lost")

    calls.refuse = refuse
    for read in (results.survey, results.evaluations):
        with pytest.raises(ResultsError, match=r"cannot read .*Check the network"):
            read()
    calls.refuse = lambda *_: None
    assert len(results.finished()) == 2


def test_files_that_a_compaction_removes_meanwhile_are_no_damage(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(2):
        write(results, make_cell(seed=seed), 0.8)
    before = Results(results.url).tables()
    fetch = results.storage.fetch

    def late(names: Sequence[str], folder: Path) -> None:
        compact.main([results.url])
        fetch(names, folder)

    monkeypatch.setattr(results.storage, "fetch", late)
    assert results.tables() == before
    assert results.survey().damaged == ()


# What is wrong at start.


def commands(url: str, folder: Path) -> list[tuple[Callable[[list[str]], int], list[str]]]:
    return [
        (run.main, [*TINY, "--results", url]),
        (report, [url]),
        (report, [str(folder), "--out", url]),
        (compact.main, [url]),
        (repeat.main, [url, "0123"]),
        (track.main, [url, "--tracking", f"sqlite:///{folder}/mlflow.db"]),
    ]


def assert_refused(
    url: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every command, at once and with one line."""
    local = make_results(folder)
    write(local, make_cell(), 0.8)
    for command, arguments in commands(url, folder):
        assert command(arguments) == 2, arguments
        said = capsys.readouterr()
        assert said.out == ""
        (line,) = said.err.splitlines()
        assert re.search(message, line), line
        assert "secret" not in line


def test_a_bucket_that_is_not_there_is_refused_and_not_made(
    s3: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = s3.list_buckets()["Buckets"]
    assert_refused(
        "s3://no-such-bucket/r",
        r"cannot open .* s3://no-such-bucket/r \(.*\)\. .* or make it first, with `aws s3 mb`",
        tmp_path,
        capsys,
    )
    assert s3.list_buckets()["Buckets"] == before


def test_a_bucket_that_is_lost_is_not_made_anew(s3: Any, bucket: str, storage: Storage) -> None:
    results = Results(f"s3://{bucket}/r")
    s3.delete_bucket(Bucket=bucket)
    before = s3.list_buckets()["Buckets"]
    lost = pytest.raises(ResultsError, match=r"does not exist\)\. Correct the name of its bucket")
    for act in (
        results.prepare,
        results.survey,
        results.cells,
        lambda: storage.write("a/x", b""),
        lambda: storage.names("a"),
        lambda: storage.probe("a"),
    ):
        with lost:
            act()
    assert s3.list_buckets()["Buckets"] == before


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"AWS_SECRET_ACCESS_KEY": None}, r"\(Partial credentials .*\)\. Set AWS_ACCESS_KEY_ID"),
        (
            {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None},
            r"\(Unable to locate credentials\)\. Set AWS_ACCESS_KEY_ID and .* or give .* a role",
        ),
        ({"AWS_PROFILE": "nobody"}, r"profile \(nobody\) could not be found\)\. .*AWS_PROFILE"),
        ({"AWS_ENDPOINT_URL": "nonsense"}, r"Invalid endpoint: nonsense"),
    ],
    ids=["half", "none", "profile", "endpoint"],
)
def test_missing_credentials_are_refused(
    bucket: str,
    environment: dict[str, str | None],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        if value is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, value)
    assert_refused(f"s3://{bucket}/r", message, tmp_path, capsys)


def test_metadata_that_do_not_answer_delay_for_seconds_only(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no credentials, botocore asks the machine for its role."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.delenv(name)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
        started = time.monotonic()
        with pytest.raises(ResultsError, match="Unable to locate credentials"):
            Storage(f"s3://{bucket}/r")
        assert time.monotonic() - started < 30


def test_credentials_that_are_not_accepted_are_refused(
    s3_server: str, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def accept(calls: str) -> None:
        """So many calls more, of whoever is unknown."""
        request = urllib.request.Request(
            f"{s3_server}/moto-api/reset-auth", calls.encode(), {"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request).close()

    accept("0")
    try:
        assert_refused(f"s3://{bucket}/r", "Use credentials that may list", tmp_path, capsys)
    finally:
        accept("inf")


def test_rights_and_connections_that_are_lost_on_the_way(
    storage: Storage, calls: Calls, tmp_path: Path
) -> None:
    storage.write("a/x", b"")
    for error, remedy in (
        (PermissionError("Access Denied"), r"\(Access Denied\)\. Use credentials that may list"),
        (NoCredentialsError(), "Set AWS_ACCESS_KEY_ID"),
        (EndpointConnectionError(endpoint_url="http://u:secret@h"), "Check the network"),
        (TimeoutError(), r"Timeout.*\)\. Check the network"),
    ):

        def refuse(*_: object, error: Exception = error) -> None:
            raise error

        calls.refuse = refuse
        for act in (
            lambda: storage.read("a/x"),
            lambda: storage.fetch(["a/x"], tmp_path),
            lambda: storage.exists("a/x"),
            lambda: storage.names("a"),
            lambda: storage.move("a/x", "b/x"),
            lambda: storage.write("a/x", b""),
            lambda: storage.remove("a/x"),
            lambda: storage.probe("a"),
        ):
            with pytest.raises(ResultsError, match=f"cannot (read|write).*{remedy}") as raised:
                act()
            assert "secret" not in str(raised.value)

    def bug(*_: object) -> None:
        raise TypeError

    calls.refuse = bug
    for act in (lambda: storage.read("a/x"), lambda: storage.write("a/x", b"")):
        with pytest.raises(TypeError):
            act()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://", r"s3:// names no bucket"),
        ("s3:/bucket/results", r"s3:/bucket/results is no URL. It must begin with s3://"),
        ("s3://key:secret@bucket/r", "^[^@]*holds a user or a password"),
        ("s3://key:se/secret@bucket/r", "^[^@]*holds a user or a password"),
        ("s3://secret@bucket/r", "^[^@]*holds a user or a password"),
    ],
)
def test_urls_that_are_refused(
    url: str, message: str, tmp_path: Path, s3: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(url, message, tmp_path, capsys)


def test_an_endpoint_that_does_not_answer_is_refused(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    started = time.monotonic()
    assert run.main([*TINY, "--results", f"s3://{bucket}/r"]) == 2
    assert time.monotonic() - started < 60
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(rf"Could not connect .*{address}.*Check the network and AWS_ENDPOINT", line)


def test_without_s3fs_the_command_that_installs_it_is_named(
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3")
    message = r"s3:// needs packages that are not installed .*`uv sync --extra cluster`"
    assert_refused(f"s3://{bucket}/r", message, tmp_path, capsys)


# What it costs.


def test_a_file_takes_one_request_and_many_are_read_at_a_time(
    results: Results, calls: Calls
) -> None:
    calls.counts.clear()
    cells = {write(results, make_cell(seed=seed), 0.8).id for seed in range(20)}
    assert calls.counts == {"put_object": 20}
    calls.counts.clear()
    calls.most = 0
    assert results.finished() == cells
    assert calls.counts == {"list_objects_v2": 2, "get_object": 20}
    assert calls.most > 4
    calls.counts.clear()
    assert len(results.evaluations()) == 20 * 12
    assert calls.counts == {"list_objects_v2": 2}
