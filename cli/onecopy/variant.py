# SPDX-License-Identifier: BSD-3-Clause
"""What a benchmark compares: onecopy, MPIs by themselves, and other builds of onecopy."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from onecopy import cells, install, mpi, peers, run


class BenchError(RuntimeError):
    """Nothing to measure with; the text says what to do."""


@dataclass(frozen=True)
class Variant:
    """One way to run a program: an MPI, and the environment that makes it onecopy's or not."""

    name: str
    mpi: peers.Mpi
    env: Mapping[str, str] = field(default_factory=dict)


def rival_list(text: str) -> list[str]:
    """Names of MPIs, and directories that hold another build of onecopy: as they were written."""
    known = ("mpi", *peers.PACKAGES)
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known and not Path(name).is_dir():
            raise argparse.ArgumentTypeError(
                f"no {name!r}; there are {', '.join(known)}, or the directory of another build of onecopy"
            )
    return names


def abi_of(base: peers.Mpi) -> mpi.Abi:
    abi = mpi.abi_of_launcher(base.mpirun)
    if abi is None:
        raise BenchError(f"{base.mpirun} does not tell which MPI it belongs to")
    return abi


def preloaded(name: str, base: peers.Mpi, library: Path, env: Mapping[str, str]) -> Variant:
    preload = run.joined_preload(library, os.environ.get("LD_PRELOAD", ""))
    return Variant(name, base, {**env, "LD_PRELOAD": preload})


def subject(name: str, base: peers.Mpi, env: Mapping[str, str]) -> Variant:
    """The MPI in PATH with our preload library. BenchError when there is none for it."""
    library, why = run.usable_library(abi_of(base))
    if library is None:
        raise BenchError(why)
    return preloaded(name, base, library, env)


def other_build(directory: Path, base: peers.Mpi, env: Mapping[str, str]) -> Variant:
    """The same with another build's preload library, in a checkout, a build directory or where one is installed."""
    abi = abi_of(base)
    wanted = install.preload_name(abi.name or abi.title)
    directory = directory.resolve()
    for place in ("build/preload", "preload", "."):
        if (library := directory / place / wanted).is_file():
            name = directory.parent.name if directory.name == "build" else directory.name
            return preloaded(f"build-{name}", base, library, env)
    raise BenchError(f"{directory} holds no {wanted}: build there first")


def choose_variants(args: argparse.Namespace, console: Console) -> list[Variant]:
    """What the options ask for; installs the peers that they name."""
    for name in args.peer:
        with console.status(f"installing {name} into {peers.cache() / 'peers'}"):
            peers.install(name)
    names = list(dict.fromkeys([*args.against, *args.peer]))
    base = peers.installed()
    passed_on = {k: v for k, v in os.environ.items() if k.startswith("ONECOPY_") and k != "ONECOPY_STATS"}
    variants = [
        Variant(name, peers.resolve(name))
        if name == "mpi" or name in peers.PACKAGES
        else other_build(Path(name), base, passed_on)
        for name in names
    ]
    variants.append(subject(cells.SUBJECT, base, passed_on))
    variants += [subject(f"{cells.SUBJECT}-{m}", base, {**passed_on, "ONECOPY_MECH": m}) for m in args.mech]
    return variants
