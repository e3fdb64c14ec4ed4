"""Cells that take networks apart: their identity, their rules, and what makes them."""

from __future__ import annotations

import pytest

from chapters.paths.heads.heads_cell import OF_THE_LIMIT, TEMPERATURES
from study.errors import RequestError
from study.kinds import KINDS
from tests.chapters.paths.small_networks import cells, plan


def test_methods_widths_temperatures_and_seeds_of_one_network_are_compared():
    made = [
        *cells("method=theory,gp,weight-norm", "network_width=5,6", "seed=0,1"),
        *cells("method=theory", "temperature=published,0.1"),
    ]
    changes = ("examples=31", "lr=0.02", "n=300", "test_size=41")
    apart = [cell for change in changes for cell in cells("method=theory", change)]
    assert len({cell.id for cell in made + apart}) == len(made + apart)
    assert len({cell.comparison_id for cell in made}) == 1
    assert len({cell.comparison_id for cell in made[:1] + apart}) == 5


def test_a_cell_needs_the_network_that_it_takes_apart():
    found = plan("method=theory,gp,random", "seed=0,1")
    networks = KINDS["heads"].needs(found.cells)
    assert [network.seed for network in networks] == [0, 1]
    assert {cell.network.id for cell in found.cells} == {network.id for network in networks}
    (phase,) = networks[0].schedule.phases
    assert (phase.paradigm, phase.optimiser, phase.weight_decay) == ("soft", "adam", 5e-5)


def test_the_published_choice_gives_the_limit_five_of_ten():
    def tried(method: str, choice: str) -> tuple[float, ...]:
        (cell,) = cells(f"method={method}", f"temperature={choice}")
        return cell.temperatures

    assert tried("theory", "published") == tried("gp", "validation") == TEMPERATURES
    assert tried("gp", "published") == OF_THE_LIMIT
    assert len(OF_THE_LIMIT) == 5
    assert tried("theory", "0.07") == (0.07,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("temperature=0", "temperature must be a finite number > 0, got 0.0"),
        ("temperature=warm", "temperature takes a number, validation or published, got 'warm'"),
        ("layers=20", "number of paths, is at most 4,096"),
        ("patch=3", "patch must divide the images' 8 x 8 pixels, got 3"),
        ("paradigm=hard", "its paradigm is soft"),
        ("m=4", "an episode has 3 images, so m is 3"),
        ("split=shared-base", "its split is disjoint"),
        ("alpha=0.5", "attention is held on mosaics"),
        ("optimiser=sgd", "weight_decay must be none without the optimiser adam"),
        ("confirm=7", "unknown axis 'confirm'"),
    ],
)
def test_what_cannot_be_is_refused(change, words):
    with pytest.raises(RequestError, match=words):
        plan("method=theory", change)


def test_a_bound_of_many_heads_is_left_out():
    found = plan("method=theory,bound", "heads=9")
    assert [cell.method for cell in found.cells] == ["theory"]
    (skip,) = found.skipped
    assert "all subsets of 18 heads are more than 65,536" in skip


def test_a_theory_that_memory_does_not_hold_is_left_out():
    found = plan("method=theory,random", "examples=1000000")
    assert [cell.method for cell in found.cells] == ["random"]
    assert "GB of memory" in found.skipped[0]
