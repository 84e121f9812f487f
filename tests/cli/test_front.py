# SPDX-License-Identifier: BSD-3-Clause
"""The command as a whole: wrong words, and output that goes nowhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("command", ["run", "doctor", "bench", "plot"])
def test_a_wrong_option_shows_the_usage_of_its_command(onecopy: Command, command: str) -> None:
    done = onecopy(command, "--nope", ".")
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: onecopy {command} ")
    assert f"onecopy {command}: error: unrecognized arguments: --nope" in done.stderr


def test_a_wrong_option_before_the_command(onecopy: Command) -> None:
    done = onecopy("--nope", "run", "true")
    assert done.returncode == 2
    assert "unrecognized arguments: --nope" in done.stderr


def test_a_style_of_stats_given_as_a_word(onecopy: Command) -> None:
    done = onecopy("run", "--stats", "table", "true")
    assert done.returncode == 127
    assert "did you mean --stats=table?" in done.stderr
    assert "did you mean" not in onecopy("run", "table").stderr


def test_modules_of_the_working_directory_are_not_ours(environment: dict[str, str], tmp_path: Path) -> None:
    for name in ("argparse", "contextlib", "resource", "statistics", "onecopy", "_posixsubprocess"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the user')\n")
    before = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    for extra in ({}, {"PYTHONSAFEPATH": "1"}, {"PYTHONPATH": "/nowhere"}):
        env = {**before, **extra}
        done = subprocess.run(
            [ROOT / "onecopy", "run", "env"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
        assert {name: seen[name] for name in seen if name.startswith("PYTHON")} == {
            name: env[name] for name in env if name.startswith("PYTHON")
        }


@pytest.mark.parametrize("words", [["doctor"], ["doctor", "--json"], ["--help"], ["bench", "--help"]])
def test_output_that_goes_nowhere(onecopy: Command, words: list[str]) -> None:
    done = onecopy(*words, before=("sh", "-c", 'exec "$@" >/dev/full', "sh"))
    assert done.returncode == 1
    assert done.stderr == "onecopy: cannot write: No space left on device\n"
    done = onecopy(*words, before=("sh", "-c", 'exec "$@" >&-', "sh"))
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
    done = onecopy(*words, before=("sh", "-c", '"$@" | true', "sh"))
    assert done.stderr == ""


def test_names_of_files_that_are_no_text(onecopy: Command, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"x\xff")).write_text("")
    done = onecopy("doctor", os.fsdecode(b"./x\xff"), env={"PYTHONIOENCODING": "utf-8:strict"})
    assert done.returncode == 1
    assert "x\\udcff" in done.stdout
    assert done.stderr == ""


def test_a_directory_that_is_gone(onecopy: Command, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = onecopy("doctor", before=("sh", "-c", f'cd {gone} && rmdir {gone} && exec "$@"', "sh"))
    assert "Traceback" not in done.stderr
