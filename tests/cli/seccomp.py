# SPDX-License-Identifier: BSD-3-Clause
"""python3 seccomp.py EPERM|ENOSYS|KILL CALL,... COMMAND ...: runs a command that cannot make these system calls.

A container's seccomp profile, in small: classic BPF as in seccomp(2), inherited through exec.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_ALLOW, RET_ERRNO, RET_KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
LOAD_NUMBER, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBERS = {
    "x86_64": {"process_vm_readv": 310, "process_vm_writev": 311, "memfd_create": 319},
    "aarch64": {"process_vm_readv": 270, "process_vm_writev": 271, "memfd_create": 279},
}


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def main() -> None:
    answer, names, *command = sys.argv[1:]
    verdict = RET_KILL_PROCESS if answer == "KILL" else RET_ERRNO | getattr(errno, answer)
    numbers = [NUMBERS[platform.machine()][name] for name in names.split(",")]
    lines = [(LOAD_NUMBER, 0, 0, 0)]
    for i, number in enumerate(numbers):
        lines.append((JUMP_EQUAL, len(numbers) - i, 0, number))
    lines += [(RETURN, 0, 0, RET_ALLOW), (RETURN, 0, 0, verdict)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = Program(len(lines), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        sys.exit(f"seccomp.py: {os.strerror(ctypes.get_errno())}")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
