"""NVIDIA's compiler, from its wheel `nvidia-cuda-nvrtc`: it needs neither a card nor a driver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@cache
def library() -> Any:
    """The library; None where the wheel is not installed."""
    spec = find_spec("nvidia")
    folders = [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    found = [
        path for folder in folders for path in sorted(folder.glob("*/lib/libnvrtc.so.*")) if ".alt" not in path.name
    ]
    return ctypes.CDLL(str(found[-1])) if found else None


def compiled(text: str, options: Sequence[str], *, ptx: bool = False) -> bytes:
    """The machine code of `text`, or its PTX. Raises AssertionError with what the compiler says."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"loop.cu", 0, None, None) == 0
    try:
        words = [option.encode() for option in options]
        status = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        assert status == 0, _read(nvrtc, "ProgramLog", program).decode()
        return _read(nvrtc, "PTX" if ptx else "CUBIN", program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(nvrtc: Any, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    room = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{what}")(program, room) == 0
    return room.raw
