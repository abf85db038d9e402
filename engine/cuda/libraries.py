"""GPU libraries: their locations and versions, and the fallback for a missing library.

A process loads one copy of each. `cuda.pathfinder`, which CuPy requires from version 14 on, finds the copy that CuPy
uses, whether or not it is loaded already. Nothing is imported or loaded before the first call.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

LibraryName = Literal["cublasLt", "cudnn", "nvJitLink"]

#: fallback for each library that is missing
FALLBACKS: Final[Mapping[LibraryName, str]] = MappingProxyType(
    {
        "cublasLt": "CuPy computes products, between recordings",
        "cudnn": "convolutions as a product of columns, attention as products and loops",
        "nvJitLink": "NVRTC compiles kernels as CUDA C",
    }
)


class CardLibrary(NamedTuple):
    """A library: its `path`, `version` and loaded functions (`loaded`), or the reason why it is `missing`."""

    name: LibraryName
    path: str | None = None
    version: str | None = None
    missing: str | None = None
    loaded: Any = None

    def __str__(self) -> str:
        if self.loaded is None:
            return f"{self.name} was not found: {self.missing}; instead: {FALLBACKS[self.name]}"
        return f"{self.name} {self.version or 'of an unknown version'}, {self.path}"


@cache
def card_library(name: LibraryName) -> CardLibrary:
    """Load the process's copy of a library. A failure does not raise: `missing` has a one-line reason."""
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
    except ImportError:
        return CardLibrary(name, missing="cuda.pathfinder is missing, which CuPy 14 and later install")
    try:
        path = pathfinder.load_nvidia_dynamic_lib(name).abs_path
        if path is None:
            return CardLibrary(name, missing="it is loaded, but its path is unknown")
        # opening a library that is already loaded returns the same handle
        loaded = ctypes.CDLL(path)
    except (RuntimeError, OSError, ValueError) as error:  # a confined process may get an OSError
        return CardLibrary(name, missing=str(error).partition("\n")[0] or type(error).__name__)
    return CardLibrary(name, path, _version(name, loaded), loaded=loaded)


def _version(name: LibraryName, loaded: Any) -> str | None:
    """Return the library's version; None if it is too old to report one."""
    try:
        if name == "nvJitLink":
            numbers = ctypes.c_uint(), ctypes.c_uint()
            loaded.nvJitLinkVersion(*map(ctypes.byref, numbers))
            return ".".join(str(number.value) for number in numbers)
        function = loaded.cublasLtGetVersion if name == "cublasLt" else loaded.cudnnGetVersion
    except AttributeError:
        return None
    function.restype = ctypes.c_size_t
    number = int(function())  # major, two digits of minor, two of patch: 130100 is 13.1.0
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
