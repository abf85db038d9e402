"""Loading object files: those of x86-64 and ELF by hand, in a tenth of a millisecond and without LLVM; others by LLVM.

System V ABI, AMD64 supplement: sections that are allocated are laid out one after the other, and their references to
one another, which are all relative, are filled in.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from functools import cache
from typing import Any, Final, NamedTuple

from engine.codegen.native.kernel_errors import KernelUnavailable
from engine.codegen.native.machine_code import link

_FAILED: Final = ctypes.c_void_p(-1).value


class ExecutableMemory:
    """Machine code in memory that is never writable and executable at once. Raises KernelUnavailable if refused."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self.address: int = 0
        library = _library()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        address = library.mmap(None, self.nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if address in (None, _FAILED):
            raise KernelUnavailable(f"there is no memory for a kernel of {self.nbytes} bytes")
        self.address = address

    def write_image(self, image: bytes) -> None:
        """Put `image` there, and make it executable: once."""
        ctypes.memmove(self.address, image, len(image))
        if _library().mprotect(self.address, self.nbytes, mmap.PROT_READ | mmap.PROT_EXEC):
            raise KernelUnavailable("the system refuses executable memory, so kernels are not compiled")

    def __del__(self) -> None:
        if self.address:
            _library().munmap(self.address, self.nbytes)


@cache
def _library() -> Any:
    """Load the system's mmap, mprotect and munmap: Python's own mmap cannot make memory executable later."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _UNWIND = 1, 2, 4, 0x70000001
_ALLOCATED: Final = 2
#: R_X86_64_PC32 and R_X86_64_PLT32: 32 bits, relative to where they stand
_RELATIVE: Final = (2, 4)


class LoadedCode(NamedTuple):
    """Address of a function, and the object that keeps it loaded."""

    address: int
    memory: Any


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class _Unknown(Exception):
    """Failure of an object file that seems sound, but is for another loader."""


def load_function(data: bytes, name: str = "kernel") -> LoadedCode:
    """Load the function of that name in an object file into executable memory.

    Raises KernelUnavailable if the file is damaged, or not for this machine, or executable memory is refused.
    """
    try:
        image, start = _image(data, name.encode())
    except _Unknown:
        return LoadedCode(*link(data, name))
    except (struct.error, IndexError, ValueError) as error:
        raise KernelUnavailable(f"the object file of a kernel is damaged ({error})") from error
    memory = ExecutableMemory(len(image))
    memory.write_image(image)
    return LoadedCode(memory.address + start, memory)


def _image(data: bytes, name: bytes) -> tuple[bytes, int]:
    """Make the image of the memory, and find the beginning of the function in it."""
    sections = _sections(data)
    places = _places(sections, len(data))
    image = bytearray(max((places[i] + sections[i].size for i in places), default=0))
    for i, place in places.items():
        image[place : place + sections[i].size] = _contents(data, sections[i])
    table = next((section for section in sections if section.type == _SYMTAB), None)
    if table is None:
        raise ValueError("it has no symbols")
    symbols = [_Symbol(*fields) for fields in struct.iter_unpack("<IBBHQQ", _contents(data, table))]
    for section in sections:
        if section.type == _RELA and section.info in places:
            _relocate(image, places, symbols, places[section.info], _contents(data, section))
    return bytes(image), _start(symbols, places, _contents(data, sections[table.link]), name, len(image))


def _sections(data: bytes) -> list[_Section]:
    if data[:4] != b"\x7fELF" and sys.platform == "linux":
        raise ValueError("it is not an ELF file")
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", data, 16) != (_RELOCATABLE, _X86_64):
        if sys.platform == "linux" and platform.machine() == "x86_64":  # LLVM may crash on what is no object file
            raise ValueError("it is not for this machine")
        raise _Unknown
    (start,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    return [_Section(*struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i)) for i in range(count)]


def _places(sections: list[_Section], most: int) -> dict[int, int]:
    """Place the sections that are allocated, none above `most` bytes, in the image."""
    places, end = {}, 0
    for i, section in enumerate(sections):
        if section.flags & _ALLOCATED:
            if section.type not in (_PROGBITS, _UNWIND):
                raise _Unknown
            if section.size > most or section.align > mmap.PAGESIZE:
                raise ValueError("a section has no sensible size")
            align = max(64, section.align)
            places[i] = -(-end // align) * align
            end = places[i] + section.size
    return places


def _contents(data: bytes, section: _Section) -> bytes:
    contents = data[section.offset : section.offset + section.size]
    if len(contents) != section.size:
        raise ValueError("it is cut off")
    return contents


def _relocate(
    image: bytearray, places: dict[int, int], symbols: list[_Symbol], section: int, relocations: bytes
) -> None:
    """Fill in the references of a section to other places."""
    for offset, info, addend in struct.iter_unpack("<QQq", relocations):
        symbol = symbols[info >> 32]
        if info & 0xFFFFFFFF not in _RELATIVE or symbol.section not in places:
            raise _Unknown
        at = section + offset
        struct.pack_into("<i", image, at, places[symbol.section] + symbol.value + addend - at)


def _start(symbols: list[_Symbol], places: dict[int, int], names: bytes, name: bytes, size: int) -> int:
    for symbol in symbols:
        if symbol.section in places and names[symbol.name :].startswith(name + b"\0"):
            start = places[symbol.section] + symbol.value
            if start < size:
                return start
    raise ValueError(f"it has no {name.decode()}")
