# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy doctor` in the places where mechanisms are refused: it must find out, and name the cause."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onecopy import doctor, module, pair

Command = Callable[..., subprocess.CompletedProcess[str]]

LAUNCHER = [sys.executable, str(Path(__file__).with_name("seccomp.py"))]


def examine(onecopy: Command, *before: str, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """name -> mechanism"""
    done = onecopy("doctor", "--json", before=before, env=env)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert {"version", "helps", "verdict", "library", "mechanisms", "mpi", "host"} == set(report)
    assert (done.returncode == 0) == report["helps"]
    found = {m["name"]: m for m in report["mechanisms"]}
    assert list(found) == ["heap", "map", "kcopy", "cma", "staged"]
    for mechanism in found.values():
        assert mechanism["usable"] == (mechanism["why"] == "")
    return found


def require(*command: str) -> None:
    if not shutil.which(command[0]) or subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"{' '.join(command)} is refused here")


@pytest.mark.parametrize("answer", ["EPERM", "ENOSYS", "KILL"])
@pytest.mark.parametrize("calls", ["process_vm_readv,process_vm_writev", "process_vm_writev"])
def test_seccomp_filter_on_cma(onecopy: Command, answer: str, calls: str) -> None:
    require(*LAUNCHER, answer, calls)
    found = examine(onecopy, *LAUNCHER, answer, calls)
    assert not found["cma"]["usable"]
    assert "seccomp" in found["cma"]["why"] or "Yama" in found["cma"]["why"]
    assert found["cma"]["fix"]
    assert found["staged"]["usable"]


@pytest.mark.parametrize("answer", ["EPERM", "ENOSYS", "KILL"])
def test_seccomp_filter_on_memfd(onecopy: Command, answer: str) -> None:
    require(*LAUNCHER, answer, "memfd_create")
    found = examine(onecopy, *LAUNCHER, answer, "memfd_create")
    for name in ("heap", "staged"):
        assert not found[name]["usable"]
    assert "memfd_create" in found["staged"]["why"]


@pytest.mark.parametrize("namespace", ["-U", "-Ur", "-p"])
def test_namespaces(onecopy: Command, namespace: str) -> None:
    """Both ranks in one new namespace: nothing is lost."""
    require("unshare", "-f", namespace)
    staged = examine(onecopy, "unshare", "-f", namespace)["staged"]
    assert staged["usable"], staged["why"]


def test_limits(onecopy: Command) -> None:
    found = examine(onecopy, "sh", "-c", 'ulimit -v 900000; exec "$@"', "sh")
    assert "RLIMIT_AS" in found["heap"]["why"]
    assert "ulimit -v" in found["heap"]["fix"]
    report = json.loads(onecopy("doctor", "--json", before=("sh", "-c", 'ulimit -v 900000; exec "$@"', "sh")).stdout)
    assert not report["helps"]
    assert "RLIMIT_AS" in report["verdict"]
    # In blocks of 512 bytes: room for the control segment, not for an arena.
    found = examine(onecopy, "sh", "-c", 'ulimit -f 32768; exec "$@"', "sh")
    assert "RLIMIT_FSIZE" in found["heap"]["why"]
    assert found["staged"]["usable"]


@pytest.mark.parametrize(
    ("scope", "result", "said"),
    [
        (1, {"step": "read", "errno": 1, "what": "Operation not permitted"}, "ptrace_scope is 1"),
        (3, {"step": "read", "errno": 1, "what": "Operation not permitted"}, "ptrace_scope is 3"),
        (0, {"step": "read", "errno": 1, "what": "", "dumpable": False}, "not dumpable"),
        (0, {"step": "read", "errno": 3, "what": "No such process"}, "PID namespaces"),
        (0, {"step": "own", "errno": 38, "what": ""}, "process_vm_readv"),
        (0, {"signal": "SIGSYS", "errno": 0, "what": ""}, "seccomp"),
        (0, {"step": "read", "errno": 1, "what": "x", "dumpable": True}, "user namespaces"),
    ],
)
def test_causes(monkeypatch: pytest.MonkeyPatch, scope: int, result: dict[str, Any], said: str) -> None:
    monkeypatch.setattr(doctor, "yama_scope", lambda: scope)
    mechanism = doctor.explain_cma([{}, result])
    assert not mechanism.usable
    assert said in mechanism.why
    assert mechanism.fix


@pytest.mark.parametrize(("container", "said"), [("", "onecopy-dkms"), ("docker", "on the host")])
def test_module_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, container: str, said: str) -> None:
    monkeypatch.setattr(module, "DEVICE", tmp_path / "onecopy")
    monkeypatch.setattr(module, "installed", lambda: False)
    found = module.examine(container)
    assert "not loaded" in found.why or "not here" in found.why
    assert said in found.fix or "not here" in found.why
    mechanism = doctor.explain_map(found)
    assert (mechanism.usable, mechanism.fix) == (False, found.fix)


def test_module_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The device is there, its group is not ours; then something else that has its name."""
    device = tmp_path / "onecopy"
    device.touch(mode=0o660)
    monkeypatch.setattr(module, "DEVICE", device)
    assert "may not be opened" in module.refused().why
    assert "udev" in module.refused().fix or "usermod" in module.refused().fix
    assert "does not answer" in module.examine("").why


def test_pair_reports_how_a_side_ended() -> None:
    def body(side: pair.Side) -> dict[str, Any]:
        if side.index == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        side.exchange("hello")
        return {}

    died, left = pair.run(body)
    assert died["signal"] == "SIGKILL"
    assert "died" in left["what"]


def test_exchange_keeps_order() -> None:
    def body(side: pair.Side) -> dict[str, Any]:
        return {"seen": [side.exchange([side.index, i]) for i in range(200)]}

    for index, result in enumerate(pair.run(body)):
        assert result["seen"] == [[1 - index, i] for i in range(200)]


def test_text(onecopy: Command) -> None:
    done = onecopy("doctor")
    assert "staged" in done.stdout
    assert "onecopy" in done.stdout.splitlines()[-1] or "onecopy" in done.stdout
