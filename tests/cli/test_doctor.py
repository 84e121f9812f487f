# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy doctor` in the places where mechanisms are refused: it must find out, and name the cause."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onecopy import doctor, hugepages, machine, module, pair, report, target

Command = Callable[..., subprocess.CompletedProcess[str]]

CLI = str(Path(__file__).resolve().parents[2] / "cli")
LAUNCHER = [sys.executable, str(Path(__file__).with_name("seccomp.py"))]


def examine(onecopy: Command, *before: str, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """name -> mechanism"""
    done = onecopy("doctor", "--json", before=before, env=env)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    assert {"version", "helps", "verdict", "library", "mechanisms", "mpi", "host"} == set(answer)
    assert (done.returncode == 0) == answer["helps"]
    found = {m["name"]: m for m in answer["mechanisms"]}
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
    answer = json.loads(onecopy("doctor", "--json", before=("sh", "-c", 'ulimit -v 900000; exec "$@"', "sh")).stdout)
    assert not answer["helps"]
    assert "RLIMIT_AS" in answer["verdict"]
    # In blocks of 512 bytes: room for the control segment, not for an arena.
    found = examine(onecopy, "sh", "-c", 'ulimit -f 32768; exec "$@"', "sh")
    assert "RLIMIT_FSIZE" in found["heap"]["why"]
    assert found["staged"]["usable"]


def test_children_that_the_caller_ignores(onecopy: Command) -> None:
    """Whoever starts us may do that, and then no child has a status."""
    assert examine(onecopy, "env", "--ignore-signal=CHLD") == examine(onecopy)


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


@pytest.mark.parametrize(
    ("version", "heap", "cma", "said"),
    [
        ("mpirun (Open MPI) 4.1.4", True, True, "by a pointer, else copied by the kernel"),
        ("mpirun (Open MPI) 5.0.7", True, True, "by a pointer, else copied by the kernel"),
        ("mpirun (Open MPI) 4.1.4", False, True, "copied by the kernel"),
        ("mpirun (Open MPI) 4.1.4", True, False, "by a pointer, else copied twice"),
        ("mpirun (Open MPI) 5.0.7", True, False, "copied twice by the MPI, through its shared segment: refused, so"),
        ("mpirun (Open MPI) 5.0.7", False, False, "copied twice by the MPI, through its shared segment: refused"),
        ("MPICH 5.0.2", True, True, "by a pointer, else copied by the kernel"),
        ("MPICH 5.0.2", True, False, "by a pointer; at others MPICH ends the program, for refused, unless"),
        ("MPICH 4.0.2", True, False, "copied twice by the MPI, through its shared segment: refused, so"),
        ("HYDRA build details", True, True, ""),
    ],
)
def test_path_of_messages(monkeypatch: pytest.MonkeyPatch, version: str, heap: bool, cma: bool, said: str) -> None:
    monkeypatch.delenv("ONECOPY_MESSAGES", raising=False)
    found = [doctor.Mechanism("heap", heap), doctor.Mechanism("cma", cma, "" if cma else "refused")]
    path = doctor.explain_messages(found, {"version": version, "preload": "/lib/onecopy.so"})
    assert said in path
    assert bool(path) == bool(said)
    # Open MPI's ranks open themselves, where that is all that it takes.
    opened = [doctor.Mechanism("heap", False), doctor.Mechanism("cma", False, f"{doctor.YAMA} is 1, only a parent")]
    assert (doctor.explain_messages(opened, {"version": version}) == "copied by the kernel (process_vm_readv)") == bool(
        said
    )
    monkeypatch.setenv("ONECOPY_MESSAGES", "off")
    assert "pointer" not in doctor.explain_messages(found, {"version": version, "preload": "/lib/onecopy.so"})


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


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit(3)"])
def test_a_side_never_leaves_its_process(error: str) -> None:
    """^C reaches it, too; what came after it would be done by three."""
    text = (
        "from onecopy import pair\n"
        f"def body(side):\n    raise {error}\n"
        "answers = pair.run(body)\n"
        "print([one['what'].partition(':')[0] for one in answers], flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": CLI}, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (f"{[error.partition('(')[0]] * 2}\n", "")


def test_exchange_keeps_order() -> None:
    def body(side: pair.Side) -> dict[str, Any]:
        return {"seen": [side.exchange([side.index, i]) for i in range(200)]}

    for index, result in enumerate(pair.run(body)):
        assert result["seen"] == [[1 - index, i] for i in range(200)]


def test_text(onecopy: Command) -> None:
    """Every mechanism in a line of its own, what it does, and no line broken, however long a path is."""
    done = onecopy("doctor", env={"COLUMNS": "40"})
    lines = done.stdout.splitlines()
    for name, what in doctor.WHAT.items():
        assert any(line.split()[:1] == [name] and line.endswith(what) for line in lines)
    assert any(re.search(r"/libonecopy-openmpi4(-mpi[34])?\.so$", line) for line in lines)
    assert "onecopy" in lines[-1]
    assert "\033" not in done.stdout


def test_without_any_package(environment: dict[str, str], tmp_path: Path) -> None:
    """-S: no site-packages, hence no rich."""
    argv = [sys.executable, "-S", "-m", "onecopy", "doctor"]
    done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "staged" in done.stdout
    assert done.stderr == ""


def test_the_same_cause_is_said_once() -> None:
    common = {"usable": False, "why": "no module", "fix": "load it"}
    found = [{"name": "map", "what": "maps", **common}, {"name": "kcopy", "what": "copies", **common}]
    text = "\n".join(report.lines({"mechanisms": found, "mpi": {}, "host": [], "helps": False, "verdict": "no"}, False))
    assert text.count("load it") == 1
    assert "why: as map" in text
    found[0]["fix"] = "another fix"
    text = "\n".join(report.lines({"mechanisms": found, "mpi": {}, "host": [], "helps": False, "verdict": "no"}, True))
    assert "load it" in text
    assert "another fix" in text


def test_a_module_that_cannot_map() -> None:
    found = doctor.explain_map(module.Module(maps=False, tracks=True))
    assert not found.usable
    assert "kcopy serves" in found.fix


def test_limits_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onecopy.doctor.resource.getrlimit", lambda _: (1 << 20, 1 << 20))
    for name in ("RLIMIT_AS", "RLIMIT_FSIZE"):  # each by itself: the heap is refused for the first
        assert doctor.limit_fact(name, getattr(resource, name)).note == "too small for the shared heap"
    monkeypatch.setattr("onecopy.doctor.resource.getrlimit", lambda _: (1 << 50, 1 << 50))
    assert doctor.limit_fact("RLIMIT_AS", resource.RLIMIT_AS).note == "enough"


MAIN = "int MPI_Init(void); int main(void) { return MPI_Init(); }"


def about(onecopy: Command, fake_mpi: Path, word: str | Path) -> dict[str, Any]:
    """What doctor says of a program, where the fake MPI's mpirun is in PATH."""
    env = {"PATH": f"{fake_mpi}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(fake_mpi)}
    done = onecopy("doctor", "--json", word, env=env)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    facts: dict[str, Any] = answer["program"]
    assert answer["helps"] or "why" in facts
    assert Path(facts["path"]).name in answer["verdict"]
    return facts


def test_a_program_of_the_mpi(onecopy: Command, fake_mpi: Path, compile_c: Callable[..., Path]) -> None:
    program = compile_c("prog", MAIN, fake_mpi / "libmpi.so.40")
    facts = about(onecopy, fake_mpi, program)
    assert "why" not in facts
    assert facts["mpi"] == f"Open MPI 4, 5 or 6, linked: {fake_mpi / 'libmpi.so.40'}"
    assert facts["preload"].endswith("libonecopy-openmpi4.so")
    assert "dynamically linked" in facts["kind"]
    compile_c(
        "libthrough.so",
        "int MPI_Init(void); int go(void) { return MPI_Init(); }",
        "-shared",
        "-fPIC",
        fake_mpi / "libmpi.so.40",
    )
    through = compile_c(
        "through",
        "int go(void); int main(void) { return go(); }",
        program.parent / "libthrough.so",
        f"-Wl,-rpath,{program.parent}",
        f"-Wl,-rpath-link,{fake_mpi}",
    )
    assert "through another library" in about(onecopy, fake_mpi, through)["mpi"]


def test_launcher_of_a_program(
    monkeypatch: pytest.MonkeyPatch, fake_mpi: Path, stub_libs: Path, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    """That in PATH, if it is of the program's MPI; else one by another name, or beside the library."""
    for name in ("tools", "also", "own/lib", "own/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tools/ldd").symlink_to(shutil.which("ldd") or "/usr/bin/ldd")
    library = shutil.copy(fake_mpi / "libmpi.so.12", tmp_path / "own/lib")
    prog = compile_c("prog", MAIN, fake_mpi / "libmpi.so.40", f"-Wl,-rpath,{fake_mpi}")
    other = compile_c("other", MAIN, library, f"-Wl,-rpath,{tmp_path}/own/lib")
    monkeypatch.setenv("PATH", f"{fake_mpi}:{tmp_path}/also:{tmp_path}/tools")
    monkeypatch.setenv("ONECOPY_LIBDIR", str(stub_libs))
    facts = target.examine(str(prog))
    assert facts["launcher"] == "mpirun"
    assert "note" not in facts
    facts = target.examine(str(other))
    assert facts["launcher"] == ""
    assert facts["note"] == f"{fake_mpi}/mpirun belongs to Open MPI 4, 5 or 6: start it by the launcher of its own MPI"
    _, verdict = doctor.judge_program(True, "good", facts)
    assert verdict.endswith("by the launcher of its own MPI, which is not in PATH")
    for launcher, said in (
        (tmp_path / "also/mpiexec.hydra", ""),
        (tmp_path / "own/bin/mpiexec", f"{tmp_path}/own/bin/"),
    ):
        launcher.write_text("#!/bin/sh\necho HYDRA build details:\n")
        launcher.chmod(0o755)
        facts = target.examine(str(other))
        assert facts["launcher"] == said + launcher.name
        assert facts["note"].endswith(f"Open MPI 4, 5 or 6: {said}{launcher.name} is its own")
        _, verdict = doctor.judge_program(True, "good", facts)
        assert verdict == f"good; start it by: onecopy run {facts['launcher']} -n N {other}"


@pytest.mark.parametrize(("below", "launcher"), [("", ""), ("libopen_mpi.so.40", "mpirun")])
def test_launcher_of_the_standards_abi(
    monkeypatch: pytest.MonkeyPatch,
    fake_mpi: Path,
    stub_libs: Path,
    compile_c: Callable[..., Path],
    tmp_path: Path,
    below: str,
    launcher: str,
) -> None:
    """It is that of the MPI whose library it is: Open MPI's is known by what it needs."""
    shared = ("-shared", "-fPIC", f"-Wl,-rpath,{tmp_path}")
    needs = [compile_c(below, "int below(void) { return 0; }", *shared, f"-Wl,-soname,{below}")] if below else []
    source = "int MPI_Init(void) { return 0; }"
    library = compile_c("libmpi_abi.so.1", source, *shared, "-Wl,-soname,libmpi_abi.so.1", "-Wl,--no-as-needed", *needs)
    program = compile_c("prog", MAIN, library, f"-Wl,-rpath,{tmp_path}")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/ldd").symlink_to(shutil.which("ldd") or "/usr/bin/ldd")
    monkeypatch.setenv("PATH", f"{fake_mpi}:{tmp_path}/tools")
    monkeypatch.setenv("ONECOPY_LIBDIR", str(stub_libs))
    facts = target.examine(str(program))
    assert facts["preload"].endswith("libonecopy-mpi5.so")
    assert (facts["launcher"], "note" in facts) == (launcher, not launcher)


def test_programs_that_cannot_be_helped(onecopy: Command, fake_mpi: Path, compile_c: Callable[..., Path]) -> None:
    empty = "int main(void) { return 0; }"
    static = about(onecopy, fake_mpi, compile_c("static", empty, "-static"))
    assert "statically" in static["kind"]
    assert "-static" in static["fix"]
    other = about(onecopy, fake_mpi, compile_c("other", MAIN, fake_mpi / "libmpi.so.99"))
    assert "libmpi.so.99" in other["mpi"]
    assert "does not know" in other["why"]
    assert "linked with no MPI" in about(onecopy, fake_mpi, compile_c("none", empty))["why"]
    assert "launcher" in about(onecopy, fake_mpi, "mpirun")["why"]
    assert about(onecopy, fake_mpi, "no-such-program")["why"] == "no such program"
    assert about(onecopy, fake_mpi, "/etc/passwd")["fix"] == "chmod +x"


def test_programs_that_bring_their_mpi(
    onecopy: Command, fake_mpi: Path, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    loads = compile_c("loads", 'const char *volatile name = "libmpi.so.40"; int main(void) { return !name; }')
    facts = about(onecopy, fake_mpi, loads)
    assert "dlopen" in facts["mpi"]
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)
    facts = about(onecopy, fake_mpi, script)
    assert facts["kind"] == "script of /usr/bin/env python3"
    assert facts["preload"]
    script.write_text("#!/usr/bin/env -S nobodys-interpreter -u\n")
    assert about(onecopy, fake_mpi, script)["why"] == "it does not start: nobodys-interpreter not found"
    assert "mpi4py" in about(onecopy, fake_mpi, compile_c("python3.99", "int main(void) { return 0; }"))["note"]


@pytest.mark.parametrize(
    ("private", "shared", "why", "dear", "had", "advised"),
    [
        ("always", "never", "", False, "as for private memory", False),
        ("always", "never", "", True, "as for private memory", False),
        ("madvise", "never", "", False, "where asked for", False),
        ("madvise", "never", "", True, "where the program asks", False),
        ("madvise", "advise", "a filter", False, "where asked for", False),
        ("always", "never", "a filter", False, "late", True),
        ("always", "deny", "", False, "none", True),
        ("never", "advise", "", False, "none", False),
    ],
)
def test_huge_pages(
    monkeypatch: pytest.MonkeyPatch, private: str, shared: str, why: str, dear: bool, had: str, advised: bool
) -> None:
    """The heap's huge pages follow those of private memory; an administrator is asked for no more than helps."""
    chosen = {"enabled": private, "shmem_enabled": shared}
    monkeypatch.setattr(machine, "selected", lambda path: chosen[Path(path).name])
    monkeypatch.setattr(hugepages, "refusal", lambda: why)
    monkeypatch.setattr(hugepages, "reports_free_pages", lambda: dear)
    monkeypatch.delenv("ONECOPY_THP", raising=False)
    monkeypatch.setattr(hugepages, "COLLAPSES", (0, 0))
    value, note = hugepages.judge()
    assert value.startswith(had)
    assert ("echo advise" in note) == advised
    assert not advised or why in note
    monkeypatch.setenv("ONECOPY_THP", "never")
    assert hugepages.judge() == ("none", "ONECOPY_THP is never")


@pytest.mark.parametrize(
    ("private", "release", "why", "had", "note"),
    [
        ("always", (6, 1), "a filter", "late, of what has filled up", "a filter; as root"),
        ("always", (6, 0), "a filter", "none", "a filter; as root"),
        ("always", (5, 1), "", "none", "it takes Linux 5.2; as root"),
        ("always", (5, 2), "", "as for private memory", "good: in a file system of its own"),
        ("madvise", (6, 1), "dear", "where the program asks for them, else in time", "good: the host"),
        ("madvise", (6, 0), "dear", "where the program asks for them", "good: the host"),
    ],
)
def test_huge_pages_of_older_kernels(
    monkeypatch: pytest.MonkeyPatch, private: str, release: tuple[int, int], why: str, had: str, note: str
) -> None:
    """Before 6.1 nothing is collapsed, before 5.2 there is no file system of our own: then the setting is all."""
    chosen = {"enabled": private, "shmem_enabled": "never"}
    monkeypatch.setattr(machine, "selected", lambda path: chosen[Path(path).name])
    monkeypatch.setattr(machine, "read", lambda _: "")  # neither a filter nor AppArmor
    monkeypatch.setattr(hugepages, "_release", lambda: release)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0))
    monkeypatch.setattr(hugepages, "reports_free_pages", lambda: why == "dear")
    if why == "a filter":
        monkeypatch.setattr(hugepages, "refusal", lambda: why)
    monkeypatch.delenv("ONECOPY_THP", raising=False)
    value, said = hugepages.judge()
    assert value == had
    assert said.startswith(note)
    assert ("echo advise" in said) == note.endswith("as root")
