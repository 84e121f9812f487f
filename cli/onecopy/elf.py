# SPDX-License-Identifier: BSD-3-Clause
"""The little of an ELF file that decides whether, and which, library can be preloaded into it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_RPATH, DT_RUNPATH = 1, 5, 10, 15, 29
ET_EXEC, ET_DYN = 2, 3


class NotElfError(ValueError):
    """No ELF file, or one that ends where it should not."""


class Elf(NamedTuple):
    bits: int
    machine: int
    #: The dynamic loader it asks for; None for a library or a statically linked program.
    interpreter: str | None
    needed: tuple[str, ...]
    #: Has a dynamic section at all (a static-pie has one, but no interpreter).
    dynamic: bool
    #: The names of all that it defines or wants of others, each with a zero behind; one may be the end of another.
    strings: bytes = b""
    #: Says itself where some of what it needs is.
    has_path: bool = False

    @property
    def is_static(self) -> bool:
        return self.interpreter is None


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


def _string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at)
    if at < 0 or end < 0:
        raise NotElfError("a string lies outside the file")
    return data[at:end].decode(errors="surrogateescape")


def _segments(data: bytes, wide: bool, order: str) -> list[_Segment]:
    if wide:
        offset = struct.unpack_from(order + "Q", data, 32)[0]
        entry, count = struct.unpack_from(order + "HH", data, 54)
    else:
        offset = struct.unpack_from(order + "I", data, 28)[0]
        entry, count = struct.unpack_from(order + "HH", data, 42)
    found = []
    for i in range(count):
        at = offset + i * entry
        if wide:
            kind, _flags, start, address, _physical, size = struct.unpack_from(order + "IIQQQQ", data, at)
        else:
            kind, start, address, _physical, size = struct.unpack_from(order + "IIIII", data, at)
        found.append(_Segment(kind, start, address, size))
    return found


def parse(data: bytes) -> Elf:
    """Raises NotElfError."""
    if len(data) < 52 or data[:4] != b"\x7fELF":
        raise NotElfError("no ELF file")
    wide, order = data[4] == 2, ">" if data[5] == 2 else "<"
    try:
        machine = struct.unpack_from(order + "H", data, 18)[0]
        segments = _segments(data, wide, order)
        interpreter = next((_string(data, s.offset) for s in segments if s.kind == PT_INTERP), None)
        dynamic = next((s for s in segments if s.kind == PT_DYNAMIC), None)
        needed: list[int] = []
        table = size = 0
        has_path = False
        if dynamic:
            entry = order + ("qQ" if wide else "iI")
            for at in range(dynamic.offset, dynamic.offset + dynamic.size, struct.calcsize(entry)):
                tag, value = struct.unpack_from(entry, data, at)
                if tag == 0:
                    break
                if tag == DT_NEEDED:
                    needed.append(value)
                elif tag == DT_STRTAB:
                    table = value
                elif tag == DT_STRSZ:
                    size = value
                elif tag in (DT_RPATH, DT_RUNPATH):
                    has_path = True
            # The table's address is one of memory: the segment that is loaded there says where it is in the file.
            for s in segments:
                if s.kind == PT_LOAD and s.address <= table < s.address + s.size:
                    table = table - s.address + s.offset
                    break
        names = tuple(_string(data, table + value) for value in needed)
    except (struct.error, OverflowError) as error:
        raise NotElfError("the file is cut short") from error
    strings = data[table : table + size]
    return Elf(64 if wide else 32, machine, interpreter, names, dynamic is not None, strings, has_path)


def read(path: Path) -> Elf:
    """Raises NotElfError, also for what cannot be read."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                raise NotElfError("no ELF file")
            file.seek(0)
            return parse(file.read())
    except OSError as error:
        raise NotElfError(str(error)) from error
