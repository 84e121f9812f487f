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
# Blocks of malloc(), given to the C library's functions by its handle.
libc = ctypes.CDLL("libc.so.6")
for name, kinds in (("PyMem_RawMalloc", [ctypes.c_size_t]), ("PyMem_RawFree", [ctypes.c_void_p])):
    getattr(ctypes.pythonapi, name).argtypes = kinds
for function in (ctypes.pythonapi.PyMem_RawMalloc, libc.realloc):
    function.restype = ctypes.c_void_p
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
libc.malloc_usable_size.restype = ctypes.c_size_t
block = libc.realloc(ctypes.pythonapi.PyMem_RawMalloc(BYTES), 2 * BYTES)
if libc.malloc_usable_size(block) < 2 * BYTES:
    sys.exit("a short block")
libc.free(block)
mpi.MPI_Finalize()
