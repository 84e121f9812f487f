# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages of the shared heap (lib/heap/huge.c): where there are some, and that nothing is resident before it is
touched. Pages are counted; times are not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from job import Finished
from runner import Runner

Compiled = Callable[[str], Path]
SKIPPED = 77
ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
SECCOMP = Path(__file__).resolve().parents[2] / "cli" / "seccomp.py"

# How a host refuses file systems of our own: by a filter, of which nothing is tried; by a limit.
REFUSALS = {
    "filter": [sys.executable, str(SECCOMP), "EPERM", "process_vm_writev"],
    "limit": [
        *("unshare", "--user", "--map-root-user", "sh", "-c"),
        'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"',
        "sh",
    ],
}


@pytest.fixture
def case(runner: Runner, library: Path, compiled: Compiled) -> Callable[..., Finished]:
    """case(name, *wrapper): runs a case of huge_cases.c under the preload, by way of `wrapper`."""

    def run(name: str, *wrapper: str, thp: str = "always") -> Finished:
        env = [f"LD_PRELOAD={library}", f"ONECOPY_THP={thp}"]
        finished = runner.run(*wrapper, "env", *env, str(compiled("huge_cases")), name, timeout=120, check=False)
        if finished.returncode == SKIPPED:
            pytest.skip("no transparent huge pages here")
        assert finished.returncode == 0, finished.stderr
        return finished

    return run


@pytest.mark.parametrize(
    "name", ["few", "sparse", "dense", "dense_before_collapse", "dense_small", "requested", "zeroed"]
)
def test_pages(case: Callable[..., Finished], name: str) -> None:
    case(name)


@pytest.mark.parametrize("name", ["few", "sparse", "dense"])
def test_pages_by_default(case: Callable[..., Finished], name: str) -> None:
    """Where plain memory has huge pages without asking, so have blocks: whether they are dear is not asked. Where they
    come on request they may be, and are missing then."""
    if name == "dense" and not (ENABLED.exists() and "[always]" in ENABLED.read_text()):
        pytest.skip("plain memory has no huge pages here by itself")
    case(name, thp="auto")


@pytest.mark.parametrize(("name", "thp"), [("scarce", "auto"), ("scarce_always", "always"), ("none", "never")])
def test_setting(case: Callable[..., Finished], name: str, thp: str) -> None:
    """Where huge pages prove hard to get they are asked for no more, unless the user says otherwise."""
    case(name, thp=thp)


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("name", ["few", "sparse", "collapsed", "zeroed"])
def test_refused(runner: Runner, case: Callable[..., Finished], name: str, refusal: str) -> None:
    wrapper = REFUSALS[refusal]
    if runner.run(*wrapper, "true", check=False).returncode:
        pytest.skip("this host cannot refuse in that way")
    case(name, *wrapper)
