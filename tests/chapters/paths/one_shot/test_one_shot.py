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
import torch

from study import compact, run
from study.drive.again import largest_difference
from study.errors import RequestError
from study.models import kept
from study.results import Results, load_network
from study.terminal.command import DONE
from tests.chapters.paths.small_networks import assignments
from tests.conftest import log_levels_kept, not_drawn, trials_here
from tests.made_up.commands import called

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
    for row in apart[apart["method"] == "bound"].itertuples():
        assert accuracy[row.cell_id] == accuracy[row.network]
    assert re.search(r"^P9 .*", printed, re.M), printed
    assert f"report: file://{results}/report/one-shot/report.html" in printed


def test_a_network_is_loaded_but_does_not_predict_as_it_classifies_no_segments(
    finished: tuple[Path, str],
) -> None:
    results = Results(finished[0])
    cell_id = results.cells().query("kind == 'training'")["cell_id"].iloc[0]
    loaded = load_network(finished[0], cell_id)
    weights = kept.load(results.storage, cell_id)
    assert kept.digest(loaded.model.state_dict()) == kept.digest(weights)
    with pytest.raises(RequestError, match="does not classify segments"):
        loaded.predict(torch.zeros(1))


def test_another_method_trains_no_network(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*asked("method=entropy"), "--plan", "--results", str(finished[0])]
    _, printed, _ = main(capsys, *given)
    assert f"{NETWORKS} cells: {NETWORKS} done already, 0 to run" in printed
    assert "2 cells: 0 done already, 2 to run" in printed


@pytest.mark.parametrize("method", ["theory", None])
def test_a_cell_repeats_to_its_numbers(
    method: str | None, finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    cells = Results(finished[0]).cells()
    mine = cells["method"].isna() if method is None else cells["method"] == method
    status, printed, errors = called(
        run.main,
        capsys,
        "one-shot",
        "--results",
        str(finished[0]),
        "--again",
        cells.loc[mine, "cell_id"].iloc[0],
    )
    assert status == DONE, errors
    assert "largest difference 0 " in printed


def test_other_predictions_of_theory_are_a_difference(finished: tuple[Path, str]) -> None:
    cells = Results(finished[0]).cells()
    (cell_id, _) = cells.loc[cells["method"] == "theory", "cell_id"]
    rows = Results(finished[0]).evaluations([cell_id])
    other = rows.assign(predictor_mean=rows["predictor_mean"] + 1e-3)
    assert largest_difference(rows, other)[0] == pytest.approx(1e-3)


def test_a_lost_network_is_named_and_the_others_go_on(
    finished: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where cells have no files of their own."""
    results = tmp_path / "results"
    shutil.copytree(finished[0], results)
    assert called(compact.main, capsys, str(results))[0] == DONE
    cells = Results(results).cells()
    first = cells.loc[cells["kind"] == "training", "cell_id"].iloc[0]
    (results / kept.file_of(first)).unlink()
    with trials_here():
        status, printed, errors = main(
            capsys, *asked("method=entropy"), *UNTRACKED, "--results", str(results)
        )
    assert status == DONE, errors
    lacks = f"lacks the network networks/{first}.safetensors. Copy it from where the cell was"
    assert lacks in " ".join(printed.split())
    assert lacks in (results / "report" / "one-shot" / "report.md").read_text()
    (apart,) = Results(results).cells().query("method == 'entropy'")["network"]
    assert apart != first


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
