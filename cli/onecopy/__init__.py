# SPDX-License-Identifier: BSD-3-Clause
"""The `onecopy` command: run programs with onecopy, look at a host, measure."""

__version__ = "0.1.0"
