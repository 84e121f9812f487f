# SPDX-License-Identifier: BSD-3-Clause
"""What tests/mpi has for the MPI in PATH, of the others when they are looked up."""

from mpi.test_lookup import library, pytestmark, test_foreign_functions, test_program, test_weak_references

__all__ = ["library", "pytestmark", "test_foreign_functions", "test_program", "test_weak_references"]
