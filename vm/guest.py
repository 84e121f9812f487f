# SPDX-License-Identifier: BSD-3-Clause
"""Boots a guest over the host's files, runs a command in it with the module loaded, and judges.

The guest writes what came of it into the job's directory (see vm/init); the verdict is made here, from those files and
from the kernel's log, after the guest is gone. A guest that did not reach its end is lost, whatever it printed.
"""

from __future__ import annotations

import ctypes
import lzma
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import races
from built import Uml

from kernel import HERE, Kernel, KernelError, UnavailableError

LOST = 125  # exit status: no verdict from the guest
BAD = 124  # exit status: the command was content, the kernel was not

# What a healthy kernel does not print. Traces alone are no complaint: injected faults print them, too.
COMPLAINTS = re.compile(
    r"""\b(?: BUG: | WARNING: | KASAN: | KCSAN: | UBSAN: | Oops | Kernel\ panic | general\ protection\ fault
      | possible\ (?:circular|recursive)\ locking | inconsistent\ lock\ state | Invalid\ wait\ context
      | held\ lock\ freed | suspicious\ RCU\ usage | bad\ unlock\ balance | lock\ held\ when\ returning
      | sleeping\ function\ called | scheduling\ while\ atomic | blocked\ for\ more\ than | soft\ lockup
      | detected\ stalls? | self-detected\ stall | refcount_t: | ODEBUG: | Bad\ page\ (?:state|map) | Bad\ rss-counter
      | list_(?:add|del)\ corruption | kernel\ NULL\ pointer
      | unable\ to\ handle\ (?:kernel|page) )""",
    re.VERBOSE,
)
# Said of every module that is not part of the kernel's source, and of options by which a guest is slow.
HARMLESS = re.compile(r"taints kernel|module verification failed")

# A host may let a guest stand still for half a minute. What the guest's watchdogs are to take for stuck is so for two.
PATIENCE = ["watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=120"]

PR_SET_PDEATHSIG = 1

QEMU_PARALLEL = (8, 1)  # its translator holds a page from reading code to keeping what it made of that


@dataclass
class Job:
    """What a guest is for."""

    kernel: Kernel
    command: list[str] | None  # None: a shell for a person
    cpus: int = 2
    memory: str = "2G"
    timeout: float = 300
    load: bool = True  # the module, before the command
    parameters: list[str] = field(default_factory=list)  # of the module
    writable: list[Path] = field(default_factory=list)  # directories of the host
    append: list[str] = field(default_factory=list)  # to the kernel's command line
    qemu: list[str] = field(default_factory=list)  # to QEMU's


@dataclass
class Verdict:
    """How a guest ended. `status` is the command's own, or None when the guest was lost."""

    status: int | None
    problems: list[str]
    notes: list[str] = field(default_factory=list)  # nobody's fault here

    @property
    def exit_status(self) -> int:
        if self.status is None:
            return LOST
        return self.status or (BAD if self.problems else 0)


def run(job: Job) -> Verdict:
    """Prepares the kernel, builds the module, boots, and judges. Raises KernelError before the boot."""
    job.kernel.prepare()
    with tempfile.TemporaryDirectory(prefix="onecopy-vm-") as name:
        directory = Path(name)
        write_job(job, directory)
        problems = boot(job, directory)
        return judge(job, directory, problems)


def write_job(job: Job, directory: Path) -> None:
    built = job.kernel.build_modules(directory) if job.load else []
    loaded = [f"{path.name} {' '.join(job.parameters)}\n" for path in built if path.name == "onecopy.ko"]
    (directory / "modules").write_text("".join(loaded))
    (directory / "writable").write_text("".join(f"{path}\n" for path in job.writable))
    links = job.kernel.headers().items()
    (directory / "links").write_text("".join(f"{target} {link}\n" for link, target in links))
    environment = dict(os.environ)
    environment["PATH"] = f"{environment.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
    environment["ONECOPY_GUEST"] = job.kernel.name
    environment["ONECOPY_MODULES"] = name = str(directory)
    lines = [f"export {key}={shlex.quote(value)}" for key, value in environment.items() if key.isidentifier()]
    lines += [f"cd {shlex.quote(str(Path.cwd()))} || exit 1"]
    if job.command is None:
        greeting = f"echo 'a {job.kernel.name} guest; modules in {name}; exit or Ctrl-D ends it'"
        (directory / "shell").write_text("\n".join([*lines, greeting, f"exec {shell()} -i\n"]))
    else:
        (directory / "command").write_text("\n".join([*lines, f"exec {shlex.join(job.command)} </dev/null\n"]))
    is_uml = isinstance(job.kernel, Uml)
    (directory / "terminal").write_text("tty0" if is_uml else "ttyS0")
    if not is_uml:
        (directory / "share").touch()


def shell() -> str:
    return shlex.quote(shutil.which("bash") or "/bin/sh")


def memory_file_directory(memory: str) -> str | None:
    """Where User-Mode Linux may put its memory: a container's /dev/shm can be far too small, or forbid execution."""
    number, unit = int(re.sub(r"\D", "", memory)), memory[-1].upper()
    wanted = number * {"G": 1 << 30, "M": 1 << 20, "K": 1 << 10}.get(unit, 1)
    try:
        shm = os.statvfs("/dev/shm")
    except OSError:
        return "/tmp"
    if shm.f_bavail * shm.f_frsize < wanted or shm.f_flag & os.ST_NOEXEC:
        return "/tmp"
    return None


def uml_command(job: Job, kernel: Uml, directory: Path, log_fd: int) -> list[str]:
    # The first terminal is the command's, the serial line the kernel's log.
    return [
        str(kernel.image),
        f"mem={job.memory}",
        f"ncpus={job.cpus}",
        "seccomp=on",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={HERE / 'init'}",
        f"uml_dir={directory}",
        "con=null",
        "con0=fd:0,fd:1",
        "ssl=null",
        f"ssl0=null,fd:{log_fd}",
        "console=ttyS0",
        *PATIENCE,
        f"ONECOPY_JOB={directory}",
        *job.append,
    ]


def initrd(kernel: Kernel, directory: Path) -> Path:
    """An initial file system of stage1 and the modules that reach the host's files."""
    stage1 = directory / "stage1"
    compiled = ["cc", "-O2", "-static", "-o", str(stage1), str(HERE / "stage1.c")]
    done = subprocess.run(compiled, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelError(f"stage1 does not compile: {done.stderr.strip()}")
    files = [("init", stage1.read_bytes(), 0o755)]
    for number, path in enumerate(kernel.early_modules()):
        data = path.read_bytes()
        files.append((f"{number}.ko", lzma.decompress(data) if path.suffix == ".xz" else data, 0o644))
    archive = directory / "initrd"
    with archive.open("wb") as out:
        members = [("dev", b"", 0o40755, 0), ("dev/console", b"", 0o20600, os.makedev(5, 1))]
        members += [(name, data, 0o100000 | mode, 0) for name, data, mode in files]
        for number, (name, data, mode, device) in enumerate([*members, ("TRAILER!!!", b"", 0, 0)], 1):
            # The "new ASCII" format of cpio, as the kernel's initramfs buffer format document has it.
            values = [number, mode, 0, 0, 1, 0, len(data), 0, 0, os.major(device), os.minor(device), len(name) + 1, 0]
            head = b"070701" + "".join(f"{value:08X}" for value in values).encode() + name.encode() + b"\0"
            out.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))
    return archive


def in_parallel(job: Job) -> bool:
    """Whether QEMU emulates CPUs in threads of their own.

    Before 8.1 one of them may go on with code that another has rewritten, as Linux does (static keys, tracepoints):
    now and then a guest panicked at boot or stood still. One thread takes little longer for our tests.
    """
    if "-icount" in job.qemu:  # counted instructions are one CPU's
        return False
    said = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"version (\d+)\.(\d+)", said)
    return job.kernel.races or (version is not None and (int(version[1]), int(version[2])) >= QEMU_PARALLEL)


def qemu_command(job: Job, kernel: Kernel, directory: Path) -> list[str]:
    if not shutil.which("qemu-system-x86_64"):
        raise UnavailableError("qemu-system-x86_64 is missing: packaging/install-deps emulation")
    line = [
        "console=ttyS1",
        "panic=-1",
        # A host that is late is no reason to do without, which rewrites code that runs.
        "tsc=reliable",
        # Nor to take the timer for broken.
        "no_timer_check",
        *PATIENCE,
        f"ONECOPY_JOB={directory}",
        f"ONECOPY_INIT={HERE / 'init'}",
        *job.append,
    ]
    shares: list[str] = []
    for number, path in enumerate([directory, *job.writable]):
        shares += ["-virtfs", f"local,path={path},mount_tag=job{number},security_model=none,multidevs=remap"]
    return [
        "qemu-system-x86_64",
        # The other machine's ACPI tables compute in a loop which interrupt a device has: half a minute under KASAN, at
        # which the kernel gives up, and the device has none.
        *["-machine", "q35"],
        *["-accel", f"tcg,thread={'multi' if in_parallel(job) else 'single'}"],
        # "rep movsb" is slow under emulation. Page tables of five levels KASAN takes for four in an interrupt that
        # comes while the kernel looks at its first CPU, and calls memory wild. QEMU 7.2 at times takes an
        # address for the flags after "cmpxchg16b", and the kernel complains of a debugger's step.
        *["-cpu", "max,-erms,-fsrm,-la57,-cx16"],
        *["-smp", str(job.cpus), "-m", job.memory],
        *["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
        *["-chardev", "stdio,id=terminal,signal=off", "-serial", "chardev:terminal"],
        *["-serial", f"file:{directory / 'console.log'}"],
        *["-device", "virtio-rng-pci"],
        *["-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"],
        *shares,
        *["-kernel", str(kernel.image), "-initrd", str(initrd(kernel, directory)), "-append", " ".join(line)],
        *job.qemu,
    ]


def boot(job: Job, directory: Path) -> list[str]:
    """Runs the guest until it is gone. Returns what the runner itself has to say of it."""
    environment = dict(os.environ)
    fds: list[int] = []
    log = os.open(directory / "console.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        if isinstance(job.kernel, Uml):
            fds.append(log)
            argv = uml_command(job, job.kernel, directory, log)
            if place := memory_file_directory(job.memory):
                environment["TMPDIR"] = place
        else:
            argv = qemu_command(job, job.kernel, directory)
        return wait(job, argv, environment, fds)
    finally:
        os.close(log)


def ends_with_caller(number: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """For a child to call before it executes: the signal comes when the calling thread is gone, however that ended."""
    caller = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        if prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
        if os.getppid() != caller:
            os._exit(1)  # gone before we asked

    return ask


def wait(job: Job, argv: list[str], environment: dict[str, str], fds: list[int]) -> list[str]:
    """The guest takes the terminal for a person's shell; else it reads nothing and is a process group of its own.

    It does not outlive us. Its processes end with the one that is started here: QEMU has no other, and those in which
    User-Mode Linux runs programs ask for that as we do.
    """
    interactive = job.command is None
    saved = termios.tcgetattr(0) if interactive and os.isatty(0) else None
    guest = subprocess.Popen(
        argv,
        env=environment,
        pass_fds=fds,
        stdin=None if interactive else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if isinstance(job.kernel, Uml) else None,
        process_group=None if interactive else 0,
        preexec_fn=ends_with_caller(),
    )
    try:
        guest.wait(None if interactive else job.timeout)
    except subprocess.TimeoutExpired:
        return [f"did not end within {job.timeout:g} s"]
    finally:
        if guest.poll() is None:
            (guest.kill if interactive else lambda: os.killpg(guest.pid, signal.SIGKILL))()
            guest.wait()
        if saved:
            termios.tcsetattr(0, termios.TCSADRAIN, saved)
    return []


def leaked(found: str) -> str:
    """What kmemleak found, without the objects of the boot: vm/init clears those in time that are five seconds old."""
    objects = re.split(r"^(?=unreferenced object)", found, flags=re.MULTILINE)
    return "".join(o for o in objects if 'comm "swapper/0", pid 1,' not in o)


def judge(job: Job, directory: Path, problems: list[str]) -> Verdict:
    def text(name: str) -> str:
        path = directory / name
        return path.read_text(errors="replace").strip() if path.is_file() else ""

    log = re.sub(r"\r", "", text("console.log"))
    problems = [*problems]
    log, raced = races.split(log)
    ours = [race for race in raced if race.ours]
    others = [race for race in raced if not race.ours]
    if ours:
        reports = "\n".join({race.title: race.text for race in ours}.values())
        problems.append(f"data races of the module:\n{races.summary(ours)}\n{reports}")
    notes = [f"data races of the kernel's own, without the module:\n{races.summary(others)}"] if others else []
    found = [line for line in log.splitlines() if COMPLAINTS.search(line) and not HARMLESS.search(line)]
    if found:
        first = log.index(found[0])
        report = "\n".join(log[first:].splitlines()[:60])
        problems.append(f"the kernel complained, {len(found)} lines; from the first on:\n{report}")
    if text("insmod"):
        problems.append(f"the module does not load: {text('insmod')}")
    if text("rmmod"):
        problems.append(f"the module does not unload: {text('rmmod')}")
    if leaks := leaked(text("kmemleak")):
        problems.append(f"kmemleak:\n{leaks}")
    if job.load and (directory / "status").exists():
        counters = dict(line.split(maxsplit=1) for line in text("counters").splitlines() if " " in line)
        if not counters:
            problems.append("the module shows no counters")
        live = {name: value for name, value in counters.items() if name.startswith("live_") and value.strip() != "0"}
        if live:
            problems.append("left when nobody uses the module: " + ", ".join(f"{k} {v}" for k, v in live.items()))
    ended = (directory / "done").exists()
    if not ended:
        tail = "\n".join(log.splitlines()[-40:])
        problems.append(f"the guest was lost; its log ends so:\n{tail}")
    status = text("status")
    return Verdict(int(status) if ended and status.isdigit() else None, problems, notes)


def report(verdict: Verdict, name: str) -> None:
    """The last words about a guest."""
    for problem in [*verdict.notes, *verdict.problems]:
        print(f"vm: {name}: {problem}", file=sys.stderr)
    if verdict.status is None:
        print(f"vm: {name}: no verdict: failed", file=sys.stderr)
    elif verdict.problems:
        print(f"vm: {name}: command ended with {verdict.status}, the kernel is not well: failed", file=sys.stderr)


def check_directories(paths: list[Path]) -> list[Path]:
    """Absolute paths of directories, for which the caller may ask write access in the guest."""
    for path in paths:
        if not path.exists() or not stat.S_ISDIR(path.stat().st_mode):
            raise KernelError(f"{path} is no directory")
    return [path.resolve() for path in paths]
