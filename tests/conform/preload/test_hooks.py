# SPDX-License-Identifier: BSD-3-Clause
"""Who caches registrations of memory with the network card hears of memory that goes away, in the heap as outside it
(hazard 13)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from job import Finished
from runner import Runner

Preloaded = Callable[..., Finished]

UCM = Path("/usr/include/ucm/api/ucm.h")
#: Within a limit of address space the arena is small, and so is what is kept of freed blocks.
SMALL = "-v 8000000"


@pytest.mark.skipif(not UCM.exists(), reason="no libucx-dev: packaging/install-deps test")
@pytest.mark.parametrize("program", ["hooks_ucx", "hooks_ucx_behind"])
def test_ucx(runner: Runner, compiled: Callable[[str], Path], preloaded: Preloaded, program: str) -> None:
    runner.run(compiled(program), "plain")
    preloaded(program, "heap")
    preloaded(program, "small", limits=SMALL)


def test_libfabric(runner: Runner, compiled: Callable[[str], Path], preloaded: Preloaded) -> None:
    """What its monitor of choice hears; Debian's has no provider that would start one without a network card."""
    if "none" in runner.run(compiled("hooks_uffd"), "plain").stdout:
        pytest.skip("no userfaultfd for us here")
    preloaded("hooks_uffd", "heap")


@pytest.mark.parametrize("preload", [False, True])
def test_openmpi(runner: Runner, compiled: Callable[[str], Path], preload: bool) -> None:
    runner.mpirun(1, compiled("hooks_openmpi"), "heap" if preload else "plain", preload=preload)


@pytest.mark.parametrize("descriptor", ["open", "closed"])
def test_fork(preloaded: Preloaded, descriptor: str) -> None:
    """No hook is called in a child before fork() returns: its locks may be held by threads the child does not have."""
    preloaded("hooks_fork", descriptor)


def test_early_fork_handlers(preloaded: Preloaded) -> None:
    """Ours are the first all the same."""
    preloaded("hooks_early")
