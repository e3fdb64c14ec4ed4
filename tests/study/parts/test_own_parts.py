"""Files that register paradigms, models, tasks and studies: their cells, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from search_spaces import STUDIES
from study import parts, run
from study.cell import Cell, Options
from study.cell.settings import SETTINGS
from study.cell.work import Job, Work
from study.errors import RequestError
from study.launch.run_job import run_job
from study.parts.used import used_digest
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.tasks.task import Facts
from study.terminal.command import DONE, UNUSABLE
from tests.made_up.commands import called, one_line
from tests.made_up.comparisons import make_results
from tests.made_up.facts import published
from tests.made_up.parts import EXAMPLE, HALF, forgotten

NET = """
from study.models.images import perceptron
from study.parts import register_model

@register_model("mine", tasks=("digits",))
def mine(*sizes):
    return perceptron(*sizes)
"""

STUDY = """
from search_spaces.base import Preset, SearchSpace
from study.parts import register_study

register_study(SearchSpace("mine", "digits", "", {"quick": Preset("", {"m": (4,)})}))
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], str]:
    """Writes a file of parts; its path."""

    def write(text: str) -> str:
        file = tmp_path / "my_parts.py"
        file.write_text(text, errors="surrogateescape")
        return str(file)

    return write


def cells(*changes: str, study: str = "digits") -> tuple[Cell, ...]:
    space = STUDIES[study]

    def facts(task: str, options: Options) -> Facts:
        return replace(published(task, options), digest="0" * 16)

    small = ["m=4", "n=120", "epochs=2", "lr=0.1", "seed=0", "confirm=none", "test_size=50"]
    return make_plan(space, "quick", resolve(space, "quick", [*small, *changes]), facts).cells


def test_the_file_is_part_of_the_cells_that_use_it_and_of_no_others(
    written,
):
    before = {cell.id for cell in cells("paradigm=soft,hybrid")}
    parts.load([written(HALF)])
    assert {cell.id for cell in cells("paradigm=soft,hybrid")} == before
    soft, half = cells("paradigm=soft,half", "switch_point=0.5")
    parts.load([written(HALF.replace("/ 2", "/ 3"))])
    (third,) = cells("paradigm=half")
    assert third.id != half.id
    assert third.comparison_id == half.comparison_id == soft.comparison_id
    assert third.first_phase != half.first_phase
    # So that the analysis takes them for options of one paradigm, not for seeds of one option.
    assert third.schedule.text != half.schedule.text
    for cell in (half, third):
        assert Cell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell


@pytest.mark.parametrize(
    ("text", "asked", "apart"),
    [(NET, "architecture=mine", True), (HALF, "inference=half", False)],
)
def test_a_network_or_an_inference_of_another_file_is_another_cell(written, text, asked, apart):
    found = []
    for each in (text, f"import torch\ntorch.manual_seed(0)\n{text}"):
        parts.load([written(each)])
        found += cells("paradigm=soft", asked)
    one, other = found
    assert one.id != other.id
    assert not apart or one.comparison_id != other.comparison_id
    assert Cell.from_dict(other.to_dict()) == other


SETTINGS_OF_A_MODEL = """
from dataclasses import dataclass, replace
from typing import ClassVar
from study.cell.declared import Whole, declared
from study.cell.settings import Settings
from study.models.images import perceptron
from study.parts import register_model, register_settings, register_task
from study.tasks import MOSAICS, TASKS

@dataclass(frozen=True)
class Weights(Settings):
    key: ClassVar = "weights"
    stream: int = declared("of the first weights", Whole(0), 0)

    def further(self, cell):
        return (self.stream,)

register_settings(Weights)
register_task("mine", replace(TASKS["digits"], modality=replace(MOSAICS, settings="weights")))

@register_model("mine", tasks=("mine",))
def mine(shape, classes, width, seed, precision, stream=0):
    return perceptron(shape, classes, width, seed + stream, precision)
"""


def test_settings_of_another_file_are_another_cell(written):
    """Of their own: task and model name them by their key."""
    found, changed = [], SETTINGS_OF_A_MODEL.replace("self.stream", "self.stream + 1")
    with patch.dict(SETTINGS):
        for text in (SETTINGS_OF_A_MODEL, changed):
            parts.load([written(text)])
            found += cells("task=mine", "architecture=mine", "paradigm=soft", "stream=2,4")
            assert Cell.from_dict(found[-1].to_dict()) == found[-1]
    assert len({cell.id for cell in found}) == len(found) == 4


SHARED = f'''"""Parts of one file."""
import dataclasses
from study.parts import register_task

KEPT = []
DEPTH = 1
"""Of the network."""


def kept(function):
    KEPT.append(function)
    return function


def scale(scores):
    return scores / len(KEPT)


@kept
def shift(scores):
    return scores + 1

{HALF.replace("scores / 2", "scale(scores)")}
{NET.replace("perceptron(*sizes)", "perceptron(*sizes)[:DEPTH]")}

if __name__ == "__main__":
    mine(Half)
'''


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("scale(scores):", "scale( scores ):  # by how many", ""),
        ("Parts of one file", "Some parts", ""),
        ("Soft attention to", "Attention to", ""),
        ("Of the network", "Layers", ""),
        ("mine(Half)", "mine(HALF)", ""),
        ("DEPTH = 1", "DEPTH = 2", "half mine"),
        ("scores / len", "scores * len", "half"),
        ("scores + 1", "scores + 2", "half mine"),
        ("import dataclasses", "from math import *", "half mine"),
        ("KEPT = []", "KEPT = []\nKEPT += [1]", "half mine"),
        ("[:DEPTH]", "[DEPTH:]", "mine"),
    ],
)
def test_a_cell_is_another_one_where_what_it_uses_of_a_file_is(before, after, changes, written):
    found = []
    for text in (SHARED, SHARED.replace(before, after)):
        parts.load([written(text)])
        found.append(
            {"half": parts.digest_of("paradigm", "half"), "mine": parts.digest_of("model", "mine")}
        )
    one, other = found
    assert text != SHARED
    assert {name for name in one if one[name] != other[name]} == set(changes.split())


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("@register_model('net')\nclass Net:\n    size = 1", False),
        ("register_model('net', Net)\nclass Net(Layer):\n    size = 1\nclass Layer: ...", False),
        ("register_model('net', Net)\nclass Net(Layer): ...\nclass Layer:\n    size = 1", False),
        ("register_model('net', Layer)\nclass Net(Half):\n    size = 1", True),
        ("register_model('net', Net)\nNet = 1", True),
        ("class Hidden(Half):\n    FACTOR = 1", True),
        ("if __name__ == '__main__':\n    FACTOR = 1", False),
        ("if __name__ == '__main__':\n    pass\nelse:\n    FACTOR = 1", True),
        ("if __name__ != '__main__':\n    FACTOR = 1", True),
        ("(FACTOR := 1)", True),
        ("import my_patch1", True),
    ],
)
def test_of_a_file_all_counts_but_other_parts_and_what_these_alone_name(text, counts):
    around = "@register_paradigm('half')\nclass Half: ...\n"
    one, other = (used_digest(f"{around}{each}", 1) for each in (text, text.replace("1", "2")))
    assert (one != other) == counts


def test_a_file_stands_alone(tmp_path, written, monkeypatch):
    """Although `python -m` finds what is in the current folder, where workers do not look."""
    (tmp_path / "neighbour.py").write_text("SCALE = 2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    before = list(sys.path)
    with pytest.raises(RequestError, match="line 1: there is no module 'neighbour'"):
        parts.load([written(f"import neighbour\n{HALF}")])
    assert sys.path == before


def test_a_cell_runs_with_the_parts_that_it_was_planned_with_alone(written, digits, tmp_path):
    results = make_results(tmp_path / "results").url
    with forgotten():
        parts.load([written(HALF)])
        (planned,) = cells("paradigm=half")
        planned = replace(planned, data_digest=digits.facts.digest)
        work = Work(study="digits", results=results, code_version="")
    with pytest.raises(RequestError, match="Give its file with --with FILE"):
        run_job(Job(((planned,),)), work)
    with forgotten():
        parts.load([written(HALF.replace("/ 2", "/ 3"))])
        with pytest.raises(RequestError, match="it changed, or this machine has another version"):
            run_job(Job(((planned,),)), work)
    parts.load([written(HALF)])
    assert run_job(Job(((planned,),)), work) == {planned.id: "done"}


def test_a_module_that_a_worker_lacks_ends_the_study_with_the_line_that_asks_for_it():
    from study.launch.tune import do

    sent = parts.PartFile("my_parts.py", "\nimport only_on_the_driver\n")
    told: list[dict[str, Any]] = []
    (planned,) = cells("paradigm=soft")
    work = Work(study="digits", results="", code_version="", parts=(sent,))
    with patch("ray.tune.report", told.append):
        do({"job": Job(((planned,),)).to_config()}, work)
    (event,) = told
    assert event["kind"] == "request"
    assert event["text"].startswith("my_parts.py, line 2: there is no module 'only_on_the_driver'")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\x00", "source code string cannot contain null bytes"),
        ("\udcff", "my_parts.py is not a Python file: it is not text."),
        ("\n\n\udcff", "my_parts.py is not a Python file: it is not text."),
        ("def f(:\n", "my_parts.py, line 1: SyntaxError: invalid syntax."),
        ("import sys\nsys.exit(0)\n", "my_parts.py, line 2: SystemExit: 0."),
        ("x = 1\n", "my_parts.py registers nothing. Call register_paradigm"),
        ("\n\nx = 1 / 0\n", "my_parts.py, line 3: ZeroDivisionError: division by zero"),
        ("import no_such_thing\n", "line 1: there is no module 'no_such_thing'. A file of parts"),
        (HALF.replace('name = "half"', 'name = "soft"'), "line 5: the paradigm soft is taken by"),
        (HALF.replace('name = "half"', 'name = "hybrid"'), "the paradigm hybrid is taken by the"),
        (HALF.replace('name = "half"', 'name = "a+b"'), "'a+b' cannot be typed as the name of a"),
        (
            HALF.replace("(Soft)", ""),
            "Half is not a subclass of study.paradigms.paradigm.Paradigm",
        ),
        (
            "from study.paradigms.paradigm import Paradigm\n"
            "from study.parts import register_paradigm\n"
            "@register_paradigm\nclass Bare(Paradigm):\n    name = exact = 'bare'\n",
            "Bare lacks mixes, cost(), losses(), probabilities(), which every paradigm declares",
        ),
        (HALF + "    def cost(self, f, g, m):\n        return 0\n", "the cost of Half is 0 for"),
        (NET.replace('"mine"', '"perceptron"'), "the model perceptron is taken by the project"),
        (
            NET.replace('("digits",)', '"digits"'),
            "the tasks of the model mine are a",
        ),
        (
            "from study.parts import register_task\nregister_task('t', 3)",
            "the task t is not a study",
        ),
        ("from study.parts import register_study\nregister_study(3)", "3 is not a search_spaces"),
        (STUDY.replace('"digits"', '"digit"'), "unknown task of the study mine 'digit'. Did you"),
        (STUDY.replace("(4,)", "4"), "preset quick of mine: m is 4, must be a tuple of values"),
        (
            STUDY.replace(
                "(4,)", '__import__("search_spaces.base").base.By("task", {"digits": "4"}, (5,))'
            ),
            "m is '4', must be a tuple",
        ),
    ],
)
def test_a_part_that_cannot_be_used_is_one_clear_line(
    text,
    message,
    written,
    capsys,
):
    status, line = one_line(run.main, capsys, "mine", "--plan", "--with", written(text))
    assert status == 2
    assert message in line


def test_a_name_that_ends_like_a_number_is_shown_as_it_is_typed(written, capsys):
    file, asked = written(NET.replace('"mine"', '"mine-2.0"')), "architecture=mine-2.0"
    _, printed, _ = called(run.main, capsys, "digits", "--show", "--with", file, "--set", asked)
    assert f" {asked}\n" in printed


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1"])
def test_a_file_is_read_as_python_reads_it(encoding, tmp_path):
    """In its encoding, and without what this project's own files import from the future."""
    file = tmp_path / "mine.py"
    cookie = "# -*- coding: latin-1 -*-" if encoding == "latin-1" else ""
    text = f"{cookie}\nTEXT = 'é'\nassert TEXT == chr(233)\nclass A:\n    x: int\n"
    file.write_text(f"{text}assert A.__annotations__ == {{'x': int}}\n{HALF}", encoding)
    parts.load([str(file)])
    assert cells("paradigm=half")


def test_a_copy_of_a_file_may_be_there(tmp_path, written):
    """Such as that of an installed package whose file is given, too."""
    copy = tmp_path / "installed.py"
    copy.write_text(HALF)
    parts.load([written(HALF)])
    exec(compile(HALF, str(copy), "exec"), {"__name__": "installed", "__file__": str(copy)})
    other = tmp_path / "other.py"
    other.write_text(changed := HALF.replace("/ 2", "/ 3"))
    with pytest.raises(RequestError, match="the paradigm half is taken by"):
        exec(compile(changed, str(other), "exec"), {"__name__": "other", "__file__": str(other)})


def test_a_prompt_registers_nothing():
    code = HALF.replace("\nfrom", "\n__file__ = None\nfrom", 1)
    with pytest.raises(RequestError, match="parts have to be registered by a file"):
        exec(code, {"__name__": "prompt"})


SHAPES = (
    "shapes", "--with", str(EXAMPLE), "--set", "n=200", "epochs=2", "lr=0.1", "seed=0",
    "confirm=100", "paradigm=sparsemax", "test_size=100",
)  # fmt: skip


@pytest.mark.usefixtures("without_ray", "no_pictures")
def test_cells_of_parts_are_recognised_and_repeated(results, capsys, monkeypatch):
    """Of the example's task, network and paradigm; to its verdicts: tests/faults/test_package.py.

    Each command registers them anew.
    """
    monkeypatch.setattr("study.plan.estimate.MOST_STEPS", 3)  # timing takes longer than the study
    found = []
    for more in (["--tracking", "none"], ["--plan"]):
        with forgotten():
            found.append(called(run.main, capsys, *SHAPES, "--results", results.url, *more))
    (trained, _, said), (_, planned, _) = found
    assert trained == DONE, said
    assert "1 cell: 1 done already, 0 to run" in planned
    (cell_id,) = results.finished()
    again = (SHAPES[0], "--results", results.url, "--again", cell_id)
    status, line = one_line(run.main, capsys, *again)
    assert (status, "unknown study 'shapes'" in line) == (UNUSABLE, True), line
    assert called(run.main, capsys, *again, "--with", str(EXAMPLE))[0] == DONE
