# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's own tests of blocking collectives (test/mpi/coll of its sources, C and Fortran), on every MPI: under onecopy
none fails that does not fail alone."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import sources
from each.test_fortran import flags
from job import JobError
from mpi.stats import stats
from runner import Mpi, Runner

pytestmark = [pytest.mark.long(4), pytest.mark.timeout(2400)]

#: Ranks that share the tests' cores: its list has up to 16.
MOST = int(os.environ.get("ONECOPY_TEST_MOST_RANKS") or 5)
SETTINGS: dict[str, dict[str, str]] = {"default": {}, "all": {"ONECOPY_MIN": "1"}}
#: What is persistent or not blocking, which is the MPI's, or no collective; what takes gigabytes.
OTHERS = re.compile(r"@|#|(nonblocking|nb|p_|i(allred|barrier)\b|reduce_local|op_commutative|uoplong)")
#: Each of its languages: the directory, how a source is called, and the binding as tests/mpi calls it.
LANGUAGES = {"c": ("coll", ".c", ""), "f77": ("f77/coll", ".f", "mpifh"), "f08": ("f08/coll", ".f90", "usempif08")}
#: What its configure would find on Linux.
CONFIGURATION = """
#define USE_STRICT_MPI 1
#define F77_NAME_LOWER_USCORE 1
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_MPI_OFFSET 8
#define POINTERINT_t long
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
"""
HAS = "STDARG_H STDINT_H STDLIB_H STRING_H STRINGS_H INTTYPES_H LIMITS_H MEMORY_H UNISTD_H SYS_TIME_H SYS_RESOURCE_H"
HAS += " SYS_TYPES_H SYS_STAT_H GETRUSAGE MEMSET STRDUP USLEEP LONG_DOUBLE LONG_LONG _BOOL MPI_WIN_CREATE"
HAS += " FLOAT__COMPLEX DOUBLE__COMPLEX LONG_DOUBLE__COMPLEX"


class Suite:
    """Its programs of one language, built by an MPI's compilers."""

    def __init__(self, mpi: Mpi, language: str, there: Path) -> None:
        self.mpi, self.there = mpi, there
        self.home = sources.unpacked("mpich", "test/mpi")
        directory, suffix, binding = LANGUAGES[language]
        self.directory, self.suffix = self.home / directory, suffix
        if binding:
            self.compiler = [mpi.mpifort, *flags(mpi, binding), "-O1", f"-J{there}"]
            more = [self.home / f"util/mtest_{language}{self.suffix}"]
        else:
            self._configure()
            include = [self.home / "include", self.home / "dtpools/include", there / "include"]
            self.compiler = [mpi.mpicc, *mpi.cflags, "-O1", "-w", *(f"-I{path}" for path in include)]
            more = [self.home / f"util/{name}.c" for name in ("mtest", "mtest_common", "mtest_single")]
            more += map(self._renamed, sorted((self.home / "dtpools/src").glob("*.c")))
        self.common = [there / f"{path.stem}.o" for path in more]
        for path, made in zip(more, self.common, strict=True):
            done = self._compile("-c", path, "-o", made)
            assert done.returncode == 0, done.stderr

    def _configure(self) -> None:
        text = CONFIGURATION + "".join(f"#define HAVE_{name} 1\n" for name in HAS.split())
        (self.there / "include").mkdir()
        for name in ("include/mpitestconf.h", "dtpoolsconf.h"):
            (self.there / name).write_text(text)

    def _renamed(self, path: Path) -> Path:
        """With names for two calls that MPI 3 has, too."""
        text = re.sub(r"\bMPI_Type_(hvector|hindexed)\b", r"MPI_Type_create_\1", path.read_text())
        (self.there / path.name).write_text(text)
        return self.there / path.name

    def _compile(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        command = list(map(str, (*self.compiler, *words)))
        env = {**os.environ, **self.mpi.env}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env)

    def build(self, name: str) -> Path | None:
        """None where the MPI has not what the program asks for."""
        source, program = self.directory / f"{name}{self.suffix}", self.there / name
        done = self._compile(source, *self.common, "-o", program, "-lm")
        return program if done.returncode == 0 else None

    def runs(self) -> list[tuple[str, int, list[str]]]:
        """Of each program with each of its arguments the one of fewest ranks, but of more than one."""
        found: dict[tuple[str, ...], int] = {}
        path = self.directory / "testlist"
        for line in (path if path.exists() else path.with_name("testlist.in")).read_text().splitlines():
            if not line or OTHERS.match(line):
                continue
            name, ranks, *words = line.split()
            if (self.directory / f"{name}{self.suffix}").exists():
                key = (name, *(word.removeprefix("arg=") for word in words if word.startswith("arg=")))
                wanted = [n for n in (found.get(key), int(ranks)) if n and n > 1]
                found[key] = min(min(wanted, default=2), MOST)
        return [(name, ranks, words) for (name, *words), ranks in found.items()]


@pytest.fixture(scope="module", params=LANGUAGES)
def suite(mpi: Mpi, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return Suite(mpi, request.param, tmp_path_factory.mktemp(f"suite-{mpi.name}-{request.param}"))


def trouble(runner: Runner, ranks: int, argv: Sequence[str | Path], env: dict[str, str] | None) -> str:
    """What is wrong with a run, if anything is; without onecopy where there is no @env."""
    try:
        done = runner.mpirun(ranks, *argv, env=env, preload=env is not None, check=False)
    except JobError as reason:
        return str(reason)
    return "" if done.returncode == 0 and "No Errors" in done.stdout else done.stdout + done.stderr


def test_collectives(runner: Runner, suite: Suite) -> None:
    built = [(suite.build(name), ranks, words) for name, ranks, words in suite.runs()]
    programs = [(path, ranks, words) for path, ranks, words in built if path]
    print(f"{len(programs)} of {len(built)} programs")
    assert len(programs) > 0.8 * len(built)
    failed, helped = [], 0
    for path, ranks, words in programs:
        for name, setting in SETTINGS.items():
            report = runner.cwd / f"{path.name}-{name}.stats"
            said = trouble(runner, ranks, [path, *words], {**setting, "ONECOPY_STATS": str(report)})
            if said and not trouble(runner, ranks, [path, *words], None):
                failed.append(f"{path.name} {' '.join(words)}, {ranks} ranks, {name}: {said[-1500:]}")
            elif said:
                print(f"{path.name}, {ranks} ranks: the MPI alone fails, too")
            elif name == "all":
                calls = [call for line in stats(report) for call in line["calls"].values()]
                helped += any(call["served"] for call in calls)
    assert not failed, "\n\n".join(failed)
    assert helped > len(programs) / 2
