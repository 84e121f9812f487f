# SPDX-License-Identifier: BSD-3-Clause
"""Command lines of launchers, rewritten so that variables reach every rank. tests/mpi/test_nodes.py runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from onecopy import launch, openmpi

VARIABLE = "OMPI_MCA_mca_base_env_list"
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
    (tmp_path / "bin").mkdir()
    for name in ("mpirun", "mpiexec.hydra", "mpirun.openmpi", "srun", "env", "other"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    for name in launch.ALLOCATIONS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "words",
    [
        "mpirun.openmpi --host a,b -n 4 ./a",
        "env A=1 mpirun.openmpi --hostfile=h -n 4 ./a",
        "mpirun.openmpi --mca orte_default_hostfile h ./a",
    ],
)
def test_open_mpi_by_its_parameter(words: str) -> None:
    assert carry(words) == (words, {VARIABLE: LIST})


def test_open_mpi_as_the_program_says() -> None:
    assert carry("mpirun -H a -n 4 ./a") == ("mpirun -H a -n 4 ./a", {VARIABLE: LIST})


@pytest.mark.parametrize("words", ["mpirun.openmpi -n 4 ./a", "mpirun -N 2 -x A ./a", "mpirun --tune f ./a"])
def test_open_mpi_on_one_node(tmp_path: Path, words: str) -> None:
    """It is started as without onecopy, whatever names variables."""
    (tmp_path / "f").write_text("-x A=1\n")
    assert carry(words) == (words, {})


def test_open_mpi_where_a_sanitizer_has_to_be_first_in_ranks() -> None:
    own = {"LD_PRELOAD": "/own.so"}
    _, variables = launch.carry(["mpirun", "./a"], ENV, NAMES, True, own)
    assert variables == {**ENV, **own, VARIABLE: LIST}


def test_open_mpi_with_hosts_in_files(tmp_path: Path) -> None:
    """Of a batch system, of options, of parameters, and the one that the site has."""
    assert carry("mpirun ./a", PBS_NODEFILE="f")[1] == {"PBS_NODEFILE": "f", VARIABLE: LIST}
    found = carry("mpirun ./a", PRTE_MCA_prte_default_hostfile="f")[1]
    assert found[VARIABLE] == LIST
    (tmp_path / "app").write_text("-host b -n 1 ./a\n")
    assert carry("mpirun --app app")[1] == {VARIABLE: LIST}
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/openmpi-default-hostfile").write_text("# hosts\n\n")
    assert carry("mpirun ./a")[1] == {}
    (tmp_path / "etc/openmpi-default-hostfile").write_text("# hosts\nb slots=2\n")
    assert carry("mpirun ./a")[1] == {VARIABLE: LIST}
    (tmp_path / "etc/openmpi-default-hostfile").unlink()
    (tmp_path / "etc/openmpi-mca-params.conf").write_text("orte_default_hostfile = h\n")
    assert carry("mpirun ./a")[1] == {VARIABLE: LIST}


def test_open_mpi_with_options_for_variables() -> None:
    """In each context, and no parameter beside them: Open MPI 4 aborts where both are."""
    words = "mpirun.openmpi -x A -n 1 -host a ./a : -n 1 ./b"
    flags = " ".join(FLAGS)
    assert carry(words) == (f"mpirun.openmpi {flags} -x A -n 1 -host a ./a : {flags} -n 1 ./b", {})


def test_open_mpi_with_options_in_a_file(tmp_path: Path) -> None:
    """`-x` goes beside those of --tune; a list that it has is made longer, in the variable, which comes before it."""
    flags = " ".join(FLAGS)
    (tmp_path / "f").write_text("# mine\n-x A=1\n")
    assert carry("mpirun --tune f -H b ./a") == (f"mpirun {flags} --tune f -H b ./a", {})
    (tmp_path / "f").write_text("-mca mca_base_env_list 'A=1;B=2'\n")
    assert carry("mpirun --tune f -H b ./a") == ("mpirun --tune f -H b ./a", {VARIABLE: f"A=1;B=2;{LIST}"})


@pytest.mark.parametrize("line", ["-x A=1 -host b ./a", "-mca mca_base_env_list A=1 -host b ./a"])
def test_open_mpi_with_variables_of_programs_in_a_file(tmp_path: Path, line: str) -> None:
    """There is nothing that could stand beside them."""
    (tmp_path / "f").write_text(f"{line}\n")
    with pytest.raises(openmpi.DoubtError, match="f \\(--app\\)"):
        carry("mpirun --app f")


def test_open_mpi_with_an_option_of_the_program() -> None:
    """Where there is a list, `-x` cannot be the launcher's: the job would abort."""
    words = "mpirun --host a,b ./a -x 3"
    assert carry(words, True, **{VARIABLE: "A=1"}) == (words, {VARIABLE: f"A=1;{LIST}"})
    words = "mpirun --host a,b --mca mca_base_env_list {} ./a -x 3"
    assert carry(words.format("A")) == (words.format(f"A;{LIST}"), {})


@pytest.mark.parametrize("where", ["words", "variable", "file"])
def test_open_mpi_with_another_delimiter(tmp_path: Path, where: str) -> None:
    """The next version reads a semicolon all the same."""
    name = "mca_base_env_list_delimiter"
    words = f"--mca {name} ," if where == "words" else ""
    env = {f"OMPI_MCA_{name}": ","} if where == "variable" else {}
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/openmpi-mca-params.conf").write_text(f"{name} = ,\n" if where == "file" else "")
    with pytest.raises(openmpi.DoubtError, match="delimiter"):
        carry(f"mpirun {words} --host b ./a", True, **env)
    assert carry(f"mpirun {words} --host b -x A ./a", True, **env)[0].startswith("mpirun -x LD_PRELOAD=/lib.so")


@pytest.mark.parametrize(
    ("launcher", "own"), [("mpirun -H b", "/own.so"), ("mpiexec.hydra", "/own.so"), ("srun", "/lib.so")]
)
def test_what_the_launcher_itself_is_to_have(launcher: str, own: str) -> None:
    """Where it is told by other means than its environment what ranks are to have."""
    words, variables = launch.carry(
        [*launcher.split(), "./a"], ENV, NAMES, "mpirun" in launcher, {"LD_PRELOAD": "/own.so"}
    )
    assert variables["LD_PRELOAD"] == own
    assert "/lib.so" in " ".join([*words, *variables.values()])


def test_open_mpi_with_a_list_of_its_own() -> None:
    before = {"OMPI_MCA_mca_base_env_list": "A=1;B"}
    assert carry("mpirun.openmpi -H b ./a", True, **before)[1] == {VARIABLE: f"A=1;B;{LIST}"}
    words = "mpirun.openmpi -H b --mca mca_base_env_list {} ./a"
    assert carry(words.format("A")) == (words.format(f"A;{LIST}"), {})


def test_open_mpi_with_a_list_in_a_file(tmp_path: Path) -> None:
    """The user's takes the place of the site's."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/openmpi-mca-params.conf").write_text("btl = self\nmca_base_env_list = A=0\n")
    assert carry("mpirun.openmpi -H b ./a", HOME=str(tmp_path))[1][VARIABLE] == f"A=0;{LIST}"
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi/mca-params.conf").write_text("mca_base_env_list = A=1\nmca_base_env_list = A=2\n")
    assert carry("mpirun.openmpi -H b ./a", HOME=str(tmp_path))[1][VARIABLE] == f"A=2;{LIST}"


def test_a_value_that_cannot_be_said_in_the_list() -> None:
    _, env = launch.carry(["mpirun.openmpi", "-H", "b"], {"A": "1;2", "B": "3"}, ["A", "B"], True)
    assert env[VARIABLE] == "B=3"


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
