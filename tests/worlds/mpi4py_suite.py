# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py_suite.py DIRECTORY OUTPUT MODULE...: mpi4py's own tests of these modules, in this rank. OUTPUT.<rank> gets a
line for each module: its name, how many tests there were, how many were skipped, and which failed."""

import json
import sys
import unittest
from pathlib import Path


def main() -> None:
    directory, output, *names = sys.argv[1:]
    sys.path.insert(0, directory)
    sys.dont_write_bytecode = True
    from mpi4py import MPI  # type: ignore[import-not-found]

    with Path(f"{output}.{MPI.COMM_WORLD.rank}").open("w", encoding="utf-8") as out:
        for name in names:
            result = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromName(name).run(result)
            failed = [*result.failures, *result.errors]
            line = [name, result.testsRun, len(result.skipped), sorted(test.id() for test, _ in failed)]
            print(json.dumps(line), file=out, flush=True)
            for _, trouble in failed:
                print(trouble, file=sys.stderr, flush=True)


main()
