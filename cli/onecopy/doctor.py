# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy doctor`: which mechanisms work here between real processes, and what to do about those that do not.

--json prints {"version", "helps", "verdict", "library", "mechanisms": [{"name", "what", "usable", "why", "fix"}],
"mpi": {..., "messages"}, "host": [{"name", "value", "note"}]}, and for `doctor PROGRAM` "program": {...}. The exit
status is 0 when onecopy can speed up something here, or that program.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import resource
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from onecopy import __version__, hugepages, install, machine, module, mpi, pair, peers, probes, report, run, target
from onecopy.stats import size

#: The kernel's numbers of the first namespaces (include/linux/proc_ns.h).
FIRST_PID_NAMESPACE, FIRST_USER_NAMESPACE = 0xEFFFFFFC, 0xEFFFFFFD
#: lib/heap/arena.c: the least arena, and how much of a limited address space one may take.
ARENA_MIN = 256 << 20
ADDRESS_SPACE_SHARE = 4
#: Docker's default: too little for many an MPI.
SHM_SMALL = 64 << 20 | 1


#: What each mechanism does, for somebody who reads its name for the first time.
WHAT = {
    "heap": "large malloc blocks lie in memory that the peers have mapped: one copy, no system call",
    "map": "other memory (stack, static, mmap), mapped from its owner by the kernel module: one copy",
    "kcopy": "other memory, copied by the kernel module: one copy, one system call",
    "cma": "other memory, by process_vm_readv: one copy, one system call; where staging is forbidden",
    "staged": "other memory, through a buffer that the peers have mapped: two copies",
}


@dataclass(frozen=True)
class Mechanism:
    name: str
    usable: bool
    why: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Fact:
    name: str
    value: str
    note: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", nargs="?", metavar="PROGRAM", help="look at this program, too: can it be helped?")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="of the program: an interpreter's script")
    parser.add_argument("--json", action="store_true", help="for programs")


# ---- what the kernel says about this process ----------------------------------------------------------------------


def status_field(name: str) -> str:
    match = re.search(rf"^{name}:\s*(.*)$", machine.read("/proc/self/status"), re.MULTILINE)
    return match[1] if match else ""


def yama_scope() -> int:
    """kernel.yama.ptrace_scope, 0 without Yama."""
    text = machine.read("/proc/sys/kernel/yama/ptrace_scope")
    return int(text) if text.isdigit() else 0


def filtered() -> bool:
    return status_field("Seccomp") == "2"


def in_namespace(kind: str, first: int) -> bool:
    try:
        return (Path("/proc/self/ns") / kind).stat().st_ino != first
    except OSError:
        return False


def container() -> str:
    """The container's kind, "" outside of any."""
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    for name in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        if name in os.environ:
            return name.partition("_")[0].lower()
    match = re.search(rb"(?:^|\0)container=([^\0]+)", _bytes("/proc/1/environ"))
    if match:
        return match[1].decode(errors="replace")
    found = re.search(r"docker|kubepods|libpod|lxc|containerd", machine.read("/proc/1/cgroup"))
    return found[0] if found else ""


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


# ---- mechanisms ---------------------------------------------------------------------------------------------------

SECCOMP_FIX = (
    "allow process_vm_readv and process_vm_writev in the seccomp profile (docker, podman: --cap-add=SYS_PTRACE, or a "
    "profile of your own)"
)


YAMA = "Yama: kernel.yama.ptrace_scope"


def explain_cma(results: list[dict[str, Any]]) -> Mechanism:
    """The reason out of what the probe met and what the host says."""
    result = next((r for r in results if "step" in r or "signal" in r), next((r for r in results if r), {}))
    if not result:
        return Mechanism("cma", True)
    error, step = result.get("errno", 0), result.get("step", "")
    if result.get("signal") == "SIGSYS" or (step == "own" and filtered()):
        return Mechanism("cma", False, "a seccomp filter refuses process_vm_readv", SECCOMP_FIX)
    if step == "own":
        what = "has no process_vm_readv" if error == errno.ENOSYS else f"refuses process_vm_readv: {result['what']}"
        return Mechanism("cma", False, f"the kernel {what}", "use a kernel with CONFIG_CROSS_MEMORY_ATTACH=y")
    if error in (errno.EPERM, errno.EACCES):
        return _explain_refusal(result, step)
    if error == errno.ENOSYS:  # reading works, writing does not: only a filter tells them apart
        return Mechanism("cma", False, "a seccomp filter refuses process_vm_writev", SECCOMP_FIX)
    if error == errno.ESRCH:
        return Mechanism(
            "cma", False, "the ranks are in different PID namespaces", "start all ranks of a node in one container"
        )
    return Mechanism("cma", False, f"the probe failed: {result.get('what', 'no reason')} ({step})")


def _explain_refusal(result: Mapping[str, Any], step: str) -> Mechanism:
    scope = yama_scope()
    if scope == 1:
        return Mechanism(
            "cma",
            False,
            f"{YAMA} is 1, only a parent may reach its child (an MPI may have its ranks open "
            "themselves to others: Open MPI's do)",
            "as root on the host: sysctl -w kernel.yama.ptrace_scope=0",
        )
    if scope > 1:
        return Mechanism(
            "cma",
            False,
            f"{YAMA} is {scope}",
            "as root on the host: sysctl -w kernel.yama.ptrace_scope=0"
            if scope == 2
            else "set kernel.yama.ptrace_scope=0 at boot: 3 cannot be undone",
        )
    if not result.get("dumpable", True):
        return Mechanism(
            "cma", False, "the processes are not dumpable", "the program's file must be readable by its user: chmod +r"
        )
    if step == "write" and filtered():
        return Mechanism("cma", False, "a seccomp filter refuses process_vm_writev", SECCOMP_FIX)
    return Mechanism(
        "cma",
        False,
        f"ptrace access is refused ({result['what']}): a security module, or ranks in different user namespaces",
        "start all ranks of a node in one container, as one user",
    )


def shared_failure(results: list[dict[str, Any]]) -> tuple[str, str]:
    """("", "") or why memory cannot be shared, and the fix."""
    # The one that failed, before the one that only noticed.
    result = next((r for r in results if "step" in r or "signal" in r), next((r for r in results if r), {}))
    if not result:
        return "", ""
    step, what = result.get("step", "the probe"), result.get("what", "no reason")
    error = result.get("errno", 0)
    if result.get("signal") == "SIGSYS" or (error in (errno.EPERM, errno.ENOSYS) and step == "memfd_create"):
        return (
            f"memfd_create is refused ({what})",
            "allow it in the seccomp profile" if filtered() else "use Linux 3.17 or newer",
        )
    if result.get("signal") == "SIGXFSZ" or error == errno.EFBIG:
        return "files may not grow (RLIMIT_FSIZE)", "ulimit -f unlimited"
    return f"{step} fails: {what}", ""


def heap_limits() -> tuple[str, str]:
    """("", "") or which limit leaves no room for the arena, and the fix: the rules of lib/heap/arena.c."""
    if machine.read("/proc/sys/vm/overcommit_memory") == "2":
        return (
            "vm.overcommit_memory is 2: shared memory would end in SIGBUS where malloc returns NULL",
            "as root on the host: sysctl -w vm.overcommit_memory=0",
        )
    if is_too_small(resource.RLIMIT_AS):
        space, _ = resource.getrlimit(resource.RLIMIT_AS)
        return f"the address space is limited to {size(space)} (RLIMIT_AS)", "ulimit -v unlimited"
    if is_too_small(resource.RLIMIT_FSIZE):
        file, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        return f"files may not grow past {size(file)} (RLIMIT_FSIZE)", "ulimit -f unlimited"
    return "", ""


def is_too_small(number: int) -> bool:
    """Whether a limit leaves no room for the arena."""
    soft, _ = resource.getrlimit(number)
    least = ARENA_MIN * (ADDRESS_SPACE_SHARE if number == resource.RLIMIT_AS else 1)
    return soft != resource.RLIM_INFINITY and soft < least


def explain_map(kernel: module.Module) -> Mechanism:
    if kernel.why or kernel.maps:
        return Mechanism("map", not kernel.why, kernel.why, kernel.fix)
    return Mechanism(
        "map",
        False,
        "the module maps no memory on this kernel",
        "nothing to do: kcopy serves instead; kernels that check page tables (page_table_check=on) forbid it",
    )


def probe() -> list[Mechanism]:
    shared = shared_failure(list(pair.run(probes.shared_memory)))
    heap = heap_limits()
    allocator = pair.run(probes.mimalloc)[0]
    if not any(heap) and "version" not in allocator:
        heap = (allocator["what"], "install it (Debian 12: apt install libmimalloc2.0)")
    if not any(heap):
        heap = shared
    kernel = module.examine(container())
    return [
        Mechanism("heap", not any(heap), *heap),
        explain_map(kernel),
        Mechanism("kcopy", not kernel.why, kernel.why, kernel.fix),
        explain_cma(list(pair.run(probes.cma))),
        Mechanism("staged", not any(shared), *shared),
    ]


def confirm(found: list[Mechanism], path: Path) -> list[Mechanism]:
    """The library's own word on each mechanism. Where it refuses what our probe could do, its reason stands; where
    both refuse, ours does, for it comes with a fix."""
    answers = pair.run(partial(probes.library, path=path))
    refusals: dict[str, str] = {}
    for answer in answers:
        if "why" not in answer:
            reason = f"the library fails: {answer.get('step', '')} {answer.get('what', '')}".strip()
            return [m if not m.usable else Mechanism(m.name, False, reason) for m in found]
        refusals |= {name: why for name, why in answer["why"].items() if why}
        if answer["heap_why"]:
            refusals["heap"] = answer["heap_why"]
    return [
        m
        if not m.usable or m.name not in refusals
        else Mechanism(m.name, False, refusals[m.name], fix_of(refusals[m.name]))
        for m in found
    ]


def fix_of(why: str) -> str:
    """For the library's refusals that are somebody's wish."""
    return "unset ONECOPY_MECH" if "ONECOPY_MECH" in why else ""


# ---- the rest of the host -----------------------------------------------------------------------------------------


def find_mpi() -> dict[str, str]:
    """{"launcher", "version", "preload", "why", "fix"}, what there is of it."""
    launcher = shutil.which("mpirun") or shutil.which("mpiexec")
    if launcher is None:
        return {"why": "no mpirun in PATH", "fix": "install an MPI (Debian: apt install openmpi-bin libopenmpi-dev)"}
    version = machine.first_line(launcher, "--version")
    if version.startswith("HYDRA"):  # the number is in another line
        version = peers.Mpi("mpi", Path(launcher), None).version()
    found = {"launcher": launcher, "version": version}
    abi = mpi.abi_of_launcher(Path(launcher))
    if abi is None:
        return {**found, "why": f"{launcher} does not tell which MPI it belongs to"}
    library, why = run.usable_library(abi)
    return {**found, "preload": str(library)} if library else {**found, "why": why}


def explain_messages(found: Sequence[Mechanism], host_mpi: Mapping[str, str]) -> str:
    """Which way large point-to-point messages of the MPI in PATH take, and why; "" if it cannot be told."""
    usable = {m.name: m for m in found}
    heap = usable["heap"].usable and "preload" in host_mpi
    # With 1 ranks may open themselves to others, and Open MPI's do.
    cma = usable["cma"].usable or usable["cma"].why.startswith(f"{YAMA} is 1")
    if run.switched_off("ONECOPY_MESSAGES"):
        heap = False
    version = re.search(r"(Open MPI\)|MPICH) (\d+)", host_mpi.get("version", ""))
    if not version:
        return ""
    mpich, old = version[1] == "MPICH", int(version[2]) < 5
    twice = "copied twice by the MPI, through its shared segment"
    if cma:
        kernel = "copied by the kernel (process_vm_readv)"
        return f"between heap blocks copied by a pointer, else {kernel}" if heap else kernel
    if mpich and not old:  # without onecopy, too
        ends = f"MPICH ends the program, for {usable['cma'].why}, unless MPIR_CVAR_CH4_CMA_ENABLE is 0"
        return f"between heap blocks copied by a pointer; at others {ends}" if heap else ends
    if heap and old and not mpich:
        return f"between heap blocks copied by a pointer, else {twice}, after an error that it prints"
    return f"{twice}: {usable['cma'].why}" + (", so it does not ask for single copies" if heap else "")


def wishes() -> dict[str, str]:
    """The variables of lib/base/env.c that are set."""
    names = (
        "ONECOPY",
        "ONECOPY_HEAP",
        "ONECOPY_STATIC",
        "ONECOPY_MESSAGES",
        "ONECOPY_THP",
        "ONECOPY_MECH",
        "ONECOPY_MIN",
    )
    return {name: os.environ[name] for name in names if name in os.environ}


def namespace_facts() -> list[Fact]:
    facts = []
    if kind := container():
        facts.append(Fact("container", kind, "fine while all ranks of a node share it"))
    for name, kind, first in (("PID", "pid", FIRST_PID_NAMESPACE), ("user", "user", FIRST_USER_NAMESPACE)):
        if in_namespace(kind, first):
            facts.append(Fact(f"{name} namespace", "not the host's", "fine while all ranks of a node share it"))
    try:
        seen = int(Path("/proc/self").readlink().name)
    except (OSError, ValueError):
        seen = 0
    if seen != os.getpid():
        facts.append(Fact("/proc", "of another PID namespace", "bad: mount it anew (unshare --mount-proc)"))
    return facts


def limit_fact(name: str, number: int) -> Fact:
    """A limit that can leave no room for the heap."""
    soft, _ = resource.getrlimit(number)
    if soft == resource.RLIM_INFINITY:
        return Fact(name, "unlimited", "good")
    return Fact(name, size(soft), "too small for the shared heap" if is_too_small(number) else "enough")


def shm_fact() -> Fact:
    note = "onecopy does not use it; your MPI may"
    try:
        shm = os.statvfs("/dev/shm")
    except OSError:
        return Fact("/dev/shm", "none", note)
    total = shm.f_blocks * shm.f_frsize
    return Fact("/dev/shm", size(total), note + (", and stop for want of room" if total < SHM_SMALL else ""))


def module_facts() -> list[Fact]:
    kernel = module.examine(container())
    pinned = (
        "what map and kcopy may pin (ulimit -l)" if not kernel.why else "good: nothing is pinned without the module"
    )
    facts = [Fact("RLIMIT_MEMLOCK", module.memlock(), pinned)]
    if not kernel.why and not kernel.tracks:
        facts.append(Fact("MMU notifiers", "none", "the module cannot tell stale memory: it serves one call at a time"))
    return facts


def host_facts() -> list[Fact]:
    """What the verdicts above rest on, each with a judgement."""
    facts = [Fact("kernel", os.uname().release), *namespace_facts()]
    modes = {"0": ("none", "good"), "1": ("strict", "bad"), "2": ("filter", "fine, but for what is refused above")}
    facts.append(Fact("seccomp", *modes.get(status_field("Seccomp"), ("unknown", ""))))
    if Path("/proc/sys/kernel/yama").exists():
        scope = yama_scope()
        facts.append(Fact("Yama ptrace_scope", str(scope), "good" if scope == 0 else "only cma wants it to be 0"))
    pages = "/sys/kernel/mm/transparent_hugepage"
    facts.append(Fact("huge pages", machine.selected(f"{pages}/enabled"), "of private memory"))
    facts.append(Fact("huge pages, shared", machine.selected(f"{pages}/shmem_enabled"), "of other shared memory"))
    facts.append(Fact("huge pages, heap", *hugepages.judge()))
    facts += [limit_fact("RLIMIT_AS", resource.RLIMIT_AS), limit_fact("RLIMIT_FSIZE", resource.RLIMIT_FSIZE)]
    facts += [shm_fact(), *module_facts()]
    facts += [
        Fact(name, value, "set in the environment: a wish, unset it if it is not yours")
        for name, value in wishes().items()
    ]
    usable = machine.usable_cpus()
    facts.append(Fact("processors", f"{usable} usable", "good" if usable > 1 else "ranks that share one gain less"))
    return facts


def judge(found: Sequence[Mechanism], arena: Mechanism, host_mpi: Mapping[str, str]) -> tuple[bool, str]:
    """Whether MPI programs are helped here, and the verdict. `arena` is the heap before anybody's wishes: the other
    mechanisms need its memory too, for what they stage."""
    best = next((m.name for m in found if m.usable), None)
    if best is None:
        return False, "onecopy cannot speed anything up here: no mechanism is usable"
    why = host_mpi.get("why", "no preload library") if "preload" not in host_mpi else ""
    if not arena.usable:
        why = f"no mechanism does without the shared heap's memory, and {arena.why}"
    if why:
        return False, f"{best} is usable, but MPI programs are not helped: {why}"
    return True, f"onecopy helps MPI programs here, by {best}"


def judge_program(helps: bool, verdict: str, facts: Mapping[str, Any]) -> tuple[bool, str]:
    """The host's verdict, and the program's when it is that which decides."""
    name = Path(facts["path"]).name
    if "why" in facts:
        return False, f"onecopy cannot help {name}: {facts['why']}"
    if not helps:
        return False, f"{name} could be helped, but {verdict}"
    launcher = facts.get("launcher", "mpirun")
    start = shlex.join([facts["path"], *facts.get("arguments", ())])
    if not mpi.sends_by_itself(Path(facts["path"])):
        start = f"{shlex.quote(launcher)} -n N {start}"
    if not launcher:
        return True, f"{verdict}; start it under `onecopy run`, by the launcher of its own MPI, which is not in PATH"
    return True, f"{verdict}; start it by: onecopy run {start}"


def examine(program: str | None = None, arguments: Sequence[str] = ()) -> dict[str, Any]:
    found = probe()
    arena = found[0]
    library = install.find_library()
    if library:
        found = confirm(found, library)
    host_mpi = find_mpi()
    helps, verdict = judge(found, arena, host_mpi)
    about: dict[str, Any] = {}
    if program is not None:
        about = {"program": target.examine(program, arguments)}
        helps, verdict = judge_program(helps, verdict, about["program"])
    return {
        "version": __version__,
        "helps": helps,
        "verdict": verdict,
        "library": str(library) if library else "",
        "mechanisms": [{"what": WHAT[m.name], **asdict(m)} for m in found],
        "mpi": {**host_mpi, "messages": explain_messages(found, host_mpi)},
        "host": [asdict(fact) for fact in host_facts()],
        **about,
    }


def main(args: argparse.Namespace) -> int:
    found = examine(args.program, args.arguments)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        for line in report.lines(found, report.coloured()):
            print(line)
    return 0 if found["helps"] else 1
