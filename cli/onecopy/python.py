# SPDX-License-Identifier: BSD-3-Clause
"""Which MPI a Python's mpi4py would use.

mpi4py from PyPI has an extension module for each ABI and chooses when it is imported: by MPI4PY_MPIABI, MPI4PY_LIBMPI,
the libraries of the virtual environment and of the system. So that Python is asked where the module is, and which MPI's
library it loaded to choose it; it starts none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

NAME = re.compile(r"^(python|pypy)[\d.]*$")
LOOK = r"""
import importlib.util as util, re
spec = util.find_spec("mpi4py") and util.find_spec("mpi4py.MPI")
loaded = re.findall(r" (/.*/libmpi(?:ch|_abi)?\.so[.\d]*)$", open("/proc/self/maps").read(), re.MULTILINE)
print(spec.origin if spec else "", *loaded[:1], sep="\t")
"""


class Extension(NamedTuple):
    module: Path
    #: The MPI's that it is to use; None where the dynamic loader finds it.
    library: Path | None


def extension(python: Path) -> Extension | None:
    """The module that `from mpi4py import MPI` would load; None without mpi4py, or without an MPI for it."""
    import subprocess  # as seldom as this is needed: each program's start waits for its import

    try:
        done = subprocess.run(
            [str(python), "-c", LOOK], capture_output=True, text=True, errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout.splitlines()[-1:] if done.returncode == 0 else []
    module, _, library = said[0].partition("\t") if said else ("", "", "")
    return Extension(Path(module), Path(library) if library else None) if module.endswith(".so") else None
