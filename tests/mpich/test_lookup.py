# SPDX-License-Identifier: BSD-3-Clause
"""What tests/mpi has for Open MPI, of MPIs that are looked up."""

from mpi.test_lookup import library, pytestmark, test_foreign_functions, test_program

__all__ = ["library", "pytestmark", "test_foreign_functions", "test_program"]
