"""A study of captions: Bleu-4, the heat map and threshold of the task, pictures of every word."""

from __future__ import annotations

import io
import itertools

import pytest
from PIL import Image

from analysis.digest.compare import Comparison, compare_results
from analysis.page.pictures import pictures
from study.results import Results, ResultsError
from tests.chapters.captions.caption_results import OBJECTS, make_caption_cell, write_captions
from tests.made_up.comparisons import compared, make_cell, make_results, write

SAIF = {"hard-running": 0.1, "soft": 0.2, "hybrid-running": 0.3}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Six seeds; a seed of hard attention diverged."""
    results = make_results(tmp_path_factory.mktemp("captions"))
    for (paradigm, saif), seed in itertools.product(SAIF.items(), range(6)):
        lost = (paradigm, seed) == ("hard-running", 5)
        write_captions(
            results,
            make_caption_cell(paradigm, seed=seed),
            0.1 + 0.01 * (seed % 3),
            saif + 0.004 * seed,
            status="diverged" if lost else "done",
            points=(0.25,) if lost else None,
        )
    return results


@pytest.fixture(scope="module")
def comparison(results: Results) -> Comparison:
    return compared(results)


def test_each_task_has_the_thresholds_of_its_own_heat_map(tmp_path):
    both = make_results(tmp_path)
    write_captions(both, make_caption_cell())
    write(both, make_cell())
    for how, digits, mscoco in (({}, 0.8, 0.3), ({"threshold": 0.2}, 0.2, 0.2)):
        found = {each.task: each.threshold for each in compare_results(both, **how)}
        assert found == {"digits": digits, "mscoco": mscoco}
    for threshold, task in ((0.3, "digits"), (0.6, "mscoco")):
        with pytest.raises(ResultsError, match=f"an inner edge .* of {task}"):
            compare_results(both, threshold=threshold)


def test_a_diverged_cell_counts_as_nothing(comparison):
    lost = comparison.at_budget[comparison.at_budget["diverged"]]
    assert len(lost) == 3  # splits
    assert (lost[["saif", "accuracy", "bleu_1", "bleu_4", "cider"]] == 0).all(axis=None)
    assert lost["caption_length"].isna().all()


def test_captions_of_all_paradigms_stand_in_one_picture(comparison, tmp_path):
    found = [each for each in pictures(comparison) if each.name.startswith("captions")]
    assert [each.title for each in found] == [f"{c} ({image})" for image, c in OBJECTS.items()]
    assert all(paradigm in found[0].caption for paradigm in SAIF)
    with Image.open(io.BytesIO(found[0].png)) as picture:
        assert picture.width <= 850
    earlier = make_results(tmp_path)  # examples are of the end of a cell
    write_captions(earlier, make_caption_cell(), examples=None)
    assert not any(each.name.startswith("captions") for each in pictures(compared(earlier)))
