# SPDX-License-Identifier: BSD-3-Clause
"""What a script of the shell may start: the words of its text, without running any of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

SHELL = re.compile(r"^(ba|da|k|z)?sh$")
READ_MOST = 64 << 10
MOST = 1000  # words: each is looked for in PATH
DIRECTORY = re.compile(r"""\$\(\s*dirname\s+(--\s+)?"?\$\{?(0|BASH_SOURCE(\[0\])?)\}?"?\s*\)|\$\{0%/\*\}""")
ASSIGNED = re.compile(r"""(?:^|[\s;])(\w+)=(?:"([^"]*)"|'([^']*)'|([^\s;"'&|]*))""")
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
BREAKS = re.compile(r"""[\s;&|<>()'"`=]+""")


def first_line(path: Path) -> list[str]:
    """The words behind "#!", [] for what is no script."""
    try:
        with path.open("rb") as file:
            head = file.read(256)
    except OSError:
        return []
    return head[2:].partition(b"\n")[0].decode(errors="replace").split() if head.startswith(b"#!") else []


def interpreter(path: Path) -> str:
    """The program that runs a script, past env and its options; "" for what is none."""
    words = first_line(path)
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else ""


def text_of(path: Path) -> str:
    """That of a script of the shell, "" for everything else."""
    name = Path(interpreter(path)).name
    try:
        with path.open("rb") as file:
            head = file.read(READ_MOST)
    except OSError:
        return ""
    plain = not name and b"\0" not in head  # an executable text: a shell runs it
    return head.decode(errors="replace") if SHELL.match(name) or plain else ""


def words(text: str, directory: Path | None = None) -> list[str]:
    """The words that may be programs, each once, in order. `directory` is where the script lies, if anywhere."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    text = DIRECTORY.sub(lambda _: str(directory or "."), text)
    values = dict(os.environ)

    def value(match: re.Match[str]) -> str:
        return values.get(match[1] or match[2], "")

    for name, *said in ASSIGNED.findall(text):
        values[name] = VARIABLE.sub(value, "".join(said))
    found = dict.fromkeys(BREAKS.split(VARIABLE.sub(value, text)))
    return [word for word in found if word and not word.startswith("-")][:MOST]
