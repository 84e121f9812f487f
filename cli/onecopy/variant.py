# SPDX-License-Identifier: BSD-3-Clause
"""What a benchmark compares: onecopy, MPIs by themselves, and other builds of onecopy."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from onecopy import cells, mpi, peers, run

MPIS = (cells.BASELINE, *peers.PACKAGES)


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
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in MPIS and not Path(name).is_dir():
            raise argparse.ArgumentTypeError(
                f"no {name!r}; there are {', '.join(MPIS)}, or the directory of another build of onecopy"
            )
    return names


def our_library(base: peers.Mpi) -> Path:
    """The preload library for the MPI it is measured on. BenchError when there is none."""
    abi = mpi.abi_of_launcher(base.mpirun)
    if abi is None:
        raise BenchError(f"{base.mpirun} does not tell which MPI it belongs to")
    library, why = run.usable_library(abi)
    if library is None:
        raise BenchError(why)
    return library


def preloaded(name: str, base: peers.Mpi, library: Path, env: Mapping[str, str]) -> Variant:
    preload = run.joined_preload(library, ":".join(peers.users_preload()))
    return Variant(name, base, {**env, "LD_PRELOAD": preload})


def other_build(directory: Path, base: peers.Mpi, wanted: str, env: Mapping[str, str]) -> Variant:
    """With the library `wanted` of another build: in a checkout, a build directory or where one is installed."""
    directory = directory.absolute()  # a link is as good as a name
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
    names = list(dict.fromkeys(cells.BASELINE if name == args.mpi else name for name in [*args.against, *args.peer]))
    base = peers.resolve(args.mpi)
    library = our_library(base)
    passed_on = {k: v for k, v in os.environ.items() if k.startswith("ONECOPY_") and k != "ONECOPY_STATS"}
    variants = [
        other_build(Path(name), base, library.name, passed_on)
        if name not in MPIS
        else Variant(name, base if name == cells.BASELINE else peers.resolve(name))
        for name in names
    ]
    if len({v.name for v in variants}) < len(variants):
        raise BenchError("two of the builds in --against have the same name: give one a link with another")
    variants.append(preloaded(cells.SUBJECT, base, library, passed_on))
    variants += [preloaded(f"{cells.SUBJECT}-{m}", base, library, {**passed_on, "ONECOPY_MECH": m}) for m in args.mech]
    return variants
