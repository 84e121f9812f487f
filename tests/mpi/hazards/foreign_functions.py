# SPDX-License-Identifier: BSD-3-Clause
"""MPI by Python's ctypes alone: foreign_functions.py ABI LIBRARY"""

import ctypes
import sys

BYTES = 1 << 20
abi, path = sys.argv[1:]
mpi = ctypes.CDLL(path)


def handle(name: str, constants: dict[str, int]) -> object:
    if abi == "openmpi4":
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, f"ompi_mpi_{name}")))
    return ctypes.c_void_p(constants[abi]) if abi == "mpi5" else ctypes.c_int(constants[abi])


world = handle("comm_world", {"mpich": 0x44000000, "mpi5": 0x101})
byte = handle("byte", {"mpich": 0x4C00010D, "mpi5": 0x247})
rank = ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
for turn in range(20):
    data = (ctypes.c_ubyte * BYTES)(*([turn] * 16 if rank.value == 0 else []))
    mpi.MPI_Bcast(data, BYTES, byte, 0, world)
    if list(data[:17]) != [turn] * 16 + [0]:
        sys.exit("wrong bytes")
mpi.MPI_Finalize()
