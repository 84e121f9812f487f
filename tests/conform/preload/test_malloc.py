# SPDX-License-Identifier: BSD-3-Clause
"""malloc and its family under the preload: what the C standard, POSIX and glibc's manual promise."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import longform
import pytest
from job import Finished
from runner import Runner

Preloaded = Callable[..., Finished]

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may lock as much as it likes")

SKIPPED = 77  # exit status

CASES = (
    *("threshold", "errors", "zeroes", "moves", "grows", "threads", "destructors", "exhaustion", "returns"),
    *("sparse", "discards", "frugal"),
)


@pytest.mark.parametrize("case", CASES)
def test_case(preloaded: Preloaded, case: str) -> None:
    assert preloaded("malloc_cases", case, timeout=120).stderr == ""


def test_core_files(preloaded: Preloaded) -> None:
    assert preloaded("core_files").stderr == ""


@AS_ROOT
def test_locks(preloaded: Preloaded) -> None:
    """Within a limit of address space: without the care the arena would be filled as far as that lets it grow."""
    assert preloaded("malloc_cases", "locks", limits=f"-v {2 << 20}").stderr == ""


def test_recycles(preloaded: Preloaded) -> None:
    """Within a limit of address space the arena is small, and so is what is kept of freed blocks."""
    preloaded("malloc_cases", "recycles", limits="-v 8000000")


def test_freed_by_threads(preloaded: Preloaded) -> None:
    """The same of blocks that threads free which end soon."""
    preloaded("freed_cases", "ends", limits="-v 8000000")


@AS_ROOT
def test_freed_of_locked(preloaded: Preloaded) -> None:
    preloaded("freed_cases", "locked", limits="-v 5000000")


@pytest.mark.parametrize("case", ["protected", "locked_block", "bound"])
def test_freed_as_new(preloaded: Preloaded, case: str) -> None:
    """What a program does to pages of a large block ends with the block, as it does where free() unmaps it."""
    finished = preloaded("freed_cases", case, check=False)
    if finished.returncode == SKIPPED:
        pytest.skip("memory cannot be bound to nodes here")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("case", ["discarded", "discarded_protected", "discarded_file"])
def test_thrown_away(preloaded: Preloaded, case: str) -> None:
    """Pages that a program throws away by madvise() are zero, and what is not the heap's stays as it is."""
    preloaded("freed_cases", case)


def test_own_limit(preloaded: Preloaded) -> None:
    """A program that limits its addresses has as many beside the arena, and reads what it has said."""
    finished = preloaded("own_limit", check=False)
    if finished.returncode == SKIPPED:
        pytest.skip("addresses are limited here, or memory is little")
    assert finished.returncode == 0, finished.stderr


def test_double_free(preloaded: Preloaded) -> None:
    finished = preloaded("malloc_cases", "double_free", check=False, limits="-c 0")
    assert finished.returncode == -signal.SIGABRT
    assert "not a live block" in finished.stderr


@pytest.mark.parametrize(("threads", "ops", "seed"), [(1, 8000, 1), (4, 3000, 2), (8, 1500, 3)])
def test_torture(preloaded: Preloaded, threads: int, ops: int, seed: int) -> None:
    """Blocks never overlap, move with their content, and calloc's are zero, whoever frees what."""
    ops //= 1 if longform.ASKED else 3
    preloaded("malloc_torture", str(threads), str(ops), str(seed), timeout=120)


def test_torture_little_kept(preloaded: Preloaded) -> None:
    """The same in an arena of which freed blocks go back to the system early."""
    preloaded("malloc_torture", "3", "400", "4", limits="-v 3000000", timeout=120)


@pytest.mark.parametrize("place", ["above", "below"])
def test_odd_allocator(runner: Runner, compiled: Callable[[str], Path], place: str) -> None:
    """An allocator that lacks memalign, valloc and malloc_usable_size never meets a block of another's."""
    ours, odd = str(runner.library()), str(compiled("odd_malloc"))
    preload = f"{odd}:{ours}" if place == "above" else f"{ours}:{odd}"
    runner.run(compiled("mixed_malloc"), place, env={"LD_PRELOAD": preload})


@pytest.mark.parametrize("case", ["shallow", "takes"])
def test_blocks_of_libraries(preloaded: Preloaded, compiled: Callable[[str], Path], case: str) -> None:
    preloaded("deep_cases", str(compiled("deep_library")), case)


def test_block_given_to_the_c_library(preloaded: Preloaded, compiled: Callable[[str], Path]) -> None:
    """By a library that has been told to use no other's free (RTLD_DEEPBIND): the program ends, at once."""
    finished = preloaded("deep_cases", str(compiled("deep_library")), "gives", check=False, limits="-c 0")
    assert finished.returncode == -signal.SIGABRT
    assert "invalid" in finished.stderr


def test_without_mpi(runner: Runner) -> None:
    """A program without MPI gets no arena and loads no allocator."""
    maps = runner.run("cat", "/proc/self/maps", env={"LD_PRELOAD": str(runner.library())}).stdout
    assert "libonecopy" in maps
    assert "onecopy-heap" not in maps
    assert "mimalloc" not in maps


def test_thread_sanitizer(runner: Runner, compiled: Callable[[str], Path], preloaded: Preloaded) -> None:
    """It counts no thread of ours among the program's, and finds no race that is none."""
    empty = runner.run("sh", "-c", "echo 'int main(void) { return 0; }' | cc -fsanitize=thread -xc -", check=False)
    if empty.returncode:
        pytest.skip("the compiler has no ThreadSanitizer")
    plain = runner.run(compiled("watched"), check=False)
    if plain.returncode:
        pytest.skip(f"ThreadSanitizer does not run here: {plain.stderr}")
    assert preloaded("watched").stderr == ""
