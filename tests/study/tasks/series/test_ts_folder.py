"""Finding the two files of a data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.errors import RequestError
from study.tasks.series.ts_folder import belongs, find


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (("A_TRAIN.ts", "A_TEST.ts", "A_TRAIN.arff", "notes.txt"), "A"),
        (("A/A_TRAIN.ts", "A/A_TEST.ts", "A/B_TRAIN.ts", "B/notes.txt"), "A"),
        (("A_b_TRAIN.ts", "A_b_TEST.ts"), "A_b"),
        (("data_TRAIN.ts", "data_TEST.ts", "data_eq_TRAIN.ts", "data_eq_TEST.ts"), "data"),
        (("A_TRAIN.ts", "A_TEST.ts", "B/B_TRAIN.ts", "B/B_TEST.ts", "C_TEST.ts"), "A"),
    ],
)
def test_the_only_pair_is_found_or_that_of_the_folders_name(
    files: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    folder = touched(tmp_path / "data", *files)
    found = find(folder)
    assert found.name == name
    assert (found.train.name, found.test.name) == (f"{name}_TRAIN.ts", f"{name}_TEST.ts")
    assert all(path.is_file() and belongs(str(path.relative_to(folder))) for path in found[1:])


def test_names_may_be_in_small_letters_and_hidden_files_are_left_alone(tmp_path: Path) -> None:
    folder = touched(tmp_path, "Foo_train.ts", "Foo_Test.TS", "._Foo_TRAIN.ts", "._Foo_TEST.ts")
    found = find(folder)
    assert (found.name, found.train.name, found.test.name) == (
        "Foo",
        "Foo_train.ts",
        "Foo_Test.TS",
    )
    assert belongs("Foo_Test.TS")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((), r"data does not exist\."),
        (("notes.txt",), r"data holds only notes\.txt: no pair of \.ts files found\."),
        (("Foo.ts",), r"data holds only Foo\.ts: no pair of \.ts files found\."),
        (("A_TRAIN.ts",), r"data has A_TRAIN\.ts, but no A_TEST\.ts\. Pass both"),
        (("A/A_TEST.ts",), r"data/A has A_TEST\.ts, but no A_TRAIN\.ts\. Pass both"),
        (
            ("A_TRAIN.ts", "A_TEST.ts", "B_TRAIN.ts", "B_TEST.ts"),
            r"data has several data sets: A, B\. Pass one",
        ),
        (
            ("A/A_TRAIN.ts", "A/A_TEST.ts", "B/B_TRAIN.ts", "B/B_TEST.ts"),
            r"data has several data sets: A, B\. Pass one: .*DIR/NAME",
        ),
    ],
)
def test_what_is_missing_or_too_much_is_named(
    files: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    folder = touched(tmp_path / "data", *files)
    with pytest.raises(RequestError, match=message) as caught:
        find(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["notes.txt", "A_TRAIN.arff", "A/B_TRAIN.ts", "x/A/A_TRAIN.ts"])
def test_other_files_do_not_belong(name: str) -> None:
    assert not belongs(name)
