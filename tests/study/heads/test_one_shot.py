"""The command `study.run one-shot`, end to end: networks first, then what takes them apart."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from study import compact, repeat, run
from study.models import kept
from study.plan.jobs import Seconds
from study.results import Results
from study.terminal.command import DONE, FAILED
from tests.conftest import log_levels_kept, not_drawn, trials_here
from tests.made_up.commands import called
from tests.made_up.small_networks import assignments

pytestmark = pytest.mark.usefixtures("no_pictures")

main = functools.partial(called, run.main)

METHODS = "theory,gp,weight-norm,random,greedy,bound"


def asked(*changes: str) -> list[str]:
    """The study of two networks, with changes."""
    given = ("seed=0,1", f"method={METHODS}", "temperature=0.5")
    named = {text.partition("=")[0] for text in changes}
    kept = (text for text in given if text.partition("=")[0] not in named)
    return ["one-shot", "--set", *assignments(*kept, *changes)]


UNTRACKED = ("--tracking", "none")


TINY = asked()
NETWORKS, CELLS = 2, 2 * 6


@pytest.fixture(scope="module", autouse=True)
def short_timing() -> Iterator[None]:
    """Networks so small train in less time than a command takes to time them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("study.plan.estimate.MOST_STEPS", 3)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One study: its results directory, what it printed."""
    results = tmp_path_factory.mktemp("study") / "results"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), log_levels_kept(), not_drawn(), trials_here():
        assert run.main([*TINY, "--results", str(results)]) == DONE
    return results, printed.getvalue()


def test_networks_train_and_are_taken_apart_by_one_command(finished: tuple[Path, str]) -> None:
    """A rule's accuracy before it removes anything is that of the network at its end."""
    results, printed = finished
    cells, rows = Results(results).cells(), Results(results).evaluations()
    networks, apart = (cells[cells["kind"] == kind] for kind in ("training", "heads"))
    assert (len(networks), len(apart)) == (NETWORKS, CELLS)
    kept_ones = {path.stem for path in results.glob("networks/*.safetensors")}
    assert set(apart["network"]) == set(networks["cell_id"]) == kept_ones
    last = rows[(rows["split"] == "test") & (rows["budget_fraction"] == 1)]
    accuracy = last.set_index("cell_id")["accuracy"]
    for row in apart[apart["method"].isin(["weight-norm", "bound", "greedy"])].itertuples():
        assert accuracy[row.cell_id] == accuracy[row.network]
    for claim in ("P7", "P8", "P9"):
        assert re.search(rf"^{claim} ", printed, re.M), printed
    assert f"report: file://{results}/report/one-shot/report.html" in printed


def test_the_same_command_runs_nothing_and_another_method_trains_nothing(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    results = str(finished[0])
    status, printed, _ = main(capsys, *TINY, "--results", results)
    assert status == DONE
    assert f"{NETWORKS} cells: {NETWORKS} done already, 0 to run" in printed
    assert f"{CELLS} cells: {CELLS} done already, 0 to run" in printed
    _, printed, _ = main(capsys, *asked("method=entropy"), "--plan", "--results", results)
    assert f"{NETWORKS} cells: {NETWORKS} done already, 0 to run" in printed
    assert "2 cells: 0 done already, 2 to run" in printed


@pytest.mark.parametrize("method", ["theory", None])
def test_a_cell_repeats_to_its_numbers(
    method: str | None, finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    cells = Results(finished[0]).cells()
    mine = cells["method"].isna() if method is None else cells["method"] == method
    status, printed, errors = called(
        repeat.main, capsys, str(finished[0]), cells.loc[mine, "cell_id"].iloc[0]
    )
    assert status == DONE, errors
    assert "largest difference 0 " in printed


def test_a_lost_network_is_named_and_the_others_go_on(
    finished: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether its cell has a file of its own or not."""
    results = tmp_path / "results"
    shutil.copytree(finished[0], results)
    assert called(compact.main, capsys, str(results))[0] == DONE
    cells = Results(results).cells()
    first = cells.loc[cells["kind"] == "training", "cell_id"].iloc[0]
    (results / kept.file_of(first)).unlink()
    given = [*asked("method=entropy"), *UNTRACKED, "--results", str(results)]
    _, printed, _ = main(capsys, *given, "--plan")
    missing = (
        f"lacks the network networks/{first}.safetensors. Copy it from where the cell was trained"
    )
    assert missing in " ".join(printed.split())
    assert "1 cell: 0 done already, 1 to run" in printed
    with trials_here():
        status, printed, errors = main(capsys, *given)
    assert (status, "Traceback" in errors) == (DONE, False)
    assert missing in (results / "report" / "one-shot" / "report.md").read_text()
    apart = Results(results).cells().query("method == 'entropy'")
    assert len(apart) == 1
    assert first not in set(apart["network"])


def test_heads_of_networks_that_diverged_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without another to take apart, and beside others, which go on."""
    given = [*UNTRACKED, "--results", str(tmp_path)]
    for rates, apart in (("1e30", []), ("1e30,0.01", ["random"])):
        with trials_here():
            command = [*asked("seed=0", "method=random", f"lr={rates}"), *given]
            status, printed, errors = main(capsys, *command)
        assert status == DONE, errors
        assert apart or "Networks that diverged are in no mean: seed 0" in printed
        report = (tmp_path / "report" / "one-shot" / "report.md").read_text()
        assert "its network diverged" in report
        cells = Results(tmp_path).cells()
        assert cells.loc[cells["kind"] == "heads", "method"].tolist() == apart
        assert len(list(tmp_path.glob("networks/*"))) == len(apart)


def test_a_bug_in_a_network_stops_the_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AssertionError("made up")

    monkeypatch.setattr("study.models.attention_paths.AttentionPaths.loss", broken)
    monkeypatch.setattr(
        "study.plan.planning.cell_seconds",
        lambda plan, cells: {c.id: Seconds(1.0, 1.0) for c in cells},
    )
    with trials_here():
        status, _, errors = main(capsys, *TINY, *UNTRACKED, "--results", str(tmp_path))
    assert status == FAILED
    assert "made up" in errors
