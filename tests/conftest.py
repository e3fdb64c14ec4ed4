"""Fixtures that several tests share. No test uses the network or the user's home."""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_limits
from xdist.scheduler import LoadFileScheduling

from study import run, tasks
from study.cell import Cell, Schedule
from study.launch.cluster import SETTINGS, ray_session
from study.models import build, model_of
from study.models.flops import ModelFlops
from study.results import Results
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.sources.places import Places
from study.tasks.task import Task
from study.terminal.command import DONE
from study.train.budget.cost import soft_epochs
from tests.made_up.comparisons import make_results

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A shell that runs the suite in the background ignores SIGINT for it, and for what it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Containers like to forbid it; tests start many interpreters, and each would compile all anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Each run draws other examples, so few are enough; a slow machine fails no test.
hypothesis.settings.register_profile("few", deadline=None, max_examples=10)
hypothesis.settings.register_profile("many", deadline=None, max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))

# Where no GPU is, kernels are interpreted; Triton reads it when it is first imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# Ray reads them when it is first imported, which a file of tests may do.
for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)

PROJECT = Path(__file__).parents[1]
REAL_DATA = PROJECT.parent / "shared" / "data"
Test = TypeVar("Test", bound=Callable[..., object])

ALLOWED_SKIPS = frozenset(
    {
        "needs ../shared/data, the real data at hand",
        "needs a CUDA device, none is here",
        "needs the right to mount a file system",
        "needs a machine without a CUDA device",
        "needs glibc, whose allocator is told to keep memory",
        "needs Chromium, which .ci/run installs",
        "needs sshd, rsync and ip, which .ci/run installs",
        "needs root, slurm-wlm and munge, which .ci/run installs",
        "needs PostgreSQL, which .ci/run installs",
        "needs the right to make namespaces",
        "needs uv and a package registry",
        "needs aeon, which `uv sync --extra series` installs",
    }
)
"""Reasons for which a test may be skipped; any other skip is a failure."""

LONGEST = (
    "test_gpu_hour", "test_slurm", "test_kills", "test_on_premise", "test_cluster_docs",
    "test_cluster", "test_benchmarks", "test_package", "test_s3", "test_tracking_server",
    "test_mlflow_ui", "test_half_made", "test_postgresql",
    "test_golden", "test_launch", "test_sections", "test_run",
    "test_recording", "test_report", "test_tracker", "test_store", "test_cut", "test_search",
    "test_track", "test_shard_command", "test_two_stages", "test_declared_once",
    "test_report_command", "test_merging",
)  # fmt: skip
"""The files of both stages that take longest, see `--durations`."""

_ONE_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)

needs_data = pytest.mark.skipif(
    not REAL_DATA.is_dir(), reason="needs ../shared/data, the real data at hand"
)


def needs_cuda(test: Test) -> Test:
    """Marks a test for `pytest -m cuda`; without a device it is skipped."""
    here = torch.cuda.is_available()
    return pytest.mark.cuda(
        pytest.mark.skipif(not here, reason="needs a CUDA device, none is here")(test)
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m cuda` leaves all other files alone: a GPU machine may lack Ray, MLflow and Optuna."""
    if config.option.markexpr != "cuda" or collection_path.suffix != ".py":
        return None
    return "@needs_cuda" not in collection_path.read_text() or None


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two processes for a stage as a whole; none but this for a part of it.

    A stage computes on one core and waits for what it starts; two keep two cores busy.
    """
    asked = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or config.option.keyword
    return 0 if asked else 2


class ByFile(LoadFileScheduling):
    """Hands a process one file after another, but of the golden record one piece."""

    def _split_scope(self, nodeid: str) -> str:
        alone = nodeid.startswith("tests/golden/")
        return nodeid if alone else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of tests/faults is the second stage.

    Files that take longest come first, so that two processes end at about the same time.
    """
    for item in items:
        if item.path.parent == PROJECT / "tests" / "faults":
            item.add_marker("faults")
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns a skip whose reason is not on the list into a failure."""
    report = yield
    _refuse_other_skips(report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """The same for a file that is skipped as a whole."""
    _refuse_other_skips(report)


def _refuse_other_skips(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if reason not in ALLOWED_SKIPS:
            report.outcome = "failed"
            report.longrepr = f"a skip that tests/conftest.py does not allow: {reason}"


@pytest.fixture(scope="session", autouse=True)
def cache_dir(tmp_path_factory) -> Iterator[Path]:
    """A cache directory for the whole session, also of the processes it starts."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("cache")
    patch.setenv("ATTENTION_STUDY_CACHE", str(folder))
    patch.delenv("MLFLOW_TRACKING_URI", raising=False)
    # Readline, which pytest imports, sets it past Python, for the processes that are started.
    patch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")
    yield folder
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def made_for_small_tables() -> Iterator[None]:
    """Strings in Python objects change no result, and tests of the analysis are a quarter faster.

    Commands that tests start have pandas' usual setting.
    """
    with pd.option_context("mode.string_storage", "python"):
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Nothing that a test writes here is read after a loss of power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def no_first_lines(monkeypatch) -> None:
    """A busy machine makes a second of what is short, and tests read what commands say."""
    monkeypatch.setattr("study.terminal.working.LINE_AFTER", 20.0)


@pytest.fixture(scope="session", autouse=True)
def one_thread_of_blas() -> Iterator[None]:
    """Matrices of tests are small, and wait for further threads: without it, half a minute more.

    The commands that tests call set their own number, see `--threads`.
    """
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Bitwise claims hold at equal threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def digits(cache_dir) -> MosaicTask:
    return tasks.load("digits", Places(cache_dir=str(cache_dir)))


@pytest.fixture
def results(tmp_path) -> Results:
    """An empty results directory."""
    return make_results(tmp_path / "results")


@pytest.fixture
def results_with_store(tmp_path, empty_database) -> Results:
    """As `results`, with an empty MLflow store, which takes MLflow seconds to make."""
    made = make_results(tmp_path / "results")
    shutil.copy(empty_database, tmp_path / "results" / "mlflow.db")
    return made


@pytest.fixture
def no_pictures() -> Iterator[None]:
    """As `without_pictures`."""
    with without_pictures():
        yield


@contextlib.contextmanager
def without_pictures() -> Iterator[None]:
    """Comparisons have no figures: they take most of a report's time, and few tests look there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.page.comparisons.pictures", lambda *_, **__: [])
        patch.setattr("analysis.page.comparisons.family_pictures", lambda _: [])
        yield


@pytest.fixture(autouse=True)
def mlflow_log_levels() -> Iterator[None]:
    """Tracking silences the loggers of MLflow for its process; a test leaves them as they were."""
    with log_levels_kept():
        yield


@contextlib.contextmanager
def log_levels_kept() -> Iterator[None]:
    levels = {name: logging.getLogger(name).level for name in ("mlflow", "alembic")}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory) -> Path:
    """A database that MLflow has migrated, which takes it seconds."""
    from mlflow import MlflowClient

    file = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{file}").search_experiments()
    return file


def tiny_cell(task: Task, schedule: Schedule | None = None, **changes: object) -> Cell:
    """A cell, of digits unless said otherwise, that trains in a fraction of a second."""
    values = {
        "task": task.name,
        "data_digest": task.facts.digest,
        "m": 4,
        "n": 120,
        "architecture": "perceptron",
        "schedule": schedule or Schedule.single("soft", 0.1),
        "seed": 0,
        "batch_size": 16,
        "train_metrics_size": 50,
        "validation_size": 50,
        "test_size": 50,
        "evaluation_points": (0.0, 0.25, 0.5, 0.75, 1.0),
        **changes,
    }
    if "budget" not in values:
        values["budget"] = soft_epochs(4, tiny_flops(), values["m"], values["n"])
    return Cell(**values)


def lasting(cell: Cell, task: Task, epochs: float) -> Cell:
    """A cell with the budget of so many epochs of soft attention."""
    flops = model_of(cell, task).flops(task.facts.input_shape, task.facts.lengths, cell.m)
    return replace(cell, budget=soft_epochs(epochs, flops, cell.m, cell.n))


def tiny_flops() -> ModelFlops:
    """Of the network of a `tiny_cell`."""
    return build("perceptron", "digits", (1, 8, 8), 3).flops((1, 8, 8))


@pytest.fixture(scope="session")
def ray_instance() -> Iterator[None]:
    """One Ray for all tests of a session; `study.launch.tune` uses the one that is there."""
    with ray_session(cores=2):
        yield


@pytest.fixture
def homeless(monkeypatch) -> None:
    """A process of a user id without a name, and without HOME, as containers have them."""

    def nobody(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)


@contextlib.contextmanager
def not_drawn() -> Iterator[None]:
    """Figures are laid out as ever, but what is written of each is nothing: drawing takes long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.section.picture.figure_png", lambda _: _ONE_PIXEL)
        patch.setattr("analysis.section.picture.figure_pdf", lambda _: b"%PDF-1.4")
        patch.setattr("analysis.section.picture.figure_svg", lambda *_, **__: "<svg></svg>")
        yield


@pytest.fixture
def without_ray() -> Iterator[None]:
    """As `trials_here`."""
    with trials_here():
        yield


@contextlib.contextmanager
def trials_here() -> Iterator[None]:
    """`study.drive.on_ray` runs its trials one after the other in this process, on its CPU.

    That Ray makes no difference to them, tests/study/launch/test_launch.py shows.
    """
    from tests.made_up.trials import here  # which imports Ray

    threads = torch.get_num_threads()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("study.drive.on_ray.OnRay.on_ray", here)
            yield
    finally:
        torch.set_num_threads(threads)


def run_without_ray(arguments: Sequence[str]) -> None:
    """`study.run` in this process, for fixtures of more than one test; without pictures."""
    with trials_here(), without_pictures():
        assert run.main(arguments) == DONE


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> pd.DataFrame:
    """What an uninterrupted run of `tests.made_up.small_study` records."""
    from tests.made_up import jobs, small_study

    results = tmp_path_factory.mktemp("whole") / "results"
    run_without_ray(small_study.arguments(results))
    rows = jobs.table(results)
    assert rows["cell_id"].nunique() == small_study.CELLS
    return rows


@pytest.fixture(scope="module")
def s3_server(tmp_path_factory) -> Iterator[str]:
    """An S3 server on loopback, to which this process and its children are sent; its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    nowhere = str(tmp_path_factory.mktemp("aws") / "none")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test-key",
            "AWS_SECRET_ACCESS_KEY": "test-secret",
            "AWS_CONFIG_FILE": nowhere,
            "AWS_SHARED_CREDENTIALS_FILE": nowhere,
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        yield address
    server.stop()


@pytest.fixture
def s3(s3_server) -> Iterator[Any]:
    """A client of the server, and no connection of an earlier test in this process."""
    import boto3
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3")
    yield client
    client.close()
    s3fs.S3FileSystem.clear_instance_cache()


# Of a module, not of the session: as long as it lives, its event loop counts as running in this
# thread, and what other tests start there (`asyncio.run`) would be refused.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, driven by Playwright."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("needs Chromium, which .ci/run installs")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Chromium's sandbox does not work for root, as which containers run.
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
