"""The command `study.run one-shot`, end to end: networks first, then what takes them apart.

What it records and prints, the golden record holds.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch

from study import compact, run
from study.drive.again import largest_difference
from study.errors import RequestError
from study.models import kept
from study.results import Results, load_network
from study.terminal.command import DONE
from tests.chapters.paths.small_networks import assignments
from tests.conftest import not_drawn, run_without_ray
from tests.made_up.commands import called

pytestmark = pytest.mark.usefixtures("no_pictures", "without_ray")

main = functools.partial(called, run.main)


def asked(results: Path, *changes: str) -> list[str]:
    """The study of two networks, with changes."""
    given = {"seed": "0,1", "method": "theory,random", "temperature": "0.5"}
    given |= dict(text.split("=") for text in changes)
    sets = assignments(*(f"{name}={value}" for name, value in given.items()))
    return ["one-shot", "--results", str(results), "--tracking", "none", "--set", *sets]


@pytest.fixture(scope="module", autouse=True)
def short() -> Iterator[None]:
    """Networks so small train in less time than it takes to time them, and to draw them."""
    with not_drawn(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("study.plan.estimate.MOST_STEPS", 3)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    results = tmp_path_factory.mktemp("study") / "results"
    run_without_ray(asked(results))
    return Results(results)


@pytest.fixture
def cells(finished: Results) -> pd.DataFrame:
    return finished.cells().fillna({"method": "network"}).set_index("method")


def test_a_network_is_loaded_but_does_not_predict_as_it_classifies_no_segments(finished, cells):
    cell_id, _ = cells.loc["network", "cell_id"]
    loaded = load_network(finished.url, cell_id)
    weights = kept.load(finished.storage, cell_id)
    assert kept.digest(loaded.model.state_dict()) == kept.digest(weights)
    for ask in (loaded.outputs, loaded.predict, loaded.show):
        with pytest.raises(RequestError, match="does not classify segments"):
            ask(torch.zeros(1))


def test_a_cell_repeats_to_its_numbers_and_other_predictions_are_a_difference(
    finished, cells, capsys
):
    cell_id, _ = cells.loc["theory", "cell_id"]
    again = ("one-shot", "--results", finished.url, "--again", cell_id)
    status, printed, errors = main(capsys, *again)
    assert status == DONE, errors
    assert "largest difference 0 " in printed
    rows = finished.evaluations([cell_id])
    other = rows.assign(predictor_mean=rows["predictor_mean"] + 1e-3)
    assert largest_difference(rows, other)[0] == pytest.approx(1e-3)


def test_a_lost_network_is_named_and_the_others_go_on(finished, cells, tmp_path, capsys):
    """No network is trained again; also where cells have no files of their own."""
    results = tmp_path / "results"
    shutil.copytree(finished.url, results)
    assert called(compact.main, capsys, str(results))[0] == DONE
    lost, left = cells.loc["network", "cell_id"]
    (results / kept.file_of(lost)).unlink()
    status, printed, errors = main(capsys, *asked(results, "method=entropy"))
    assert status == DONE, errors
    lacks = f"lacks the network networks/{lost}.safetensors. Copy it from where the cell was"
    assert lacks in " ".join(printed.split())
    assert lacks in (results / "report" / "one-shot" / "report.md").read_text()
    (apart,) = Results(results).cells().query("method == 'entropy'")["network"]
    assert apart == left


def test_heads_of_networks_that_diverged_are_left_out(tmp_path, capsys):
    """Without another to take apart, and beside others, which go on."""
    for rates, apart in (("1e30", []), ("1e30,0.01", ["random"])):
        command = asked(tmp_path, "seed=0", "method=random", f"lr={rates}")
        status, printed, errors = main(capsys, *command)
        assert status == DONE, errors
        assert apart or "Networks that diverged are in no mean: seed 0" in printed
        report = (tmp_path / "report" / "one-shot" / "report.md").read_text()
        assert "its network diverged" in report
        cells = Results(tmp_path).cells()
        assert cells.loc[cells["kind"] == "heads", "method"].tolist() == apart
        assert len(list(tmp_path.glob("networks/*"))) == len(apart)
