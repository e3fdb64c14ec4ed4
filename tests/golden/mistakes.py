"""Forty likely mistakes: the exit status, and whether the answer names what is wrong.

An answer is told by facts, a word or a number of it, so that its sentences may be written anew.
"""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

from study import run
from tests.golden.record import Part
from tests.made_up.chapters import brought
from tests.made_up.commands import answer
from tests.made_up.images import write_folders
from tests.made_up.tiny_studies import TINY

RUN, REPORT = "study.run", "analysis.report"

MISTAKES = {
    RUN: "STUDY",
    f"{RUN} digist": "digist,digits",
    f"{RUN} mnist": "mnist,digits",
    f"{RUN} digits --presets paper": "--presets,--preset",
    f"{RUN} digits --preset papr": "papr,paper",
    f"{RUN} digits --lr 0.1": "--lr,--set lr",
    f"{RUN} digits --set lr=fast": "lr,fast",
    f"{RUN} digits --set lr=-0.1": "lr,-0.1",
    f"{RUN} digits --set lr=0.1 lr=0.2": "lr,twice",
    f"{RUN} digits --set learning_rate=0.1": "learning_rate,lr",
    f"{RUN} digits --set paradigm=softt": "softt,soft",
    f"{RUN} digits --set paradigm=reinforce": "reinforce,hard-sampled",
    f"{RUN} digits --set m=1": "m,1",
    f"{RUN} digits --set m=2.5": "m,2.5",
    f"{RUN} digits --set seed=0-x": "seed,0-x",
    f"{RUN} digits --set confirm=0": "confirm,0,seed",
    f"{RUN} digits --set switch_point=1.5": "switch_point,1.5",
    f"{RUN} digits --set n=100000000000": "n,100000000000",
    f"{RUN} digits --set d_model=64": "d_model",
    f"{RUN} digits --set architecture=resnet": "resnet,perceptron",
    f"{RUN} digits --set epochs=0": "epochs,0",
    f"{RUN} digits --threads 4096": "--threads,4096",
    f"{RUN} digits --search optuna": "--search,--num-samples",
    f"{RUN} digits --shard 3/2": "--shard,3/2",
    f"{RUN} digits --data-dir {{empty}}": "--data-dir,digits",
    f"{RUN} digits --results {{file}}": "{file}",
    f"{RUN} digits --with {{missing}}": "{missing}",
    f"{RUN} digits --set n=60 epochs=9 --tracking htp://host": "htp",
    f"{RUN} cifar10 --data-dir {{missing}}": "{missing}",
    f"{RUN} cifar10 --data-dir {{empty}}": "{empty}",
    f"{RUN} images --set foreground=a": "two,a",
    f"{RUN} images --data-dir {{images}} --set foreground=heron+stark": "stark,stork",
    f"{RUN} images --data-dir {{images}}": "foreground,heron",
    f"{REPORT} {{missing}}": "{missing}",
    f"{REPORT} {{results}} --study digist": "digist,digits",
    f"{REPORT} {{results}} --budget 1": "budget,1",
    f"{REPORT} {{results}} --select bogus": "bogus,digits",
    f"{REPORT} {{results}} --threshold 0.75": "0.75,0.8",
    f"{REPORT} {{damaged}}": "{damaged},damaged",
    f"{RUN} digits --results {{results}} --again 0123": "0123",
    **brought().mistakes,
}
"""Command, with places in {} -> facts, with commas between them: words, numbers, options."""


def made(folder: Path) -> dict[str, str]:
    """Of each mistake the exit status, and the facts that the answer lacks."""
    places = _places(folder)
    return {command: _answer(command, facts, places) for command, facts in MISTAKES.items()}


def _places(folder: Path) -> dict[str, str]:
    """Name -> path of what commands are pointed at."""
    made = {name: folder / name for name in ("missing", "empty", "file", "results", "damaged")}
    made["empty"].mkdir()
    made["file"].write_text("no directory")
    for name in ("results", "damaged"):
        answer(run.main, [*TINY.split(), "--shard", "1/1", "--results", str(made[name])])
    for path in made["damaged"].glob("cells/*.parquet"):
        path.write_bytes(path.read_bytes()[:-200])
    made["images"] = write_folders(folder / "images")
    for name, write in brought().places.items():
        made[name] = write(folder / name)
    return {name: str(path) for name, path in made.items()}


def _answer(command: str, facts: str, places: dict[str, str]) -> str:
    name, *words = shlex.split(command.format(**places))
    if name == RUN and "--results" not in words:
        words += ["--results", f"{places['empty']}-results"]
    status, said = answer(import_module(name).main, words)
    lines = [f"exit status {status}", f"a traceback: {'Traceback' in said}"]
    for fact in facts.split(","):
        word = re.escape(fact.format(**places))
        named = re.search(rf"(?<!\w){word}(?!\w)", said) is not None
        lines.append(f"names {fact}: {named}")
    return "".join(f"{line}\n" for line in lines)


PART = Part("mistakes", {"": made})
