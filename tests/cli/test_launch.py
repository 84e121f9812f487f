# SPDX-License-Identifier: BSD-3-Clause
"""Command lines of launchers, rewritten so that variables reach every rank. tests/mpi/test_nodes.py runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from onecopy import launch

NAMES = ["LD_PRELOAD", "ONECOPY_MECH"]
ENV = {"LD_PRELOAD": "/lib.so", "ONECOPY_MECH": "heap,cma"}
LIST = "LD_PRELOAD=/lib.so;ONECOPY_MECH=heap,cma"
FLAGS = ["-x", "LD_PRELOAD=/lib.so", "-x", "ONECOPY_MECH=heap,cma"]
GENV = ["-genv", "LD_PRELOAD", "/lib.so", "-genv", "ONECOPY_MECH", "heap,cma"]


def carry(words: str, open_mpi: bool = True, **env: str) -> tuple[str, dict[str, str]]:
    command, variables = launch.carry(words.split(), {**ENV, **env}, NAMES, open_mpi)
    return " ".join(command), {name: value for name, value in variables.items() if name not in NAMES}


@pytest.fixture(autouse=True)
def launchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mpirun", "mpiexec.hydra", "mpirun.openmpi", "srun", "env", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize("words", ["mpirun.openmpi -n 4 ./a", "env A=1 mpirun.openmpi -n 4 ./a"])
def test_open_mpi_by_its_parameter(words: str) -> None:
    assert carry(words) == (words, {"OMPI_MCA_mca_base_env_list": LIST})


def test_open_mpi_as_the_program_says() -> None:
    assert carry("mpirun -n 4 ./a") == ("mpirun -n 4 ./a", {"OMPI_MCA_mca_base_env_list": LIST})


def test_open_mpi_with_options_for_variables() -> None:
    """In each context, and no parameter beside them: Open MPI 4 aborts where both are."""
    words = "mpirun.openmpi -x A -n 1 ./a : -n 1 ./b"
    flags = " ".join(FLAGS)
    assert carry(words) == (f"mpirun.openmpi {flags} -x A -n 1 ./a : {flags} -n 1 ./b", {})


@pytest.mark.parametrize(
    ("launcher", "own"), [("mpirun", "/own.so"), ("mpiexec.hydra", "/own.so"), ("srun", "/lib.so")]
)
def test_what_the_launcher_itself_is_to_have(launcher: str, own: str) -> None:
    """Where it is told by other means than its environment what ranks are to have."""
    words, variables = launch.carry([launcher, "./a"], ENV, NAMES, launcher == "mpirun", {"LD_PRELOAD": "/own.so"})
    assert variables["LD_PRELOAD"] == own
    assert "/lib.so" in " ".join([*words, *variables.values()])


def test_open_mpi_with_a_list_of_its_own() -> None:
    before = {"OMPI_MCA_mca_base_env_list": "A=1;B"}
    assert carry("mpirun.openmpi ./a", True, **before)[1] == {"OMPI_MCA_mca_base_env_list": f"A=1;B;{LIST}"}
    words = "mpirun.openmpi --mca mca_base_env_list A ./a"
    assert carry(words) == (f"mpirun.openmpi --mca mca_base_env_list A;{LIST} ./a", {})


def test_open_mpi_with_a_list_in_the_users_file(tmp_path: Path) -> None:
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi/mca-params.conf").write_text("btl = self\nmca_base_env_list = A=1\n")
    found = carry("mpirun.openmpi ./a", HOME=str(tmp_path))[1]
    assert found["OMPI_MCA_mca_base_env_list"] == f"A=1;{LIST}"


def test_a_value_that_cannot_be_said_in_the_list() -> None:
    _, env = launch.carry(["mpirun.openmpi"], {"A": "1;2", "B": "3"}, ["A", "B"], True)
    assert env["OMPI_MCA_mca_base_env_list"] == "B=3"


@pytest.mark.parametrize(("name", "open_mpi"), [("mpiexec.hydra", True), ("mpirun", False)])
def test_hydra(name: str, open_mpi: bool) -> None:
    assert carry(f"{name} -n 2 ./a", open_mpi) == (f"{name} {' '.join(GENV)} -n 2 ./a", {})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("srun -n 2 ./a", "srun -n 2 ./a"),
        ("srun --export=NONE ./a", "srun --export=LD_PRELOAD,ONECOPY_MECH ./a"),
        ("srun --export=ALL,A=1 ./a", "srun --export=ALL,A=1,LD_PRELOAD,ONECOPY_MECH ./a"),
        ("srun --export A ./a --export=B", "srun --export A,LD_PRELOAD,ONECOPY_MECH ./a --export=B"),
    ],
)
def test_srun(before: str, after: str) -> None:
    assert carry(before) == (after, {})
    assert carry(before, SLURM_EXPORT_ENV="NONE") == (after, {"SLURM_EXPORT_ENV": "LD_PRELOAD,ONECOPY_MECH"})


@pytest.mark.parametrize("words", ["./a -n 4", "other mpirun.openmpi ./a", "prun ./a"])
def test_no_launcher_no_change(words: str) -> None:
    assert carry(words) == (words, {})
