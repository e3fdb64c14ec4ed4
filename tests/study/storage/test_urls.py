"""Places by their names: home directories."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from study.errors import RequestError
from study.results import report_folder
from study.storage.storage import Storage
from study.storage.urls import absolute
from study.tasks.sources.places import CACHE_VARIABLE, Places, default_cache_dir


def cache_of(cache_dir: str) -> object:
    return Places(cache_dir=cache_dir).cache


@pytest.mark.parametrize("opens", [absolute, cache_of, report_folder, Storage])
def test_an_unknown_home_is_refused_and_no_folder_is_named_after_it(
    opens: Callable[[str], object],
) -> None:
    with pytest.raises(RequestError, match=r"^~nobody-of-this-name/results is in a home"):
        opens("~nobody-of-this-name/results")


@pytest.mark.usefixtures("homeless")
def test_without_a_home_the_cache_has_no_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    with pytest.raises(RequestError, match="set HOME"):
        default_cache_dir()
