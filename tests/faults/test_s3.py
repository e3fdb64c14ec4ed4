"""Results on S3: a real server on loopback, real processes, and what is wrong at start."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import boto3
import pytest
import requests
import s3fs
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from analysis.report import main as report
from study import compact, run, track
from study.results import Results, ResultsError
from study.storage.storage import Storage
from study.terminal.command import DONE, UNUSABLE
from study.tracking.uris import database_folder
from tests.contracts import test_storage as contract
from tests.made_up.commands import called, python
from tests.made_up.comparisons import make_cell, make_results, write

TINY = [
    "digits", "--tracking", "none", "--set", "n=40", "m=3", "epochs=2", "lr=0.1", "seed=0,1",
    "confirm=none", "paradigm=soft,hard", "batch_size=8", "evaluations=2", "train_metrics_size=20",
    "validation_size=20", "test_size=20",
]  # fmt: skip
CELLS = 4


@pytest.fixture
def bucket(s3) -> str:
    name = f"test-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def results(bucket) -> Results:
    results = Results(f"s3://{bucket}/results")
    results.prepare()
    return results


@pytest.fixture
def calls(monkeypatch) -> Calls:
    return Calls(monkeypatch)


class Calls:
    """Counts what s3fs asks of the server.

    Attributes:
        counts: operation -> number of calls.
        most: calls at a time.
        refuse: told of each operation; what it raises, the call raises.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self.most = self._now = 0
        self.refuse: Callable[[str], None] = lambda _: None
        call = s3fs.S3FileSystem._call_s3

        async def counted(system: Any, method: str, *args: Any, **options: Any) -> Any:
            self.refuse(method)
            self.counts[method] += 1
            self._now += 1
            self.most = max(self.most, self._now)
            try:
                return await call(system, method, *args, **options)
            finally:
                self._now -= 1

        patch.setattr(s3fs.S3FileSystem, "_call_s3", counted)

    def fail(self, error: Exception, only: str = "") -> None:
        """From now on all calls fail, or those of one operation."""

        def refuse(method: str) -> None:
            if only in method:
                raise error

        self.refuse = refuse


# What holds of a directory on a disk and in memory.


@pytest.fixture
def storage(bucket) -> Storage:
    return Storage(f"s3://{bucket}/root")


test_names_are_those_of_all_files = contract.test_names_are_those_of_all_files_below_a_folder
test_no_content_is_lost = contract.test_no_content_is_ever_lost_but_by_writing_and_removing


@pytest.mark.parametrize("place", ["", "/", "/a", "/a/b//"])
def test_a_directory_may_be_the_whole_bucket_or_any_folder(s3, bucket, place):
    results = Results(f"s3://{bucket}{place}")
    results.prepare()
    cell = write(results, make_cell(), 0.8)
    (name,) = results.storage.names("cells")
    (found,) = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert found["Key"] == f"{place.strip('/')}/{name}".lstrip("/")
    assert results.finished() == {cell.id}
    assert results.storage.path("x") == f"s3://{bucket}{place}".rstrip("/") + "/x"


# The commands.


class Studied(NamedTuple):
    """What the command printed of a study with its results on S3."""

    results: Results
    printed: str


@pytest.fixture(scope="module")
def studied(s3_server) -> Studied:
    """The command as people type it: Ray, workers, report."""
    bucket = f"test-{uuid.uuid4().hex}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    results = Results(f"s3://{bucket}/some/results")
    done = python("-m", "study.run", *TINY, "--results", f"{results.url}/")
    assert done.returncode == 0, done.stdout + done.stderr
    return Studied(results, done.stdout)


@pytest.mark.usefixtures("no_pictures")
def test_a_study_with_its_results_on_s3(studied, capsys):
    """The same command again runs nothing; trained on this disk a cell has the same bits."""
    results, printed = studied
    assert f"{CELLS} cells: 0 done already, {CELLS} to run" in printed
    assert len(results.finished()) == CELLS
    page = f"{results.url}/report/digits/report.html"
    assert re.search(rf"^report: {page}$", printed, re.M)
    assert results.storage.read("report/digits/report.html").startswith(b"<!DOCTYPE html>")
    assert results.storage.names("report", ".part") == []
    assert results.storage.names("checkpoints") == []
    status, again, _ = called(run.main, capsys, *TINY, "--results", results.url)
    assert (status, f"{CELLS} done already, 0 to run" in again) == (DONE, True)
    again = ("--again", min(results.finished()))
    _, equal, _ = called(run.main, capsys, TINY[0], "--results", results.url, *again)
    assert "largest difference 0 (metrics, heat maps, instances)" in equal


@pytest.mark.usefixtures("no_pictures")
def test_no_credential_is_written_anywhere(studied, tmp_path, empty_database, monkeypatch):
    """Neither by the command, nor into results, reports, checkpoints or MLflow."""
    results, printed = studied
    monkeypatch.chdir(tmp_path)
    shutil.copy(empty_database, database_folder(results.url) / "mlflow.db")
    assert track.main([results.url]) == 0
    written = [path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()]
    assert any(results.url.encode() in data for data in written)
    written += [results.storage.read(name) for name in results.storage.names("")]
    tables = [results.cells(), results.evaluations()]  # their files are packed
    written += [printed.encode(), *(table.to_csv().encode() for table in tables)]
    for data in written:
        assert b"test-secret" not in data
        assert b"test-key" not in data


# Writers and connections that are lost.


def test_a_writer_killed_in_the_middle_leaves_what_was_there(s3, bucket, storage):
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
    assert python("-c", code).returncode == -signal.SIGKILL
    (upload,) = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert upload["Key"] == "root/checkpoints/x"
    assert storage.names("") == ["checkpoints/x"]
    assert storage.read("checkpoints/x") == b"old"
    storage.write("checkpoints/x", bytes(101 * 2**20))  # the next one, to its end
    assert storage.read("checkpoints/x") == bytes(101 * 2**20)


def test_a_lost_connection_is_no_damage(results, calls):
    """Else a compacted file would be set aside, and all of its cells run again."""
    write(results, make_cell())
    compact.main([results.url])
    calls.fail(EndpointConnectionError(endpoint_url="http://lost"), only="get_object")
    for read in (results.survey, results.evaluations):
        with pytest.raises(ResultsError, match=r"cannot read .*Check the network"):
            read()


def test_rights_and_connections_that_are_lost_on_the_way(storage, calls):
    storage.write("a/x", b"")
    for error, remedy in (
        (PermissionError("Access Denied"), r"\(Access Denied\)\. Use credentials that may list"),
        (NoCredentialsError(), "Set AWS_ACCESS_KEY_ID"),
        (EndpointConnectionError(endpoint_url="http://u:secret@h"), "Check the network"),
        (TimeoutError(), r"Timeout.*\)\. Check the network"),
    ):
        calls.fail(error)
        for act in (
            lambda: storage.read("a/x"),
            lambda: storage.names("a"),
            lambda: storage.write("a/x", b""),
        ):
            with pytest.raises(ResultsError, match=f"cannot (read|write).*{remedy}") as raised:
                act()
            assert "secret" not in str(raised.value)
    calls.fail(TypeError())  # a bug is none of them
    with pytest.raises(TypeError):
        storage.read("a/x")


# What is wrong at start.


def test_a_bucket_that_is_not_there_is_refused_and_not_made(s3, tmp_path, capsys):
    """By every command, at once and with one line."""
    before = s3.list_buckets()["Buckets"]
    url, local = "s3://no-such-bucket/r", make_results(tmp_path).url
    write(Results(local), make_cell())
    for command, *arguments in (
        (run.main, *TINY, "--results", url),
        (report, url),
        (report, local, "--out", url),
        (compact.main, url),
        (run.main, "digits", "--results", url, "--again", "0123"),
        (track.main, url, "--tracking", f"sqlite:///{local}/mlflow.db"),
    ):
        status, printed, said = called(command, capsys, *arguments)
        assert (status, printed, said.count("\n")) == (UNUSABLE, "", 1)
        assert re.search(rf"cannot open .* {url} \(.*\)\. .* first, with `aws s3 mb`", said)
    assert s3.list_buckets()["Buckets"] == before


def test_a_bucket_that_is_lost_is_not_made_anew(s3, bucket, results):
    s3.delete_bucket(Bucket=bucket)
    before = s3.list_buckets()["Buckets"]
    lost = pytest.raises(ResultsError, match=r"does not exist\)\. Correct the name of its bucket")
    for act in (results.prepare, results.survey, lambda: write(results, make_cell())):
        with lost:
            act()
    assert s3.list_buckets()["Buckets"] == before


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ("AWS_SECRET_ACCESS_KEY=", r"\(Partial credentials .*\)\. Set AWS_ACCESS_KEY_ID"),
        ("AWS_PROFILE=nobody", r"profile \(nobody\) could not be found\)\. .*AWS_PROFILE"),
        ("AWS_ENDPOINT_URL=nonsense", "Invalid endpoint: nonsense"),
    ],
)
def test_an_account_that_cannot_be_used_is_refused(bucket, environment, message, monkeypatch):
    """Those that are missing, or cannot be reached, are met on the way, above."""
    name, _, value = environment.partition("=")
    monkeypatch.setenv(name, value)
    with pytest.raises(ResultsError, match=message):
        Storage(f"s3://{bucket}/r")


def test_credentials_that_are_not_accepted_are_refused(s3_server, bucket):
    def accept(calls):
        """So many calls more, of whoever is unknown."""
        kind = {"Content-Type": "text/plain"}
        done = requests.post(f"{s3_server}/moto-api/reset-auth", data=calls, headers=kind)
        assert done.ok

    accept("0")
    try:
        with pytest.raises(ResultsError, match="Use credentials that may list"):
            Storage(f"s3://{bucket}/r")
    finally:
        accept("inf")


def test_without_s3fs_the_command_that_installs_it_is_named(bucket, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3")
    with pytest.raises(ResultsError, match=r"not installed .*`uv sync --extra cluster`"):
        Storage(f"s3://{bucket}/r")


# What it costs.


def test_a_file_takes_one_request_and_many_are_read_at_a_time(results, calls):
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
