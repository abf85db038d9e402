"""NVIDIA's compiler from the wheel `nvidia-cuda-nvrtc`, which needs neither a GPU nor a driver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@cache
def library() -> Any:
    """Load the library; return None if the wheel is not installed."""
    spec = find_spec("nvidia")
    folders = [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    paths = [
        path for folder in folders for path in sorted(folder.glob("*/lib/libnvrtc.so.*")) if ".alt" not in path.name
    ]
    return ctypes.CDLL(str(paths[-1])) if paths else None


def compiled(text: str, options: Sequence[str], *, ptx: bool = False) -> bytes:
    """Compile `text` to machine code or PTX. Raises AssertionError with the compiler's log."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"loop.cu", 0, None, None) == 0
    try:
        words = [option.encode() for option in options]
        status = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        assert status == 0, _read(nvrtc, "ProgramLog", program).decode()
        return _read(nvrtc, "PTX" if ptx else "CUBIN", program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(nvrtc: Any, kind: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{kind}")(program, buffer) == 0
    return buffer.raw
