# SPDX-License-Identifier: BSD-3-Clause
"""Starts programs and MPI jobs for the tests, against one build directory."""

from __future__ import annotations

import functools
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import longform
import pytest
from job import Finished, Job, JobError
from onecopy import mpi as mpis

ROOT = Path(__file__).resolve().parent.parent
PRELOAD = "preload/libonecopy-{abi}.so"

# To a shell, the rank that it runs for, by Hydra or by Open MPI's launcher.
RANK = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"

# Open MPI looks for fabrics that no test needs, and for that takes twice as long to start: in the long form alone.
NO_FABRIC = {} if longform.ASKED else {"OMPI_MCA_pml": "ob1"}

# Root is what containers and CI have; more ranks than cores is what most tests want. Unbound, for two test workers
# would otherwise both bind their ranks to core 0. The second set is for Open MPI 5's launcher.
MPI_ENV = {
    **NO_FABRIC,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":OVERSUBSCRIBE",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}

# MPIs copy their messages through their own segments then.
NO_SINGLE_COPY = {
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",
    "I_MPI_SHM_CMA": "0",
}

# mpirun ends a job one of whose ranks has died; not so with this.
OUTLIVE = {"OMPI_MCA_orte_enable_recovery": "1"}


@dataclass(frozen=True)
class Mpi:
    """An MPI to run programs of."""

    name: str
    abi: str
    mpirun: str
    mpicc: str
    mpifort: str
    #: How its mpirun is told of a variable for the ranks alone.
    variable: Callable[[str, str], list[str]]
    env: Mapping[str, str] = field(default_factory=dict)
    #: What mpicc is told of the ABI to compile for, where it has several.
    cflags: tuple[str, ...] = ()


OPEN_MPI = Mpi("openmpi", "openmpi4", "mpirun", "mpicc", "mpifort", lambda n, v: ["-x", f"{n}={v}"], MPI_ENV)


@functools.cache
def library_of_launcher(mpirun: str) -> str:
    """What `onecopy run` chooses for the MPI of a launcher, as in libonecopy-NAME.so; "" where it does not tell."""
    found = shutil.which(mpirun)
    abi = mpis.abi_of_launcher(Path(found)) if found else None
    return (abi and abi.name) or ""


def build_dir() -> Path:
    return Path(os.environ.get("ONECOPY_BUILD", ROOT / "build")).resolve()


class Runner:
    """Starts jobs; whatever still runs when the test is over is killed."""

    def __init__(self, build: Path, cwd: Path, mpi: Mpi = OPEN_MPI) -> None:
        self.build = build
        self.cwd = cwd
        self.mpi = mpi
        self.since = time.monotonic()
        self._jobs: list[Job] = []

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """The user's environment without its ONECOPY_ variables, with the MPI's and then `env`."""
        base = {k: v for k, v in os.environ.items() if not k.startswith("ONECOPY") and k != "LD_PRELOAD"}
        return {**base, **self.mpi.env, **(env or {})}

    def start(self, *argv: str | Path, env: Mapping[str, str] | None = None) -> Job:
        job = Job([str(a) for a in argv], self.environment(env), self.cwd)
        self._jobs.append(job)
        return job

    def run(
        self, *argv: str | Path, env: Mapping[str, str] | None = None, timeout: float = 60, check: bool = True
    ) -> Finished:
        """Runs a command to its end. JobError when it hangs, leaves something behind or, unless told otherwise,
        fails."""
        job = self.start(*argv, env=env)
        finished = job.wait(timeout)
        return job.expect_success(finished) if check else finished

    def library(self, preload: bool | str = True) -> Path | None:
        """The preload library of the MPI, or another one of the build, in whose name {abi} stands for the MPI's."""
        name = PRELOAD if preload is True else preload
        abi = self.mpi.abi
        if name == PRELOAD and abi == OPEN_MPI.abi:
            abi = library_of_launcher(self.mpi.mpirun) or abi
        return self.build / name.format(abi=abi) if name else None

    def mpirun_argv(self, ranks: int, *argv: str | Path, preload: bool | str = True) -> list[str]:
        # For the ranks, which these tests are about, and not for mpirun.
        library = self.library(preload)
        inject = self.mpi.variable("LD_PRELOAD", str(library)) if library else []
        return [self.mpi.mpirun, "-n", str(ranks), *inject, *map(str, argv)]

    def start_mpi(
        self, ranks: int, *argv: str | Path, env: Mapping[str, str] | None = None, preload: bool = True
    ) -> Job:
        return self.start(*self.mpirun_argv(ranks, *argv, preload=preload), env=env)

    def mpirun(
        self,
        ranks: int,
        *argv: str | Path,
        env: Mapping[str, str] | None = None,
        preload: bool | str = True,
        timeout: float = 60,
        check: bool = True,
    ) -> Finished:
        """As `run`, for an MPI program, with onecopy preloaded into its ranks unless told otherwise: `preload` may name
        another library of the build."""
        return self.run(*self.mpirun_argv(ranks, *argv, preload=preload), env=env, timeout=timeout, check=check)

    def alone_or_skip(self, ranks: int, *argv: str | Path) -> None:
        """Without onecopy; the test is skipped where the MPI by itself fails or hangs."""
        try:
            self.mpirun(ranks, *argv, preload=False)
        except JobError as trouble:
            pytest.skip(f"the MPI alone cannot run this: {str(trouble).splitlines()[0]}")

    def open_mpi(self) -> int:
        """Which Open MPI the MPI's launcher is of; 0: another one."""
        said = self.run(self.mpi.mpirun, "--version").stdout
        found = re.search(r"Open MPI\)? (\d+)\.", said)
        return int(found[1]) if found else 0

    def close(self) -> None:
        for job in self._jobs:
            job.close()
