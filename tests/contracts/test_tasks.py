"""What every task keeps: its promises, its declaration, its batches; see `study.tasks.task`.

Data that would be downloaded are small and made up here, in the layout of the real ones.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from study import tasks
from study.cell import NO_OPTIONS, Cell, Options, Schedule
from study.check.of_tasks import PROMISES, Loaded
from study.check.promises import Skipped
from study.door import imported
from study.errors import RequestError
from study.tasks.task import MOSAICS, SPLITS, Batch, Split, carried, class_names
from tests.made_up.gpu import waits
from tests.made_up.layouts import LAYOUTS, OF_TASK

MOSAIC = [name for name in tasks.TASKS if tasks.modality(name).noun == MOSAICS.noun]
SIZES = {"train": 25, "validation": 20, "test": 22}


@dataclass(frozen=True)
class Known(Loaded):
    """A task with its usual options in these tests, and a small cell of it."""

    @property
    def options(self) -> Options:
        return OF_TASK[self.name].options

    @property
    def cell(self) -> Cell:
        return OF_TASK[self.name].cell(self.task, *SIZES.values())


@pytest.fixture(scope="module", params=tasks.TASKS)
def known(request, tmp_path_factory) -> Iterator[Known]:
    with OF_TASK[request.param].places(tmp_path_factory.mktemp(request.param)) as places:
        yield Known(request.param, places)


def whole(split: Split) -> Batch:
    return split.batch(torch.arange(len(split)))


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.check.__name__)
def test_it_keeps_its_promises(known, promise):
    """Those that `python -m study.check` checks of tasks from outside."""
    try:
        promise.check(known)
    except Skipped:
        assert known.task.facts.sizes or not tasks.modality(known.name).evaluates_alike


# --- the declaration


def test_a_task_reads_a_data_set_or_takes_none():
    assert OF_TASK.keys() == tasks.TASKS.keys()
    for name, layout in OF_TASK.items():
        assert tasks.TASKS[name].reads("data_dir") == (layout.write is not None)
        assert layout.write or tasks.at_hand(name)


@pytest.mark.parametrize("name", tasks.TASKS)
def test_options_that_a_task_has_not_are_refused(name):
    foreign = {k: v for layout in LAYOUTS.values() for k, v in layout.options.items()}
    assert foreign.keys() == {each for task in tasks.TASKS.values() for each in task.options}
    for option in foreign.keys() - tasks.TASKS[name].options.keys():
        owners = ", ".join(tasks.taking(option))
        message = f"{option} is for {owners}, not for {name}. Leave it out."
        with pytest.raises(RequestError, match=re.escape(message)):
            tasks.info(name, Options(**{**OF_TASK[name].options, option: foreign[option]}))


@pytest.mark.parametrize("name", tasks.TASKS)
def test_options_that_are_not_given_are_the_usual_ones(name):
    """And what None stands for has no other name."""
    declared, own = tasks.TASKS[name].options, OF_TASK[name].options
    if needed := [option for option, axis in declared.items() if not axis.default]:
        with pytest.raises(RequestError, match=f"{name} needs a {needed[0]}"):
            tasks.resolved(name, NO_OPTIONS)
    else:
        usual = tasks.resolved(name, NO_OPTIONS)
        assert tasks.resolved(name, usual) == usual
    if usual := {option: axis.usual for option, axis in declared.items() if axis.usual}:
        written = Options(**{**own, **usual})
        assert tasks.info(name, written).classes == tasks.info(name, own).classes
        assert tasks.resolved(name, written) == tasks.resolved(name, own)
        other = Options(**{**own, "foreground": "+".join(tasks.info(name, own).classes[::-1])})
        assert tasks.resolved(name, other)["foreground"] == other["foreground"]  # other data


# --- files


@pytest.mark.parametrize("name", [name for name, layout in LAYOUTS.items() if layout.write])
def test_all_files_that_are_read_are_known_by_their_names(name, tmp_path):
    """So that a directory on shared storage is copied whole, and nothing else of it."""
    layout = LAYOUTS[name]
    layout.write(folder := tmp_path / "data")
    data_set = tasks.TASKS[layout.task].data_set
    for path in (path for path in folder.rglob("*") if path.is_file()):
        assert data_set.belongs(path.relative_to(folder).as_posix())
    for other in ("notes.txt", ".git/config", "results/a/cells/train.parquet", "a/b/c/photo.png"):
        assert not data_set.belongs(other)


def test_what_is_prepared_is_prepared_once_until_a_file_changes(known):
    def prepared():
        known.task.splits(known.cell)
        folders = (known.places.cache / "prepared").glob("[!.]*")
        return {folder.name: folder.stat().st_ino for folder in folders}

    first = prepared()
    again = Known(known.name, known.places)
    assert again.task.facts == known.task.facts
    assert prepared() == first
    for path in Path(known.places.data_dir or "none").rglob("*"):
        os.utime(path, ns=(0, 0))
    Known(known.name, known.places).task.splits(known.cell)
    assert (len(prepared()) > len(first)) == OF_TASK[known.name].prepares


def test_what_networks_carry_is_plain_and_names_the_classes_of_who_can_be_asked(known):
    modality = tasks.modality(known.name)
    found = json.loads(json.dumps(carried(known.task)))
    assert tuple(found["input_shape"]) == known.task.facts.input_shape
    assert found["num_classes"] == known.task.num_classes
    assert bool(modality.reads) == bool(modality.example)
    if modality.reads:
        assert callable(imported(modality.reads))
        assert found["classes"] == class_names(known.splits()["test"])


# --- batches


def test_validation_and_test_are_held_once_and_no_option_of_training_draws(known):
    one = known.splits()
    faster = replace(known.cell, schedule=Schedule.hybrid(0.5, 0.3, 0.2), batch_size=3)
    same, other = known.task.splits(faster), known.splits(1)
    assert torch.equal(whole(one["train"]).segments, whole(same["train"]).segments)
    assert not torch.equal(whole(one["train"]).segments, whole(other["train"]).segments)
    for name in ("validation", "test"):
        assert one[name] is same[name]
        assert (one[name] is other[name]) == tasks.modality(known.name).evaluates_alike


@pytest.mark.parametrize("known", MOSAIC, indirect=True)
def test_no_draw_of_the_data_is_in_two_splits(known):
    """Images that are equal, or windows of one series, are one draw."""
    used = {}
    for name, split in known.splits().items():
        used[name] = set(split.sources[split.index.unique().long()].tolist())
    assert not used["train"] & used["validation"]
    assert known.splits()["train"].images is not split.images  # those that test


def test_a_batch_is_of_the_shapes_that_models_and_paradigms_take(known):
    facts = known.task.facts
    if facts.sizes:
        assert facts.sizes.keys() == set(SPLITS)
        assert sum(facts.lengths.values()) == facts.sizes["train"]
    for name, split in known.splits().items():
        segments, labels, foreground, mask = whole(split)
        assert split.modality is tasks.modality(known.name)
        assert len(split) == SIZES[name] == len(segments)
        assert split.bytes_each > 0
        if labels.dim() > 1:
            continue  # of captions, see tests/chapters/captions
        assert (foreground.shape, foreground.dtype) == (segments.shape[:2], torch.bool)
        assert torch.equal(labels, split.labels)
        if split.base_images is not None:
            assert len(split.base_images) == len(labels)
            assert split.base_images.dtype == torch.int64
            assert torch.equal(split.head(5).base_images, split.base_images[:5])
        if mask is None:
            assert segments.shape[1:] == (known.cell.m, *facts.input_shape)
            assert segments.dtype == torch.float32
            assert segments.abs().max() <= 1 or not OF_TASK[known.name].bounded
        else:
            assert (mask.shape, mask.dtype) == (foreground.shape, torch.bool)
            assert mask.any(dim=1).all()
            assert not (foreground & ~mask).any()


def test_a_batch_of_a_given_width_waits_for_nothing(known):
    """Few widths, found on the host; tensors on the meta device have no values to wait for.

    What it holds are rows of the whole, whatever the other rows; what is wider is padding.
    """
    elsewhere = known.task.splits(known.cell, "meta")
    for name, split in known.splits().items():
        every = whole(split)
        for rows in torch.randperm(len(split)).split(3):
            exact, (width,) = split.batch(rows), split.widths(rows[None])
            written = exact.labels.dim() > 1  # whose width counts words
            assert (exact.labels if written else exact.segments).shape[1] <= width
            assert written or width <= known.cell.m
            assert elsewhere[name].widths(rows[None]) == [width]
            with waits() as found:
                batch = split.batch(rows, width)
                assert not found
            there = elsewhere[name].batch(rows.to("meta"), width)
            for ours, theirs, least, all_rows in zip(batch, there, exact, every, strict=True):
                if ours is None or theirs is None:
                    assert ours is theirs is least
                    continue
                assert ours.shape == theirs.shape
                assert written or ours.dim() == 1 or ours.shape[1] == width
                narrow = ours if ours.dim() == 1 else ours[:, : least.shape[1]]
                assert torch.equal(narrow, least)
                of_all = all_rows[rows] if ours.dim() == 1 else all_rows[rows, : least.shape[1]]
                assert torch.equal(least, of_all)
            if batch.mask is not None:
                assert batch.mask.shape[1] == width
                assert batch.mask.sum() == every.mask[rows].sum()


def test_parts_of_a_split_are_parts_of_the_whole(known):
    """Passes, the first inputs, and segments that stand in several inputs.

    Where inputs differ in length, a pass is of like ones, so that little of it is padding.
    """
    for split in known.splits().values():
        passes = split.passes(7)
        assert sorted(torch.cat(list(passes)).tolist()) == list(range(len(split)))
        assert [len(rows) for rows in passes] == [7] * (len(split) // 7) + [len(split) % 7]
        real = [mask.sum(dim=1) for rows in passes if (mask := split.batch(rows).mask) is not None]
        assert not real or (torch.cat(real).diff() >= 0).all()
        head, first = whole(split.head(6)), split.batch(torch.arange(6))
        assert all(a is b is None or torch.equal(a, b) for a, b in zip(head, first, strict=True))
        if split.distinct is not None:
            names, places, segments = split.distinct
            assert len(names) == len(names.unique()) <= places.numel()
            assert torch.equal(segments(names)[places], whole(split).segments)
