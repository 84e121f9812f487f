# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms by mpi4py-fft, whose exchanges are MPI_Alltoallw of subarrays; what is printed is made of every
bit of their results."""

from hashlib import sha256

import numpy as np
from mpi4py import MPI  # type: ignore[import-not-found]
from mpi4py_fft import PFFT, newDistArray  # type: ignore[import-not-found]

SHAPE = (50, 42, 36)  # divided by no number of ranks
TURNS = 5  # a communicator's first calls are not served


def transform(comm: MPI.Comm, dtype: type, grid: tuple[int, ...] | None, axes: tuple[int, ...]) -> str:
    # Measured plans differ from run to run, and so do their last bits.
    fft = PFFT(comm, SHAPE, axes=axes, dtype=dtype, grid=grid, planner_effort="FFTW_ESTIMATE")
    before = newDistArray(fft, forward_output=False)
    places = np.meshgrid(*(np.arange(part.start, part.stop) for part in before.local_slice()), indexing="ij")
    bits = sha256()
    for turn in range(TURNS):
        before[:] = (7 * places[0] + 3 * places[1] * places[2] + turn) % 11
        there = fft.forward(before)
        bits.update(there.tobytes())
        back = fft.backward(there)
        bits.update(back.tobytes())
        assert np.allclose(before, back, atol=1e-4), "there and back"
    return sha256("".join(comm.allgather(bits.hexdigest())).encode()).hexdigest()


def main() -> None:
    comm = MPI.COMM_WORLD
    for dtype in (np.float32, np.float64, np.complex128):
        for grid in ((-1,), None):
            for axes in ((0, 1, 2), (2, 0, 1)):
                bits = transform(comm, dtype, grid, axes)
                if comm.rank == 0:
                    print(dtype.__name__, grid, axes, bits)


main()
