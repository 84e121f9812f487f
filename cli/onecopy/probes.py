# SPDX-License-Identifier: BSD-3-Clause
"""What can be tried between two processes of this host, without and with onecopy's own library.

Each body runs in both sides of a pair (pair.py) and says how far it came: {} means all of it worked.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import secrets
import socket
import struct
from pathlib import Path
from typing import Any

from onecopy import install
from onecopy.pair import Side

LENGTH = 256 << 10  # several pages, more than one batch of the kernel's
PR_GET_DUMPABLE = 3
MIMALLOC = ("libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so.3")
MIMALLOC_OLDEST = 209  # exclusive arenas: 2.0.9
MIMALLOC_TOO_NEW = 30500  # 3.5: lib/heap/mimalloc.c

_libc = ctypes.CDLL(None, use_errno=True)


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def failed(step: str, error: int) -> dict[str, Any]:
    return {"step": step, "errno": error, "what": os.strerror(error)}


def _pattern(index: int) -> bytes:
    return bytes((i * 7 + index * 101 + 1) % 251 for i in range(LENGTH))


def _move(name: str, pid: int, local: int, remote: int) -> int:
    """process_vm_readv or _writev of LENGTH bytes: 0 or an errno."""
    call = getattr(_libc, name)
    call.restype = ctypes.c_ssize_t
    call.argtypes = [ctypes.c_int, *[ctypes.POINTER(_Iovec), ctypes.c_ulong] * 2, ctypes.c_ulong]
    done = 0
    while done < LENGTH:
        here, there = _Iovec(local + done, LENGTH - done), _Iovec(remote + done, LENGTH - done)
        moved = call(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        if moved <= 0:
            return ctypes.get_errno()
        done += moved
    return 0


def dumpable() -> bool:
    return bool(_libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))


def cma(side: Side) -> dict[str, Any]:
    """Each reads the other's buffer, then each writes it. Own memory first: that asks for no permission, so when
    already that is refused, the call itself is (a filter, or a kernel without it)."""
    mine = ctypes.create_string_buffer(_pattern(side.index), LENGTH)
    got = ctypes.create_string_buffer(LENGTH)
    other = side.exchange({"pid": os.getpid(), "address": ctypes.addressof(mine)})
    for step, name, pid, address in (
        ("own", "process_vm_readv", os.getpid(), ctypes.addressof(mine)),
        ("read", "process_vm_readv", other["pid"], other["address"]),
    ):
        error = _move(name, pid, ctypes.addressof(got), address)
        if error:
            side.exchange("refused")
            return {**failed(step, error), "dumpable": dumpable()}
    same = got.raw == _pattern(1 - side.index)
    if side.exchange("read") == "refused" or not same:
        return {"step": "read", "errno": 0, "what": "one direction only" if same else "another process's memory"}
    error = _move("process_vm_writev", other["pid"], ctypes.addressof(got), other["address"])
    answer = side.exchange("refused" if error else "written")
    if error:
        return {**failed("write", error), "dumpable": dumpable()}
    # What the other had read from here came back.
    if answer != "written" or mine.raw != _pattern(side.index):
        return {"step": "write", "errno": 0, "what": "the bytes written did not arrive"}
    return {}


def shared_memory(side: Side) -> dict[str, Any]:
    """Side 0 makes a memfd and hands it to side 1 through a socket with an abstract name, as the ranks do: both map
    it and see what the other writes."""
    step = "memfd_create"
    try:
        if side.index == 0:
            fd = os.memfd_create("onecopy-doctor", os.MFD_CLOEXEC)
            step = "ftruncate"
            os.ftruncate(fd, LENGTH)
            step = "bootstrap"
            name = "\0onecopy-doctor-" + secrets.token_hex(8)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(name)
                listener.listen(1)
                side.exchange({"name": name})
                listener.settimeout(30)
                link, _ = listener.accept()
            pid, uid, _gid = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if uid != os.geteuid():
                return {"step": step, "errno": 0, "what": f"the kernel says that process {pid} is of another user"}
            step = "descriptor passing"
            socket.send_fds(link, [b"x"], [fd])
        else:
            answer: dict[str, Any] = side.exchange({})
            if "name" not in answer:
                return answer | {"step": answer.get("step", step)}
            step = "bootstrap"
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            link.settimeout(30)
            link.connect(answer["name"])
            step = "descriptor passing"
            _, fds, _, _ = socket.recv_fds(link, 1, 1)
            fd = fds[0]
        step = "mmap"
        view = mmap.mmap(fd, LENGTH)
        view[side.index] = 65 + side.index
        side.exchange("written")
        if view[0:2] != b"AB":
            return {"step": step, "errno": 0, "what": "the memory is not shared"}
        side.exchange("seen")
    except OSError as error:
        result = failed(step, error.errno or 0)
        if side.index == 0 and step in ("memfd_create", "ftruncate"):
            side.exchange(result)
        return result
    return {}


def mimalloc(_: Side) -> dict[str, Any]:
    """In a child: loading an allocator is nothing to do to oneself."""
    bundled = install.find(install.ALLOCATOR)
    for name in (str(bundled), *MIMALLOC) if bundled else MIMALLOC:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        version = library.mi_version()
        if version < MIMALLOC_OLDEST:
            return {"errno": 0, "what": f"{name} is version {version}: exclusive arenas came with 2.0.9"}
        if version >= MIMALLOC_TOO_NEW:
            return {"errno": 0, "what": f"{name} is version {version}: from 3.5 on children of fork may die of it"}
        return {"name": name, "version": version}
    return {"errno": 0, "what": "no libmimalloc.so.2 or .3"}


#: In the order of OC_MECH_*'s bits.
MECHANISMS = ("heap", "map", "kcopy", "cma", "staged")


class _NodeAttr(ctypes.Structure):
    """struct oc_node_attr"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("fd", ctypes.c_int),
        ("peer_fds", ctypes.POINTER(ctypes.c_int)),
        ("rank", ctypes.c_uint32),
        ("nranks", ctypes.c_uint32),
        ("timeout_ms", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    ]


class _MechReport(ctypes.Structure):
    """struct oc_mech_report"""

    _fields_ = [
        ("usable", ctypes.c_uint32),
        ("forbidden", ctypes.c_uint32),
        ("why", (ctypes.c_char * 120) * len(MECHANISMS)),
    ]


def library(side: Side, path: Path) -> dict[str, Any]:
    """What the library itself finds, joined as a node of two: {"heap_why": ..., "why": {name: reason}}, with ""
    for what is usable."""
    oc = ctypes.CDLL(str(path))
    oc.oc_heap_why.restype = ctypes.c_char_p
    oc.oc_alloc.restype = ctypes.c_void_p
    oc.oc_alloc.argtypes = [ctypes.c_size_t]
    oc.oc_free.argtypes = [ctypes.c_void_p]
    oc.oc_node_leave.argtypes = [ctypes.c_void_p]
    oc.oc_node_barrier.argtypes = [ctypes.c_void_p]
    oc.oc_mech_query.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(_MechReport)]
    tokens = [secrets.token_hex(8)]
    tokens.insert(0 if side.index else 1, side.exchange(tokens[0]))  # side 0's first, on both sides
    attr = _NodeAttr(
        size=ctypes.sizeof(_NodeAttr),
        name=f"doctor-{tokens[0]}".encode(),
        fd=-1,
        rank=side.index,
        nranks=2,
        timeout_ms=30000,
    )
    node = ctypes.c_void_p()
    error = oc.oc_node_join(ctypes.byref(attr), ctypes.byref(node))
    if error:
        return failed("oc_node_join", -error)
    block = oc.oc_alloc(1 << 20)
    report = _MechReport()
    error = oc.oc_mech_query(node, 1 - side.index, ctypes.byref(report))
    result: dict[str, Any] = {"heap_why": (oc.oc_heap_why() or b"").decode(), "why": {}}
    if error:
        result = failed("oc_mech_query", -error)
    else:
        for bit, mechanism in enumerate(MECHANISMS):
            usable = report.usable >> bit & 1
            why = bytes(report.why[bit]).split(b"\0")[0].decode(errors="replace")
            result["why"][mechanism] = "" if usable else why or "not usable"
    if block:
        oc.oc_free(block)
    side.exchange("done")
    oc.oc_node_leave(node)
    return result
