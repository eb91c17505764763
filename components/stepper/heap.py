"""How the C library keeps the memory of a CPU's tensors from one step to the next."""

import ctypes
import os
import sys

# {parameter of glibc's malloc.h: value}. The first is the largest that it takes; the heap of a thread has 64 MiB, and
# with as much kept at its end none is given back.
_SETTINGS = {"M_MMAP_THRESHOLD": (-3, 2**25), "M_TRIM_THRESHOLD": (-1, 2**30), "M_TOP_PAD": (-2, 2**26)}


def keep_freed_memory() -> None:
    """Let glibc keep what a step frees: it would give it back, and the next step would touch every page anew.

    A step whose moves are separate functions frees all at the end of each; a step of one function does not. Nothing is
    done where the C library is another one, or where the environment says what the user wants of it.
    """
    if sys.platform != "linux" or any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    for parameter, value in _SETTINGS.values() if mallopt else ():
        mallopt(parameter, value)
