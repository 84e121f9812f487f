# SPDX-License-Identifier: BSD-3-Clause
"""Which MPI a Python's mpi4py would use.

mpi4py from PyPI has an extension module for each ABI and chooses when it is imported: by MPI4PY_MPIABI, MPI4PY_LIBMPI,
the libraries of the virtual environment and of the system. So that Python is asked where the module is, which loads at
most a library of an MPI and starts none.
"""

from __future__ import annotations

import re
from pathlib import Path

NAME = re.compile(r"^(python|pypy)[\d.]*$")
LOOK = """
import importlib.util as util
spec = util.find_spec("mpi4py") and util.find_spec("mpi4py.MPI")
print(spec.origin if spec else "")
"""


def extension(python: Path) -> Path | None:
    """The extension module that `from mpi4py import MPI` would load; None without mpi4py, or without an MPI for it."""
    import subprocess  # as seldom as this is needed: each program's start waits for its import

    try:
        done = subprocess.run(
            [str(python), "-c", LOOK], capture_output=True, text=True, errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout.splitlines()[-1:] if done.returncode == 0 else []
    return Path(said[0]) if said and said[0].endswith(".so") else None
