"""Records as text, in entries with a name, and what differs between two of them.

Texts are compared word by word: numbers may differ within a tolerance, other words may not.
"""

from __future__ import annotations

import itertools
import math
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

FOLDER = Path(__file__).parent / "recorded"
Entries = Mapping[str, str]
"""Name -> text, whose lines end with a line feed."""

_HEAD, _MACHINE = "== ", "machine"
_WORD = re.compile(r"[^\s,|()]+")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*(e[-+]?\d{1,3})?|nan|inf)")


class Tolerance(NamedTuple):
    """How far numbers may be from the record; `share` of an entry's may be farther."""

    relative: float = 0.0
    absolute: float = 0.0
    share: float = 0.0

    def same(self, one: str | None, other: str | None) -> bool:
        """Whether a word is as it was recorded."""
        if one == other or not (one and other and self.relative):
            return one == other
        if not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
            return False
        return math.isclose(float(one), float(other), rel_tol=self[0], abs_tol=self[1])


EXACT, ROUNDING = Tolerance(), Tolerance(1e-9, 1e-12)


@dataclass(frozen=True)
class Part:
    """A part of the golden record.

    Attributes:
        name: of its file.
        made: piece -> what the program says of it today; works in an empty folder. The names of
            its entries begin with that of the piece, which may be empty where there is only one.
        tolerance: of its numbers.
        elsewhere: where the processor or a version is not the recorded one; None: the same.
        said: (entry, number of a word in its line) -> what stands there, for people.
    """

    name: str
    made: Mapping[str, Callable[[Path], Entries]]
    tolerance: Tolerance = EXACT
    elsewhere: Tolerance | None = None
    said: Callable[[str, int], str] = lambda entry, word: ""

    def differences(self, piece: str, now: Entries) -> list[str]:
        """A sentence for each entry of a piece that differs, on the first word that does."""
        every = self._read()
        here = every.pop(_MACHINE, "") == machine()
        tolerance = self.tolerance if here else self.elsewhere or self.tolerance
        recorded = {name: text for name, text in every.items() if self._piece(name) == piece}
        found = [f"{self.name}: {name} is gone" for name in recorded if name not in now]
        for name, text in now.items():
            if name not in recorded:
                found.append(f"{self.name}: {name} is not recorded")
            elif what := self._difference(name, recorded[name], text, tolerance):
                found.append(f"{self.name}: {name}, {what}")
        return found

    def record(self, now: Entries) -> None:
        """Writes the record anew."""
        entries = {_MACHINE: machine(), **now} if self.elsewhere else now
        texts = (f"{_HEAD}{name}\n{text}" for name, text in entries.items())
        self._file.write_text("".join(texts), encoding="utf-8")

    def _piece(self, entry: str) -> str:
        """The piece of an entry; what is of none is gone from the first."""
        pieces = filter(entry.startswith, self.made)
        return max(pieces, key=len, default=next(iter(self.made)))

    @property
    def _file(self) -> Path:
        return FOLDER / f"{self.name}.txt"

    def _read(self) -> dict[str, str]:
        _, *entries = f"\n{self._file.read_text(encoding='utf-8')}".split(f"\n{_HEAD}")
        parts = (entry.partition("\n") for entry in entries)
        return {name: text.removesuffix("\n") + "\n" for name, _, text in parts}

    def _difference(self, entry: str, recorded: str, now: str, tolerance: Tolerance) -> str:
        """Where an entry differs; empty: it does not, or in few enough numbers."""
        numbers, off = 0, []
        lines = itertools.zip_longest(recorded.splitlines(), now.splitlines(), fillvalue="")
        for line, texts in enumerate(lines, start=1):
            pairs = itertools.zip_longest(*(_WORD.findall(text) for text in texts))
            for word, (one, other) in enumerate(pairs):
                number = all(each and _NUMBER.fullmatch(each) for each in (one, other))
                numbers += number
                if not tolerance.same(one, other):
                    place = f"line {line}, word {word + 1} {self.said(entry, word)}".rstrip()
                    off.append(f"{place}: recorded {one}, now {other}, in: {texts[1][:60]}")
                    if not number:
                        return off[-1]
        return off[0] if len(off) > tolerance.share * numbers else ""


def machine() -> str:
    """What a number depends on to its last bit, besides the threads."""
    cpu = Path("/proc/cpuinfo")
    told = re.compile(r"(?:cpu family|model|model name|stepping|cache size)\s*: (.*)")
    names = told.findall(cpu.read_text().split("\n\n")[0]) if cpu.exists() else []
    libraries = [f"{name} {version(name)}" for name in ("torch", "numpy", "scipy")]
    parts = [*names, platform.machine(), torch.backends.cpu.get_cpu_capability(), *libraries]
    return "\n".join([*parts, ""])


def table(rows: pd.DataFrame) -> str:
    """Rows as CSV of all digits; an array of numbers is told by its size, sum and checksum."""
    plain = rows.map(lambda value: _summary(np.ravel(value)) if np.ndim(value) else value)
    return str(plain.to_csv(index=False, na_rep="none", lineterminator="\n"))


def _summary(values: np.ndarray) -> str:
    if values.dtype.kind not in "biuf":
        return " ".join(map(str, values))
    return f"{values.size} {float(values.sum())} {checksum(values)}"


def checksum(values: ArrayLike) -> float:
    """A sum of numbers that tells their places apart."""
    numbers = np.asarray(values, np.float64).ravel()
    return float(numbers @ (1 + np.arange(numbers.size) % 97))
