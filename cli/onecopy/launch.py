# SPDX-License-Identifier: BSD-3-Clause
"""Launchers: how the variables that `onecopy run` sets reach ranks on other nodes.

On its own node a launcher hands its environment on. Elsewhere ranks start from what an agent such as ssh gives them,
which is bare, so each launcher is told by its own means:

* Open MPI 4 and 5: the MCA parameter mca_base_env_list or `-x`, whichever the user has (openmpi.py). On one node it is
  started just as it would be without: nothing is named where no hosts are.
* Hydra (MPICH, Intel MPI) hands its environment on unless told otherwise; `-genv` holds in any case.
* Slurm's srun does, too, unless `--export` or SLURM_EXPORT_ENV names what goes: then ours go with it.

A launcher that a script starts is not seen here: its ranks on other nodes run without onecopy.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from onecopy import openmpi

Command = list[str]
Environment = dict[str, str]
#: Of (command, place of the launcher in it, environment, names to carry): command and environment to start.
Carrier = Callable[[Sequence[str], int, Mapping[str, str], Sequence[str]], tuple[Command, Environment]]


def _hydra(
    command: Sequence[str], at: int, env: Mapping[str, str], names: Sequence[str]
) -> tuple[Command, Environment]:
    flags = [word for name in names for word in ("-genv", name, env[name])]
    return [*command[: at + 1], *flags, *command[at + 1 :]], dict(env)


def _exported(said: str, names: Sequence[str]) -> str:
    """A value of --export with our names. "NONE" means nothing but what is named."""
    listed = [] if said.upper() in ("NONE", "NIL") else [said]
    return ",".join([*listed, *names])


def _srun(command: Sequence[str], at: int, env: Mapping[str, str], names: Sequence[str]) -> tuple[Command, Environment]:
    words, variables = list(command), dict(env)
    if "SLURM_EXPORT_ENV" in variables:
        variables["SLURM_EXPORT_ENV"] = _exported(variables["SLURM_EXPORT_ENV"], names)
    for i in range(at + 1, len(words)):
        if words[i].startswith("--export="):
            words[i] = "--export=" + _exported(words[i].partition("=")[2], names)
        elif words[i] == "--export" and i + 1 < len(words):
            words[i + 1] = _exported(words[i + 1], names)
        else:
            continue
        break
    return words, variables


#: What may stand before a launcher: they start the rest of their words.
WRAPPERS = {
    *("env", "exec", "ionice", "ltrace", "nice", "nohup", "numactl", "perf", "setarch", "setsid", "stdbuf"),
    *("strace", "taskset", "time", "timeout", "unshare", "valgrind"),
}

#: By the name of a launcher's file, links resolved; None where only the MPI tells: programs come with its launcher.
CARRIERS: Sequence[tuple[re.Pattern[str], Carrier | None]] = (
    (re.compile(r"srun"), _srun),
    (re.compile(r"mpi(run|exec)\.openmpi|orterun|prterun|ompirun_wrapper"), openmpi.carry),
    (re.compile(r"mpi(run|exec)\.(hydra|mpich)"), _hydra),
    (re.compile(r"mpi(run|exec)"), None),
)


def _carrier(word: str, open_mpi: bool) -> Carrier | None:
    found = shutil.which(word)
    for name in (Path(found).resolve().name, Path(word).name) if found else ():
        for pattern, carrier in CARRIERS:
            if not pattern.fullmatch(name):
                continue
            return carrier or (openmpi.carry if open_mpi else _hydra)
    return None


def _launcher(command: Sequence[str], open_mpi: bool) -> tuple[int, Carrier] | None:
    """Where a launcher stands in a command, behind what may stand before it, and how it is told."""
    for at, word in enumerate(command):
        if carrier := _carrier(word, open_mpi):
            return at, carrier
        if at == 0 and Path(word).name not in WRAPPERS:
            break
    return None


HOST_OPTIONS = re.compile(r"--?(H|host|hosts|hostfile|default-hostfile|machinefile|f|w|nodelist|N|nodes)(=.*|\d.*)?")
ALLOCATIONS = ("SLURM_JOB_NODELIST", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "COBALT_NODEFILE")


def has_other_nodes(command: Sequence[str], env: Mapping[str, str], open_mpi: bool = True) -> bool:
    """Whether ranks may be on other nodes: a launcher is told of hosts, or a batch system has given some."""
    found = _launcher(command, open_mpi)
    if any(name in env for name in ALLOCATIONS):
        return True
    if found and found[1] is openmpi.carry:
        return openmpi.has_hosts(command, found[0], env)
    return any(HOST_OPTIONS.fullmatch(word) for word in command)


def carry(
    command: Sequence[str],
    env: Mapping[str, str],
    names: Sequence[str],
    open_mpi: bool,
    own: Mapping[str, str] | None = None,
) -> tuple[Command, Environment]:
    """The command and the environment to start it in, so that the variables `names` of `env` reach every rank.
    `open_mpi`: the program is Open MPI's, else one of the MPICH family. Without a launcher both are as they were.
    `own`: what a launcher that is told the ranks' values by words or variables is to have instead of them.
    openmpi.DoubtError: the ranks can be told nothing."""
    found = _launcher(command, open_mpi)
    own = own or {}
    if not found:
        return list(command), dict(env)
    at, carrier = found
    alike = all(env.get(name) == value for name, value in own.items())
    if carrier is openmpi.carry and alike and not has_other_nodes(command, env, open_mpi):
        return list(command), dict(env)
    words, variables = carrier(command, at, env, names)
    return words, variables if carrier is _srun else {**variables, **own}
