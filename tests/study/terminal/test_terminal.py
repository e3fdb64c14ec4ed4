"""No line is wider than the terminal, whatever the text; elsewhere every line is as it was."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import terminal
from study.terminal.command import DONE, FAILED, TERMINATED, UNUSABLE, guarded
from study.terminal.width import WIDEST
from tests.conftest import PROJECT

HEADER = ["paradigm", "SAIF %", "95 % interval", "switch"]
ROWS = [["hard", "78.9", "70.1 to 85.3", "-"], ["hybrid", "95.5", "93.0 to 98.1", "0.25"]]
TABLES = {
    False: """\
paradigm  SAIF %  95 % interval  switch
hard        78.9   70.1 to 85.3       -
hybrid      95.5   93.0 to 98.1    0.25
""",
    True: """\
paradigm  SAIF %  95 % interval  switch
--------  ------  -------------  ------
hard      78.9    70.1 to 85.3   -
hybrid    95.5    93.0 to 98.1   0.25
""",
}
WORDS = st.lists(st.text("abc:,-", min_size=1, max_size=18), min_size=1, max_size=40)


@given(st.lists(WORDS, max_size=4), st.integers(24, 120), st.integers(0, 1))
def test_lines_fit_and_no_word_is_lost(paragraphs, width, indent):
    text = "\n".join("  " * indent + " ".join(words) for words in paragraphs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        for folded in (terminal.fitted(text), terminal.sentence(text)):
            assert folded.split() == text.split()
            assert max(map(len, folded.split("\n"))) <= width
        assert terminal.fitted(terminal.fitted(text)) == terminal.fitted(text)
        lines = terminal.fitted(text).split("\n")
        assert all(line.startswith("  " * indent) for line in lines if line)


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0 cells"), (1, "1 cell"), ("1", "1 cell"), ("1 to 6", "1 to 6 cells")],
)
def test_one_of_a_kind_is_no_plural(number, told):
    assert terminal.counted(number, "cell") == told


def test_elsewhere_text_is_as_it_was(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", _no_terminal)
    wide = "x " * 200
    assert terminal.fitted(wide) == wide
    assert len(terminal.tabulated([wide], [[wide]])) == 2
    assert max(map(len, terminal.sentence(wide).split("\n"))) <= WIDEST


def _no_terminal(*_: int) -> None:
    raise OSError


@pytest.mark.parametrize("ruled", [False, True])
def test_a_narrow_table_says_all_that_a_wide_one_does(ruled, monkeypatch):
    monkeypatch.setenv("COLUMNS", "43")
    assert terminal.tabulated(HEADER, ROWS, ruled) == TABLES[ruled].splitlines()
    monkeypatch.setenv("COLUMNS", "30")
    assert terminal.tabulated(HEADER, ROWS, ruled) == [
        "paradigm: hard",
        "  SAIF %: 78.9",
        "  95 % interval: 70.1 to 85.3",
        "  switch: -",
        "paradigm: hybrid",
        "  SAIF %: 95.5",
        "  95 % interval: 93.0 to 98.1",
        "  switch: 0.25",
    ]


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [("ascii", rb"\u03b1 \xe4 \udce4"), ("latin-1", b"\\u03b1 \xe4 \\udce4"), (None, b"")],
)
def test_a_command_prints_what_its_stdout_lacks(encoding, printed):
    """None: it is closed."""
    code = r"""
from study.terminal.command import guarded, run_as_command
run_as_command(lambda: guarded("test", lambda: print("\u03b1 \xe4 \udce4") or 0, "stopped"))
"""
    close = "" if encoding else ">&-"
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {close}', "sh", sys.executable, "-c", code],
        cwd=PROJECT,
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding or "utf-8"},
        check=True,
    )
    assert (done.stdout.strip(), done.stderr) == (printed, b"")


def test_a_command_goes_on_when_its_reader_leaves():
    """As under `head`: what it prints then is lost, its exit status is its own."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream, contextlib.redirect_stdout(stream):
        os.close(reader)

        def command() -> int:
            for _ in range(3):
                print("a line that nobody reads", flush=True)
            assert sys.stdout.fileno() == writer
            return FAILED

        assert guarded("test", command, "stopped") == FAILED


@pytest.mark.parametrize("full", ["", "2", "&"], ids=["stdout", "stderr", "both"])
@pytest.mark.parametrize("ending", ["0", "sys.exit(0)"])
def test_a_command_whose_words_cannot_be_written_ends_and_says_so(ending, full):
    """As on a full disk: it does its work, and fails."""
    code = f"""
import sys
from study.terminal.command import guarded, run_as_command

def command():
    print("a line")
    print("progress", file=sys.stderr)
    return {ending}

run_as_command(lambda: guarded("test", command, "stopped"))
"""
    done = subprocess.run(
        ["bash", "-c", f'exec "$@" {full}> /dev/full', "bash", sys.executable, "-c", code],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == UNUSABLE
    line = "progress\ntest: what it says cannot be written (No space left on device).\n"
    assert done.stderr == ("" if full else line)


@pytest.mark.usefixtures("homeless")
def test_a_command_without_a_home_has_the_root_for_one():
    """Libraries, which ask for it here and there, find one."""
    homes: list[Path] = []
    assert guarded("test", lambda: homes.append(Path.home()) or DONE, "stopped") == DONE
    assert homes == [Path("/")]


def test_a_file_of_the_user_that_would_be_imported_in_place_of_ours_is_named(
    tmp_path,
):
    file = (tmp_path / "analysis").with_suffix(".py")
    file.write_text("raise SystemExit('a file of the user')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "study.run", "digits", "--show"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == UNUSABLE
    assert done.stderr.startswith(f"attention-study: {file} would be imported")


@pytest.mark.parametrize(
    "end", [lambda: os.kill(os.getpid(), signal.SIGTERM), lambda: sys.exit(signal.SIGTERM)]
)
def test_sigterm_ends_a_command_like_ctrl_c(end, capsys):
    """Also where a handler of Ray's exits, as while it starts."""

    def command() -> int:
        end()
        return DONE

    assert guarded("a command", command, "stopped; all is kept") == TERMINATED
    assert capsys.readouterr().err == "\nstopped; all is kept\n"
