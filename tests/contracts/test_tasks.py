"""What every task keeps: its declaration, the seed that draws, the batches; see `tasks.base`.

Data that would be downloaded are small and made up here, in the layout of the real ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest
import torch

from study import tasks
from study.cell import NO_OPTIONS, Cell, Options, Schedule
from study.errors import RequestError
from study.tasks.base import SPLITS, Batch, Split, Task, TaskInfo
from tests.made_up.gpu import waits
from tests.made_up.layouts import OF_TASK

N = 25


CLASSIFIED = [name for name in tasks.TASKS if tasks.modality(name) is not tasks.CAPTIONS]
"""Tasks whose inputs have one label each; captions are in tests/study/tasks/captions."""


class Known(NamedTuple):
    """A task, how it is loaded again, and a cell of it."""

    name: str
    info: TaskInfo
    load: Callable[[], Task]
    task: Task
    cell: Cell


@pytest.fixture(scope="module", params=tasks.TASKS)
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Known:
    name: str = request.param
    layout = OF_TASK[name]
    load = partial(layout.load, tmp_path_factory.mktemp(name))
    task = load()
    return Known(name, tasks.info(name, layout.options), load, task, layout.cell(task, N, 20, 22))


def whole(split: Split) -> Batch:
    return split.batch(torch.arange(len(split)))


def equal(one: Split, other: Split) -> bool:
    """Bitwise."""
    return all(
        (a is None and b is None) or torch.equal(a, b)
        for a, b in zip(whole(one), whole(other), strict=True)
    )


# --- the declaration


def test_a_task_reads_a_data_set_or_takes_none() -> None:
    assert OF_TASK.keys() == tasks.TASKS.keys()
    for name, layout in OF_TASK.items():
        assert tasks.TASKS[name].reads("data_dir") == (layout.write is not None)
        assert layout.write or tasks.at_hand(name)


def test_the_data_are_what_was_declared(known: Known) -> None:
    task, facts = known.task, known.task.facts
    assert task.name == known.name
    declared = known.info.num_classes or facts.num_classes
    assert task.num_classes == (declared or facts.input_shape[0])
    assert re.fullmatch("[0-9a-f]{16}", facts.digest)
    assert known.load().facts == facts
    if facts.sizes:
        assert facts.sizes.keys() == set(SPLITS)
        assert sum(facts.lengths.values()) == facts.sizes["train"]
    else:
        assert facts.input_shape == known.info.input_shape == known.info.nominal.input_shape


@pytest.mark.parametrize("name", tasks.TASKS)
def test_options_that_a_task_has_not_are_refused(name: str) -> None:
    own = OF_TASK[name].options
    foreign = {
        "num_classes": 4, "label_rule": "first", "rationale_rule": "first", "min_count": 2,
        "encoder": "small", "pixels": 16, "foreground": "a+b", "background": "c", "window": 5,
    }  # fmt: skip
    assert foreign.keys() == {each for task in tasks.TASKS.values() for each in task.options}
    for option in foreign.keys() - tasks.TASKS[name].options.keys():
        owners = ", ".join(tasks.taking(option))
        message = f"{option} is for {owners}, not for {name}. Leave it out."
        with pytest.raises(RequestError, match=re.escape(message)):
            tasks.info(name, Options(**{**own, option: foreign[option]}))


@pytest.mark.parametrize("name", tasks.TASKS)
def test_options_that_are_not_given_are_the_usual_ones(name: str) -> None:
    declared = tasks.TASKS[name].options
    if needed := [option for option, axis in declared.items() if not axis.default]:
        with pytest.raises(RequestError, match=f"{name} takes a {needed[0]}"):
            tasks.resolved(name, NO_OPTIONS)
    else:
        usual = tasks.resolved(name, NO_OPTIONS)
        assert tasks.resolved(name, usual) == usual


USUAL = {
    name: {option: axis.usual for option, axis in task.options.items() if axis.usual}
    for name, task in tasks.TASKS.items()
}
"""Task -> option -> what None stands for."""


@pytest.mark.parametrize("name", [name for name, usual in USUAL.items() if usual])
def test_what_none_stands_for_has_no_other_name(name: str) -> None:
    own, usual = OF_TASK[name].options, USUAL[name]
    written = Options(**{**own, **usual})
    assert tasks.info(name, written).classes == tasks.info(name, own).classes
    assert tasks.resolved(name, written) == tasks.resolved(name, own)
    other = Options(**{**own, "foreground": "+".join(tasks.info(name, own).classes[::-1])})
    assert tasks.resolved(name, other)["foreground"] == other["foreground"]  # other data


def test_noise_stands_for_the_data(known: Known) -> None:
    """Of as many inputs as asked for, in the shapes of the data, so that steps can be timed."""
    count = 50
    noise = known.info.made_up(known.task.facts, count)
    cell = replace(known.cell, n=count, validation_size=count, test_size=count)
    splits = noise.splits(cell)
    assert noise.num_classes == known.task.num_classes
    assert noise.facts.input_shape == known.task.facts.input_shape
    for name, split in known.task.splits(known.cell).items():
        assert len(splits[name]) == count
        for ours, theirs in zip(whole(splits[name]), whole(split), strict=True):
            if theirs is None:
                assert ours is None
            else:
                assert ours.dtype == theirs.dtype
                assert ours.shape[2:] == theirs.shape[2:]


# --- what the seed draws


def test_the_seed_draws_the_train_split_and_of_episodes_alone_the_others(known: Known) -> None:
    """Neither paradigm nor rate does."""
    one = known.task.splits(known.cell)
    again = known.load().splits(known.cell)
    faster = replace(known.cell, schedule=Schedule.hybrid(0.5, 0.3, 0.2), batch_size=3)
    other = known.task.splits(replace(known.cell, seed=1))
    assert list(one) == list(SPLITS)
    for name in SPLITS:
        assert equal(one[name], again[name])
        assert equal(one[name], known.task.splits(faster)[name])
    assert not equal(one["train"], other["train"])
    for name in ("validation", "test"):
        assert one[name] is known.task.splits(known.cell)[name]  # held once, for all cells
        if tasks.modality(known.name) is tasks.ONE_SHOT:
            assert not equal(one[name], other[name])  # of other characters
        else:
            assert one[name] is other[name]


# --- batches


@pytest.mark.parametrize("known", CLASSIFIED, indirect=True)
def test_a_batch_is_of_the_shapes_that_models_and_paradigms_take(known: Known) -> None:
    sizes = {"train": N, "validation": 20, "test": 22}
    for name, split in known.task.splits(known.cell).items():
        segments, labels, foreground, mask = whole(split)
        assert split.modality is tasks.modality(known.name)
        assert len(split) == sizes[name] == len(segments)
        assert segments.shape[1] <= known.cell.m
        assert foreground.shape == segments.shape[:2]
        assert foreground.dtype == torch.bool
        assert labels.dtype == torch.int64
        assert torch.equal(labels, split.labels)
        if split.base_images is not None:
            assert len(split.base_images) == len(labels)
            assert split.base_images.dtype == torch.int64
            assert torch.equal(split.head(5).base_images, split.base_images[:5])
        assert set(labels.tolist()) <= set(range(known.task.num_classes))
        assert split.bytes_each > 0
        if mask is None:
            assert segments.shape[1:] == (known.cell.m, *known.task.facts.input_shape)
            assert segments.dtype == torch.float32
            assert segments.abs().max() <= 1 or known.name == "series"  # which is standardised
            assert torch.equal(foreground.sum(1), torch.ones_like(labels))
        else:
            assert (mask.shape, mask.dtype) == (foreground.shape, torch.bool)
            assert mask.any(dim=1).all()
            assert not (foreground & ~mask).any()


@pytest.mark.parametrize("known", CLASSIFIED, indirect=True)
def test_rows_of_a_batch_do_not_depend_on_the_others(known: Known) -> None:
    for split in known.task.splits(known.cell).values():
        every = whole(split)
        rows = torch.tensor([5, 0, 17])
        some = split.batch(rows)
        assert torch.equal(some.labels, every.labels[rows])
        width = some.segments.shape[1]
        assert width == every.segments.shape[1] or every.mask is not None
        for ours, all_of_them in zip(some, every, strict=True):
            if ours is not None and ours.dim() > 1:
                assert torch.equal(ours, all_of_them[rows, :width])
                assert not (all_of_them.dtype == torch.bool and all_of_them[rows, width:].any())


def test_a_batch_of_a_given_width_waits_for_nothing(known: Known) -> None:
    """Few widths, found on the host; tensors on the meta device have no values to wait for."""
    elsewhere = known.task.splits(known.cell, "meta")
    for name, split in known.task.splits(known.cell).items():
        for rows in torch.arange(len(split)).split(3):
            exact, (width,) = split.batch(rows), split.widths(rows[None])
            captions = split.modality is tasks.CAPTIONS  # whose width counts words
            assert (exact.labels if captions else exact.segments).shape[1] <= width
            assert captions or width <= known.cell.m
            assert elsewhere[name].widths(rows[None]) == [width]
            with waits() as found:
                batch = split.batch(rows, width)
                assert not found
            there = elsewhere[name].batch(rows.to("meta"), width)
            for ours, theirs, least in zip(batch, there, exact, strict=True):
                if ours is None or theirs is None:
                    assert ours is theirs is least
                    continue
                assert ours.shape == theirs.shape
                assert captions or ours.dim() == 1 or ours.shape[1] == width
                narrow = ours if ours.dim() == 1 else ours[:, : least.shape[1]]
                assert torch.equal(narrow, least)
            if batch.mask is not None:
                assert batch.mask.shape[1] == width
            assert batch.mask is None or batch.mask.sum() == exact.mask.sum()


def test_parts_of_a_split_are_parts_of_the_whole(known: Known) -> None:
    """Passes, the first inputs, and segments that stand in several inputs."""
    for split in known.task.splits(known.cell).values():
        passes = split.passes(7)
        assert sorted(torch.cat(list(passes)).tolist()) == list(range(len(split)))
        assert [len(rows) for rows in passes] == [7] * (len(split) // 7) + [len(split) % 7]
        head, first = whole(split.head(6)), split.batch(torch.arange(6))
        assert all(a is b is None or torch.equal(a, b) for a, b in zip(head, first, strict=True))
        if split.distinct is not None:
            names, places, segments = split.distinct
            assert len(names) == len(names.unique()) <= places.numel()
            assert torch.equal(segments(names)[places], whole(split).segments)
