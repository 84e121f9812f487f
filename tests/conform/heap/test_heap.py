# SPDX-License-Identifier: BSD-3-Clause
"""The shared heap's hazards: fork (hazard 2), limits of the host, and memory of processes we know nothing of."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from job import Finished
from runner import Runner

Preloaded = Callable[..., Finished]


CASES = [
    *("isolation", "nested", "threads", "raw_clone", "frugal", "descriptors", "refused", "held_back", "cancelled"),
    "ending",
]


@pytest.mark.parametrize("case", CASES)
def test_fork(preloaded: Preloaded, case: str) -> None:
    preloaded("fork_cases", case)


@pytest.mark.parametrize("case", ["pairs", "any", "raw", "freed", "closed", "outside"])
def test_fork_advice(runner: Runner, compiled: Callable[[str], Path], preloaded: Preloaded, case: str) -> None:
    """MADV_DONTFORK and its like mean in the heap what they mean outside it, and no child shares with its parent."""
    runner.run(compiled("fork_advice"), "plain", case)
    preloaded("fork_advice", "heap", case)


LATE = [
    *("untouched", "closing", "orphan", "stopped", "killed", "early", "crowd", "starved", "handler", "traced"),
    *("many", "holes", "emptied"),
]


@pytest.mark.parametrize("case", LATE)
def test_fork_late(preloaded: Preloaded, case: str) -> None:
    preloaded("fork_late", case)


def test_fork_died(preloaded: Preloaded) -> None:
    """A parent that dies in the midst of fork takes nothing from its child."""
    preloaded("fork_died")


@pytest.mark.parametrize("case", ["user", "user_by_number", "mount", "mount_raw", "filtered"])
def test_fork_single(preloaded: Preloaded, case: str) -> None:
    """For whoever asks the kernel a child has one thread, though another may be copying for it."""
    finished = preloaded("fork_single", case, check=False)
    if finished.returncode == 77:
        pytest.skip("nobody may enter such a namespace, or set such a filter, here")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("case", ["reads", "file", "pipe", "returned", "untouched"])
def test_descriptor_closed(preloaded: Preloaded, case: str) -> None:
    """Programs that close every descriptor they did not open keep the heap and their own descriptors."""
    preloaded("fork_closed", case)


def test_descriptor_closed_much_data(preloaded: Preloaded) -> None:
    """In a small arena little is copied without the descriptor. What is not is no silent zeros, and there is a note."""
    finished = preloaded("fork_closed", "excess", limits="-v 8000000", env={"ONECOPY_VERBOSE": "1"})
    assert finished.stderr.count("descriptor of the shared heap is closed") == 1
    assert "too much" in finished.stderr


@pytest.mark.parametrize("case", ["shared", "isolation", "nested", "closed", "raw_clone", "advice", "dropped"])
def test_static_data(preloaded: Preloaded, case: str) -> None:
    """Large static arrays are in the arena, and what a program can see of them is as it was."""
    preloaded("static_cases", case)


def test_static_data_border(preloaded: Preloaded) -> None:
    """An array that begins in memory of the file."""
    preloaded("static_border")


def test_static_data_private(preloaded: Preloaded) -> None:
    preloaded("static_cases", "private", env={"ONECOPY_STATIC": "off"})


def test_static_data_of_go(preloaded: Preloaded) -> None:
    """A Go program's children that share no memory are made without the C library, and use its static data."""
    assert "Go program" in preloaded("static_go", env={"ONECOPY_VERBOSE": "1"}).stderr


@pytest.mark.parametrize("case", ["pool", "queue", "shells", "generations"])
def test_python_processes(preloaded: Preloaded, case: str) -> None:
    assert preloaded("forking.py", case).stdout.endswith("done\n")


@pytest.mark.parametrize(
    ("limits", "reason"), [("-v 600000", "RLIMIT_AS"), ("-d 7000", "RLIMIT_DATA"), ("-f 100", "RLIMIT_FSIZE")]
)
def test_refused(preloaded: Preloaded, limits: str, reason: str) -> None:
    """Without a heap the program runs on the C library's, and is told why when it asks."""
    finished = preloaded("malloc_cases", "refused", limits=limits, env={"ONECOPY_VERBOSE": "1"})
    assert finished.stderr.count("onecopy:") == 1
    assert reason in finished.stderr


@pytest.mark.parametrize("variable", ["ONECOPY", "ONECOPY_HEAP"])
def test_off(preloaded: Preloaded, variable: str) -> None:
    """What the user turned off is not made, and needs no word."""
    finished = preloaded("malloc_cases", "refused", env={"ONECOPY_VERBOSE": "1", variable: "off"})
    assert finished.stderr == ""


def test_silent(preloaded: Preloaded) -> None:
    """Nothing is printed unless asked for, though the heap was refused."""
    assert preloaded("malloc_cases", "refused", limits="-v 600000").stderr == ""


@pytest.mark.parametrize("limits", ["-v 8000000", "-f 2000000"])
def test_limited(preloaded: Preloaded, limits: str) -> None:
    """Where limits leave room for a small arena, it is used within them."""
    preloaded("malloc_cases", "zeroes", limits=limits)


def test_allocator_beside_the_library(runner: Runner, compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """The library that lies beside ours, as in a wheel, goes before the system's, if it can be loaded."""

    def allocators(library: Path) -> set[str]:
        preload = f"{library}:{compiled('marker')}"
        maps = runner.run("cat", "/proc/self/maps", env={"LD_PRELOAD": preload}).stdout
        assert "onecopy-heap" in maps
        return {line.split()[-1] for line in maps.splitlines() if "mimalloc" in line}

    built = runner.library()
    assert built
    (of_system,) = allocators(built)
    library = Path(shutil.copy(built, tmp_path))
    beside = tmp_path / "libonecopy-mimalloc.so"
    shutil.copy(of_system, beside)
    assert allocators(library) == {str(beside)}
    beside.write_bytes(b"no library")
    assert allocators(library) == {of_system}


#: A mimalloc that says which version it is, and has all that is asked of one.
ALLOCATOR = """
int mi_version(void) { return VERSION; }
void *mi_manage_os_memory_ex, *mi_heap_new_in_arena, *mi_heap_malloc, *mi_heap_zalloc, *mi_heap_malloc_aligned;
void *mi_free, *mi_usable_size;
"""


@pytest.mark.parametrize(("version", "why"), [(208, "too old"), (30600, "too new")])
def test_allocator_of_another_version(
    runner: Runner, compiled: Callable[[str], Path], tmp_path: Path, version: int, why: str
) -> None:
    """There is no shared heap then, and the program runs."""
    source = tmp_path / "allocator.c"
    source.write_text(ALLOCATOR)
    allocator = tmp_path / "libonecopy-mimalloc.so"
    runner.run("cc", "-shared", "-fPIC", f"-DVERSION={version}", "-o", allocator, source)
    built = runner.library()
    assert built
    library = Path(shutil.copy(built, tmp_path))
    env = {"LD_PRELOAD": f"{library}:{compiled('marker')}", "ONECOPY_VERBOSE": "1"}
    done = runner.run("cat", "/proc/self/maps", env=env)
    assert "onecopy-heap" not in done.stdout
    assert f"libmimalloc is {why}" in done.stderr
