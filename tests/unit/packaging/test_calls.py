# SPDX-License-Identifier: BSD-3-Clause
"""The check of the table of calls (packaging/calls.py) finds what it is for."""

from __future__ import annotations

import calls
import pytest

SOURCE = """
/* Serves MPI_Bcast and MPI_Gather: the message
 * is large enough. */
OC_EXPORT int PMPI_Bcast(void *buffer) /* Serves nothing. */
/* Serves MPI_Free_mem: whatever it is. */
"""
PLAIN = {"PMPI_Bcast", "MPI_Bcast", "PMPI_Gather", "MPI_Gather", "PMPI_Free_mem", "MPI_Free_mem"}
LARGE = {"PMPI_Bcast_c", "MPI_Bcast_c", "PMPI_Gather_c", "MPI_Gather_c"}
LIBRARIES = {"openmpi4": PLAIN, "mpich": PLAIN | LARGE}


def complaints(**libraries: set[str]) -> list[str]:
    return calls.disagreements({**LIBRARIES, **libraries}, calls.conditions(SOURCE))


def test_comments() -> None:
    assert calls.conditions(SOURCE) == {
        "Bcast": "the message is large enough",
        "Gather": "the message is large enough",
        "Free_mem": "whatever it is",
    }


def test_what_agrees() -> None:
    assert not complaints()


@pytest.mark.parametrize(
    ("libraries", "complaint"),
    [
        ({"mpich": PLAIN | LARGE - {"MPI_Bcast_c"}}, "libonecopy-mpich.so exports PMPI_Bcast_c without MPI_Bcast_c"),
        ({"openmpi4": PLAIN - {"PMPI_Bcast"}}, "libonecopy-openmpi4.so exports MPI_Bcast without PMPI_Bcast"),
        ({"mpi5": PLAIN | LARGE - {"PMPI_Gather_c", "MPI_Gather_c"}}, "libonecopy-mpi5.so lacks MPI_Gather_c"),
        ({"openmpi4": PLAIN | LARGE}, "libonecopy-openmpi4.so exports MPI_Gather_c"),
        (
            {"openmpi4": PLAIN - {"PMPI_Free_mem", "MPI_Free_mem"}},
            "MPI_Free_mem is said to be served, and libonecopy-openmpi4.so does not export it",
        ),
        (
            {"openmpi4": PLAIN | {"PMPI_Scan", "MPI_Scan"}},
            "PMPI_Scan is exported (libonecopy-openmpi4.so), and no comment says when it is served",
        ),
    ],
)
def test_what_does_not(libraries: dict[str, set[str]], complaint: str) -> None:
    assert complaint in complaints(**libraries)


def test_table() -> None:
    text = calls.table(LIBRARIES, calls.conditions(SOURCE))
    assert "| `MPI_Bcast` | served | the message is large enough |" in text
    assert "| `MPI_Scan` | | left to the MPI |" in text
    assert "| `MPI_Free_mem` | | whatever it is |" in text


def test_calls_that_are_passed_on() -> None:
    libraries = {"openmpi4": PLAIN | {"MPI_Init", "PMPI_Init"}, "mpich": PLAIN}
    assert calls.others(libraries, calls.conditions(SOURCE)) == ["Init"]


def test_page() -> None:
    page = f"before\n{calls.BEGIN}\nold\n{calls.END}\nafter\n"
    text = calls.table(LIBRARIES, {})
    assert calls.page_with(page, text) == f"before\n{text}\nafter\n"
    with pytest.raises(ValueError, match="no place"):
        calls.page_with("before\nafter\n", text)
