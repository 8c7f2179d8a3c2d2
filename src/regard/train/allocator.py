"""How this process holds the memory that tensors come from and go back to."""

import ctypes
import platform

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # glibc's numbers for them, from malloc.h


def keep_freed_memory() -> bool:
    """Use freed memory again instead of giving it back to the system; whether that can be had.

    Left alone, glibc asks the system for every large tensor anew, which clears each page of it
    before its first use: in training on a CPU a tenth of the time. The price is that the process
    stays as large as it once was, and somewhat larger for the holes between tensors.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(MMAP_MAX, 0)) and bool(libc.mallopt(TRIM_THRESHOLD, -1))
