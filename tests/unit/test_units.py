# SPDX-License-Identifier: BSD-3-Clause
"""Runs every unit-test program that Meson knows: as built, and once more under each sanitizer."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import longform
import pytest
from runner import ROOT, Runner, build_dir

SANITIZERS = {
    "asan": [
        "-Db_sanitize=address,undefined",
        "-Dc_args=-fno-sanitize-recover=all -g1",
        "-Dcpp_args=-fno-sanitize-recover=all -g1",
    ],
    "tsan": ["-Db_sanitize=thread", "-Dc_args=-g1", "-Dcpp_args=-g1"],
}

SANITIZER_ENV = {
    "ASAN_OPTIONS": "halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}

# Which then take longest.
SLOW = ("calc", "coll", "layout")

# Sanitized programs run several times slower, busy machines too.
TIMEOUT = 300

SKIPPED = 77  # exit status, as Meson has it


@dataclass(frozen=True)
class Unit:
    name: str
    program: str  # relative to the build directory
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


def introspect(build: Path, what: str) -> list[dict[str, Any]]:
    out = subprocess.run(
        ["meson", "introspect", f"--{what}", str(build)], check=True, capture_output=True, text=True
    ).stdout
    parsed: list[dict[str, Any]] = json.loads(out)
    return parsed


@cache
def units() -> list[Unit]:
    """Registered tests, and programs below tests/unit that nobody registered."""
    build = build_dir()
    if not (build / "build.ninja").exists() or not shutil.which("meson"):
        return []
    found = {}
    for test in introspect(build, "tests"):
        program = Path(test["cmd"][0])
        if program.is_relative_to(build):
            relative = str(program.relative_to(build))
            found[test["name"]] = Unit(
                test["name"], relative, tuple(test["cmd"][1:]), tuple(sorted(test["env"].items()))
            )
    registered = {unit.program for unit in found.values()}
    for target in introspect(build, "targets"):
        file = Path(target["filename"][0])
        if target["type"] == "executable" and file.is_relative_to(build / "tests" / "unit"):
            relative = str(file.relative_to(build))
            if relative not in registered:
                found[target["name"]] = Unit(target["name"], relative, (), ())
    return sorted(found.values(), key=lambda unit: unit.name)


@pytest.fixture(scope="session")
def sanitized(build: Path) -> Callable[[str], Path]:
    """Configures and builds the unit programs under a sanitizer, once a session."""

    @cache
    def make(kind: str) -> Path:
        where = build.with_name(f"{build.name}-{kind}")
        if not (where / "build.ninja").exists():
            _quiet("meson", "setup", where, ROOT, "-Doptimization=1", *SANITIZERS[kind])
        _quiet("ninja", "-C", where, *sorted({unit.program for unit in units()}))
        return where

    return make


def _quiet(*argv: str | Path) -> None:
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, argv))}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


@cache
def without_aslr() -> list[str]:
    """ThreadSanitizer wants fixed addresses for its shadow; gcc 12's gives up where the kernel spreads them widely.
    Some containers forbid the change: then it has to do without."""
    prefix = ["setarch", platform.machine(), "-R"]
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return prefix


def test_there_are_units() -> None:
    assert units(), "Meson knows no unit test: is the build configured?"


def run(runner: Runner, *argv: str | Path, env: Mapping[str, str]) -> None:
    job = runner.start(*argv, env=env)
    finished = job.wait(TIMEOUT)
    if finished.returncode == SKIPPED:
        pytest.skip(finished.stderr.strip())
    job.expect_success(finished)


@pytest.mark.parametrize("unit", units(), ids=lambda unit: unit.name)
def test_unit(runner: Runner, unit: Unit) -> None:
    run(runner, runner.build / unit.program, *unit.args, env=dict(unit.env))


def sanitized_units() -> list[object]:
    """Each unit under each sanitizer; in the short form under that of addresses, but for what computes most."""
    return [
        longform.param(
            unit,
            kind,
            short=kind == "asan" and unit.name not in SLOW,
            minutes=4 if kind == "tsan" else 1,
            name=f"{unit.name}-{kind}",
        )
        for unit in units()
        for kind in sorted(SANITIZERS)
    ]


@pytest.mark.parametrize(("unit", "kind"), sanitized_units())
@pytest.mark.timeout(1800)
def test_unit_sanitized(runner: Runner, sanitized: Callable[[str], Path], kind: str, unit: Unit) -> None:
    where = sanitized(kind)
    prefix = without_aslr() if kind == "tsan" else []
    env = {key: value.replace(str(runner.build), str(where)) for key, value in unit.env}
    run(runner, *prefix, where / unit.program, *unit.args, env={**SANITIZER_ENV, **env})
