"""Libraries of a card: which ones there are, where they were found, and what is used instead of one that is missing.

A process has one copy of each: `cuda.pathfinder`, which CuPy requires from version 14 on, finds the one that CuPy uses,
loaded or not. Nothing is imported or loaded before somebody asks.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

LibraryName = Literal["cublasLt", "cudnn", "nvJitLink"]

#: what runs where a library is missing
INSTEAD: Final[Mapping[LibraryName, str]] = MappingProxyType(
    {
        "cublasLt": "products by CuPy, between recordings",
        "cudnn": "convolutions by columns and a product, attention by products and loops",
        "nvJitLink": "loops compiled as CUDA C, by NVRTC",
    }
)


class CardLibrary(NamedTuple):
    """A library as it was found: `path` and `version`, and `loaded`, which has its functions; or why there is none."""

    name: LibraryName
    path: str | None = None
    version: str | None = None
    missing: str | None = None
    loaded: Any = None

    def __str__(self) -> str:
        if self.loaded is None:
            return f"{self.name} was not found: {self.missing}; instead: {INSTEAD[self.name]}"
        return f"{self.name} {self.version or 'of an unknown version'}, {self.path}"


@cache
def card_library(name: LibraryName) -> CardLibrary:
    """The one copy of a library, loaded. What keeps it from being so is told in one line, and raises nothing."""
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
    except ImportError:
        return CardLibrary(name, missing="there is no cuda.pathfinder, which comes with CuPy 14 and later")
    try:
        path = pathfinder.load_nvidia_dynamic_lib(name).abs_path
        if path is None:
            return CardLibrary(name, missing="it is loaded, but nobody knows from where")
        # A second opening of what is loaded gives the same handle.
        loaded = ctypes.CDLL(path)
    except (RuntimeError, OSError, ValueError) as error:  # what confines a process, too, is told as an OSError
        return CardLibrary(name, missing=str(error).partition("\n")[0] or type(error).__name__)
    return CardLibrary(name, path, _version(name, loaded), loaded=loaded)


def _version(name: LibraryName, loaded: Any) -> str | None:
    """As the library itself has it."""
    try:
        return _VERSIONS[name](loaded)
    except AttributeError:  # a function that an old one does not have
        return None


def _version_of_cublaslt(loaded: Any) -> str:
    """Of a number such as 130100: 13.1.0."""
    loaded.cublasLtGetVersion.restype = ctypes.c_size_t
    number = int(loaded.cublasLtGetVersion())
    # Since 11, of which the number has six digits: major, two of minor, two of patch.
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _version_of_cudnn(loaded: Any) -> str:
    """Of a number such as 92801: 9.28.1."""
    loaded.cudnnGetVersion.restype = ctypes.c_size_t
    number = int(loaded.cudnnGetVersion())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _version_of_nvjitlink(loaded: Any) -> str:
    """Of the two numbers that it writes."""
    major, minor = ctypes.c_uint(), ctypes.c_uint()
    loaded.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


_VERSIONS: Final = {
    "cublasLt": _version_of_cublaslt,
    "cudnn": _version_of_cudnn,
    "nvJitLink": _version_of_nvjitlink,
}
