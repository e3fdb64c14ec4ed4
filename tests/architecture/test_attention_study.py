"""The module of our own name, in scripts beside which other files are called as our packages."""

from __future__ import annotations

import subprocess
import sys

import attention_study
from study import parts


def run(folder, script):
    (folder / "script.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_a_script_beside_files_of_our_names_gets_our_functions(tmp_path):
    for name in ("study", "analysis", "chapters"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('yours')", encoding="utf-8")
    script = """
import attention_study as project
rows = [{"paradigm": p, "seed": s, "compute": 1, "accuracy": a + s * a / 100}
        for p, a in (("a", 0.5), ("b", 0.7)) for s in range(6)]
project.record("results", rows)
print(len(project.load("results")), *(each.key for each in project.compare("results")))
print(project.report("results", "page"))
"""
    done = run(tmp_path, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("36 ")
    assert "b beats a in accuracy" in (tmp_path / "page/report.html").read_text(encoding="utf-8")


def test_another_module_of_our_name_is_told(tmp_path):
    theirs = (tmp_path / "analysis").with_suffix(".py")
    theirs.write_text("", encoding="utf-8")
    done = run(tmp_path, "import analysis, attention_study")
    assert f"{theirs} was imported as analysis" in done.stderr.splitlines()[-1]


def test_it_offers_all_that_registers_and_checks_what_a_file_brings(tmp_path, capsys):
    registering = [name for name in vars(parts) if name.startswith("register_")]
    assert {*registering, "check", "record", "load_network"} <= {*dir(attention_study)}
    assert attention_study.register_task is parts.register_task
    assert not attention_study.check(tmp_path / "none.py")
    assert "none.py" in capsys.readouterr().err
