# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy run`: the command runs as it would without us, and is told from our own options."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job import output_of
from onecopy import elf, libc, run

Command = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("words", "options", "command"),
    [
        (["mpirun", "-n", "4"], [], ["mpirun", "-n", "4"]),
        (["--stats", "mpirun", "--stats"], ["--stats"], ["mpirun", "--stats"]),
        (["--stats=table", "--mech", "heap", "a"], ["--stats=table", "--mech", "heap"], ["a"]),
        (["--min", "64K", "--", "-odd", "x"], ["--min", "64K"], ["-odd", "x"]),
        (["--verbose", "a", "--", "b"], ["--verbose"], ["a", "--", "b"]),
        (["--stats"], ["--stats"], []),
        ([], [], []),
    ],
)
def test_split(words: list[str], options: list[str], command: list[str]) -> None:
    assert run.split(words) == (options, command)


@given(st.lists(st.text()))
def test_everything_after_two_dashes_is_the_command(words: list[str]) -> None:
    assert run.split(["--verbose", "--", *words]) == (["--verbose"], words)


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("4096", 4096), ("64K", 65536), ("1MiB", 1 << 20), ("2g", 2 << 30)]
)
def test_sizes(text: str, count: int) -> None:
    assert run.byte_count(text) == count


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mech", "heap,foo", "true"], "no mechanism 'foo'"),
        (["--mech", ",", "true"], "at least one"),
        (["--min", "many", "true"], "is no size"),
        (["--stats=graph", "true"], "invalid choice"),
        (["--unknown", "true"], "unrecognized"),
        ([], "run what?"),
    ],
)
def test_bad_options(onecopy: Command, words: list[str], said: str) -> None:
    done = onecopy("run", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_command_not_found(onecopy: Command, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    assert onecopy("run", "no-such-command").returncode == 127
    done = onecopy("run", "./text")
    assert done.returncode == 126
    assert "not an executable file" in done.stderr


@pytest.mark.parametrize("options", [[], ["--stats"]])
def test_status_and_signals_pass_through(onecopy: Command, options: list[str]) -> None:
    assert onecopy("run", *options, "sh", "-c", "exit 7").returncode == 7
    assert onecopy("run", *options, "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


@pytest.mark.parametrize("options", [[], ["--stats"]])
def test_ignored_signals_of_python_do_not_leak(onecopy: Command, options: list[str]) -> None:
    done = onecopy("run", *options, "sh", "-c", "kill -PIPE $$; exit 0")
    assert done.returncode == -signal.SIGPIPE


@pytest.mark.parametrize("options", [[], ["--stats"]])
def test_children_that_the_caller_ignores(
    environment: dict[str, str], tmp_path: Path, fake_mpi: Path, options: list[str]
) -> None:
    """We wait for ours all the same, and the command has it as it would have it without us."""
    before = ["env", "--ignore-signal=CHLD", sys.executable, "-m", "onecopy", "run", *options]
    look = "import signal, sys; sys.exit(9 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 1)"
    env = {**environment, "PATH": f"{fake_mpi}:{os.environ['PATH']}"}
    done = output_of([*before, sys.executable, "-c", look], 60, env=env, cwd=tmp_path)
    assert done.returncode == 9
    (tmp_path / "text").write_text("#!/nowhere/sh\n")
    (tmp_path / "text").chmod(0o755)
    assert output_of([*before, "./text"], 60, env=env, cwd=tmp_path).returncode == 126


def counter(directory: Path, number: signal.Signals) -> Path:
    """A program that says when it is ready and ends with 40 and how often it got a signal."""
    program = directory / "count.py"
    program.write_text(
        "import signal, sys, time\n"
        "seen = []\n"
        f"signal.signal({number.value}, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\n"
        "until = time.monotonic() + 300\n"
        "while not seen and time.monotonic() < until: time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        "sys.exit(40 + len(seen))\n"
    )
    return program


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_sent_to_us_reaches_the_command_once(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    program = counter(tmp_path, number)
    process = subprocess.Popen(
        [sys.executable, "-m", "onecopy", "run", "--stats", sys.executable, str(program)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.wait(timeout=300) == 41
    process.stdout.close()


@pytest.mark.parametrize("before", [[], ["setsid"]], ids=["in our group", "in another"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_sent_to_our_group_reaches_the_command_once(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals, before: list[str]
) -> None:
    """As `timeout` and batch systems send it."""
    program = counter(tmp_path, number)
    process = subprocess.Popen(
        [sys.executable, "-m", "onecopy", "run", "--stats", *before, sys.executable, str(program)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, number)
    assert process.wait(timeout=300) == 41
    process.stdout.close()


def test_nothing_of_ours_is_left_when_we_are_killed(environment: dict[str, str]) -> None:
    """What watches for signals ends, and keeps no output open."""
    process = subprocess.Popen(
        [sys.executable, "-m", "onecopy", "run", "--stats", "sh", "-c", "echo ready; exec sleep 300 >&- 2>&-"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    assert process.stdout.read() == b""
    process.wait()
    process.stdout.close()
    os.killpg(process.pid, signal.SIGKILL)


def test_terminal_signals_are_not_sent_twice(environment: dict[str, str], tmp_path: Path) -> None:
    """^C reaches the whole process group from the terminal; mpirun takes a second one for "at once"."""
    program = counter(tmp_path, signal.SIGINT)
    pid, terminal = os.forkpty()
    if pid == 0:
        os.execve(
            sys.executable,
            [sys.executable, "-m", "onecopy", "run", "--stats", sys.executable, str(program)],
            environment,
        )
    output = b""
    until = time.monotonic() + 300
    while b"ready" not in output and time.monotonic() < until:
        output += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 41


def test_environment_is_the_users(tmp_path: Path, fake_mpi: Path, stub_libs: Path) -> None:
    """Nothing but our variables is added: not our PYTHONPATH, not the LC_CTYPE of Python's locale coercion."""
    env = {
        "PATH": f"{fake_mpi}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "ONECOPY_LIBDIR": str(stub_libs),
        "PYTHONPATH": "/nowhere/else",
    }
    done = subprocess.run(
        [ROOT / "onecopy", "run", "--mech", "heap cma", "--min", "8K", "--no-heap", "--verbose", "env"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    for shell_made in ("PWD", "OLDPWD", "SHLVL", "_"):
        seen.pop(shell_made, None)
    assert seen == {
        **env,
        "LD_PRELOAD": str(stub_libs / "libonecopy-openmpi4.so"),
        "ONECOPY_MECH": "heap,cma",
        "ONECOPY_MIN": "8192",
        "ONECOPY_HEAP": "off",
        "ONECOPY_VERBOSE": "1",
    }


def test_what_the_c_library_is_told(onecopy: Command, fake_mpi: Path, stub_libs: Path) -> None:
    """With the shared heap, and --verbose says so."""
    env = {"PATH": f"{fake_mpi}:{os.environ['PATH']}", "ONECOPY_LIBDIR": str(stub_libs)}
    expected = libc.settings({}).get(libc.VARIABLE)
    for options, told in (([], expected), (["--no-heap"], None)):
        done = onecopy("run", "--verbose", *options, "env", env=env)
        seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        assert seen.get(libc.VARIABLE) == told
        assert ("glibc bug 30994" in done.stderr) == (told is not None)


def test_wrapper_through_links_and_from_anywhere(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "one").symlink_to(os.path.relpath(ROOT / "onecopy", tmp_path / "bin"))
    (tmp_path / "two").symlink_to("bin/one")
    env = {k: v for k, v in environment.items() if k != "PYTHONPATH"}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    done = subprocess.run([tmp_path / "two", "--version"], env=env, cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout.startswith("onecopy ")


@pytest.mark.parametrize(
    ("bits", "machine", "said"),
    [
        (64, 62, ""),
        (32, 3, "/program is a 32-bit program, /library is for 64-bit ones"),
        (32, 62, "/program is a 32-bit program, /library is for 64-bit ones"),
        (64, 183, "/program is for another kind of processor than /library"),
    ],
)
def test_a_program_that_the_library_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, bits: int, machine: int, said: str
) -> None:
    files = {"/library": (64, 62), "/program": (bits, machine)}
    monkeypatch.setattr(elf, "read", lambda path: elf.Elf(*files[str(path)], "/loader", (), True))
    assert run.mismatch(Path("/library"), Path("/program")) == said


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        ("", "/x/libonecopy-openmpi4.so"),
        ("/a.so", "/x/libonecopy-openmpi4.so:/a.so"),
        ("/a.so /b.so", "/x/libonecopy-openmpi4.so:/a.so:/b.so"),
        ("/usr/lib/libasan.so.8:/a.so", "/usr/lib/libasan.so.8:/x/libonecopy-openmpi4.so:/a.so"),
        ("/old/libonecopy-openmpi4.so", "/x/libonecopy-openmpi4.so"),
    ],
)
def test_existing_preload_is_kept(existing: str, expected: str) -> None:
    assert run.joined_preload(Path("/x/libonecopy-openmpi4.so"), existing) == expected


def test_sanitizer_of_the_program_is_first(
    onecopy: Command, fake_mpi: Path, stub_libs: Path, tmp_path: Path, compile_c: Callable[..., Path]
) -> None:
    """It ends programs where it is not; and launchers where it is, for what they do not free."""
    libmpi = fake_mpi / "libmpi.so.40"
    source = "int MPI_Init(void); int main(void) { return MPI_Init(); }"
    program = compile_c("program", source, "-fsanitize=address", libmpi, f"-Wl,-rpath,{fake_mpi}")
    launcher = tmp_path / "bin" / "mpirun"
    launcher.parent.mkdir()
    launcher.write_text(
        '#!/bin/sh\necho "$LD_PRELOAD"\nlist="${OMPI_MCA_mca_base_env_list#LD_PRELOAD=}"\n'
        'export LD_PRELOAD="${list%%;*}"\nexec "$@"\n'
    )
    launcher.chmod(0o755)
    env = {"ONECOPY_LIBDIR": str(stub_libs), "PATH": f"{launcher.parent}:{os.environ['PATH']}"}
    done = onecopy("run", program, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    done = onecopy("run", "mpirun", program, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{stub_libs}/libonecopy-openmpi4.so\n"


def test_where_ranks_on_other_nodes_can_be_told_nothing(onecopy: Command, stub_libs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("-x A=1 -host a,b true\n")
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" && exit\n'
        'echo "$LD_PRELOAD $OMPI_MCA_mca_base_env_list$*"\n'
    )
    mpirun.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ONECOPY_LIBDIR": str(stub_libs)}
    done = onecopy("run", "mpirun", "--app", "file", env=env)
    assert done.stdout == f"{stub_libs}/libonecopy-openmpi4.so --app file\n"
    assert done.stderr == (
        "onecopy: ranks on other nodes run without onecopy: the ranks' variables are named for file (--app)\n"
    )


def test_without_a_library_the_program_runs_untouched(onecopy: Command, fake_mpi: Path, tmp_path: Path) -> None:
    env = {"PATH": f"{fake_mpi}:{os.environ['PATH']}", "ONECOPY_LIBDIR": str(tmp_path), "ONECOPY_BUILD": str(tmp_path)}
    done = onecopy("run", "--stats", "sh", "-c", 'echo "[$LD_PRELOAD]"; exit 3', env=env)
    assert (done.returncode, done.stdout) == (3, "[]\n")
    assert "libonecopy-openmpi4.so is missing" in done.stderr
    assert "ONECOPY_LIBDIR" in done.stderr


def test_two_places_for_statistics(onecopy: Command, fake_mpi: Path, tmp_path: Path) -> None:
    env = {"PATH": f"{fake_mpi}:{os.environ['PATH']}", "ONECOPY_STATS": str(tmp_path / "file")}
    assert "ONECOPY_STATS is not heeded" in onecopy("run", "--stats", "true", env=env).stderr
    assert "ONECOPY_STATS" not in onecopy("run", "true", env=env).stderr


@pytest.mark.parametrize("options", [[], ["--stats"], ["--stats=json"], ["--stats=table", "--verbose"]])
@pytest.mark.parametrize("mpi", [False, True])
def test_notes_that_go_nowhere(
    onecopy: Command, tmp_path: Path, fake_mpi: Path, stub_libs: Path, options: list[str], mpi: bool
) -> None:
    """The command runs, and its status is ours."""
    env = {"ONECOPY_LIBDIR": str(stub_libs if mpi else tmp_path), "STUB_REPORTS": "2"}
    env.update(PATH=f"{fake_mpi}:{os.environ['PATH']}", ONECOPY_BUILD=str(tmp_path))
    for number, redirected in enumerate(('exec "$@" 2>/dev/full', '{ "$@"; echo $? >status; } 2>&1 >&3 | true')):
        file = tmp_path / f"file{number}"
        command = ["sh", "-c", f"exec 2>&-; sleep 0.1; touch {file}; exit 5"]
        done = onecopy("run", *options, *command, before=("sh", "-c", f"exec 3>&1; {redirected}", "sh"), env=env)
        assert done.returncode == (5, 0)[number]
        assert file.exists()
    assert (tmp_path / "status").read_text() == "5\n"


@pytest.mark.parametrize("where", ["mpi.detect", "run.with_sanitizers", "run.report"])
def test_an_error_of_ours_does_not_keep_the_command_from_running(
    environment: dict[str, str], tmp_path: Path, fake_mpi: Path, where: str
) -> None:
    text = (
        "import sys\nfrom onecopy import __main__, mpi, run\n"
        f"def broken(*_):\n    raise KeyError('two\\nlines')\n{where} = broken\n"
        "sys.exit(__main__.guarded())\n"
    )
    command = ["run", "--stats", "sh", "-c", 'echo "[$LD_PRELOAD]"; exit 3']
    env = {**environment, "PATH": f"{fake_mpi}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", text, *command], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert (done.stdout == "[]\n") == (where != "run.report")
    said = done.stderr.splitlines()[0]
    assert said.startswith("onecopy: no statistics" if where == "run.report" else "onecopy: cannot help, running")
    assert "KeyError: " in said
    assert "Traceback" not in done.stderr


def test_text_without_interpreter_line_runs_in_a_shell(onecopy: Command, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("exit 9\n")
    script.chmod(0o755)
    assert onecopy("run", "./script").returncode == 9


def test_start_is_not_held_up(onecopy: Command, tmp_path: Path, fake_mpi: Path, compile_c: Callable[..., Path]) -> None:
    """A launcher's start waits for no other program, nor for what only other commands import."""
    launcher = compile_c("bin/mpirun", "int main(void) { return 5; }")
    program = compile_c(
        "program", "int MPI_Init(void); int main(void) { return MPI_Init(); }", fake_mpi / "libmpi.so.40"
    )
    ldd = launcher.parent / "ldd"
    ldd.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    ldd.chmod(0o755)
    path = f"{launcher.parent}:{os.environ['PATH']}"
    done = onecopy("run", "mpirun", "-n", "2", program, env={"PATH": path, "PYTHONPROFILEIMPORTTIME": "1"})
    assert done.returncode == 5
    assert not (tmp_path / "started").exists()
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "onecopy.elf" in imported
    by_argparse = {"inspect"} if sys.version_info >= (3, 14) else set()
    assert not imported & {"inspect", "subprocess", "tempfile", "rich", "matplotlib"} - by_argparse
