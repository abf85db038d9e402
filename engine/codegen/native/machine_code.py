"""LLVM IR → an object file with machine code for this processor or a named one. LLVM is loaded on first use."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import mmap
import os
import platform
import re
import secrets
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from engine.ir.lru import LRU

# Unavailable kernels: the error, the keys that are not tried again, and one log line for each reason.
#
# A missing kernel is never a reason to fail, since NumPy computes the same result.

#: largest number of refused kernels, or library plans, in memory: a new one evicts the oldest
MOST_REFUSED: Final = 4096
#: largest number of different reasons that are logged
MOST_LOGGED: Final = 256

_logger = logging.getLogger("gradserve.kernels")


class KernelUnavailable(Exception):
    """Absence of a kernel's machine code. The message is a whole sentence that tells an operator the reason."""


class RefusedKernels:
    """Keys of kernels that could not be compiled, with the reasons. They are not retried, so a plan runs one way.

    Threads may share it.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._lock = Lock()

    def add(self, key: str, reason: str) -> None:
        """Record a kernel that could not be compiled."""
        with self._lock:
            self._reasons[key] = reason
            if len(self._reasons) > MOST_REFUSED:
                del self._reasons[next(iter(self._reasons))]

    def __contains__(self, key: str) -> bool:
        """Whether a kernel could not be compiled; false if it was never tried, or its entry was evicted."""
        return key in self._reasons

    def require(self, key: str) -> None:
        """Raise KernelUnavailable with the recorded reason if a kernel could not be compiled."""
        reason = self._reasons.get(key)
        if reason is not None:
            raise KernelUnavailable(reason)


class Reasons:
    """Reasons that have been logged, each in one line. `message` has a placeholder for the reason."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._logged: set[str] = set()

    def log(self, reason: str) -> None:
        """Log a reason, unless it was logged before or the limit is reached."""
        if reason not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add(reason)
            _logger.warning(self._message, reason)


#: fields of /proc/cpuinfo that tell which instructions a processor has and how to schedule them, on x86 and ARM
_CPUINFO_FIELDS: Final = frozenset(
    {"vendor_id", "cpu family", "model", "model name", "stepping", "flags"}
    | {"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"}
)
#: fields that list instructions: without either, the processor's instructions are unknown
_INSTRUCTIONS: Final = frozenset({"flags", "Features"})


@cache
def described_processor(source: Path = Path("/proc/cpuinfo")) -> str | None:
    """Describe this machine's processors from /proc/cpuinfo, in 0.1 ms; None if it does not list their instructions."""
    try:
        lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    split = (line.partition(":") for line in lines)
    facts = {(name.strip(), " ".join(value.split())) for name, _, value in split if name.strip() in _CPUINFO_FIELDS}
    return repr(sorted(facts)) if any(name in _INSTRUCTIONS and value for name, value in facts) else None


_OPTIONS: Final = {"opt": 2, "reloc": "pic", "codemodel": "small"}
#: integers with enough digits to overflow 32 bits
_LARGE: Final = re.compile(r"(?<![\w.%@])-?\d{10,}(?![\w.])")


@cache
def llvm() -> Any:
    """Load llvmlite's binding and initialise it for this machine. Raises KernelUnavailable."""
    try:
        from llvmlite import binding  # noqa: PLC0415 - 75 MB, for the processes that compile
    except (ImportError, OSError) as error:
        raise KernelUnavailable(f"kernels cannot be compiled: llvmlite cannot be loaded ({error})") from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def host_processor() -> tuple[str, str]:
    """Return LLVM's name for this processor and its features; machine code depends on both.

    Raises KernelUnavailable.
    """
    binding = llvm()
    try:
        return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    except RuntimeError as error:
        raise KernelUnavailable(f"LLVM does not know this processor: {error}") from error


@cache
def target() -> dict[str, str]:
    """Describe everything machine code depends on besides its text: system, processor, compiler and options.

    LLVM is only loaded if the system does not describe the processor. Raises KernelUnavailable.
    """
    try:
        compiler = f"llvmlite {version('llvmlite')} {_OPTIONS}"
    except PackageNotFoundError as error:
        raise KernelUnavailable("kernels cannot be compiled: llvmlite is not installed") from error
    return {
        "system": f"{sys.platform} {platform.machine()}",
        "processor": described_processor() or " ".join(host_processor()),
        "compiler": compiler,
    }


def machine_code(text: str, processor: tuple[str, str] | None = None) -> bytes:
    """Compile LLVM IR to an object file for a processor by name and features, ("x86-64-v3", ""), or for the host.

    Raises KernelUnavailable if llvmlite is missing, LLVM rejects the text, the host lacks an instruction that kernels
    need, or an integer in the text overflows its type.
    """
    require_integers_fit(text)
    binding = llvm()
    if processor is None:
        processor = host_processor()
        # Without FMA, or on a processor unknown to LLVM, x86 code would call a C function for each multiply-add.
        if platform.machine() in ("x86_64", "AMD64") and "+fma" not in processor[1].split(","):
            raise KernelUnavailable("this processor has no fused multiply-add, which kernels are written in")
    try:
        machine = target_machine(*processor)
        module = binding.parse_assembly(text, binding.create_context())
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        return bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise KernelUnavailable(f"LLVM did not compile a kernel: {str(error).strip()}") from error


def target_machine(name: str, features: str) -> Any:
    """Create LLVM's target machine for a processor of this machine's architecture. Raises KernelUnavailable."""
    binding = llvm()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, **_OPTIONS)


def require_integers_fit(text: str) -> None:
    """Raise KernelUnavailable if an integer in the text overflows its type.

    LLVM truncates such an integer silently, and an offset would then point anywhere.
    """
    for line in text.splitlines():
        for number in map(int, _LARGE.findall(line)):
            bits = 64 if "i64" in line else 32
            if not -(1 << bits - 1) <= number < 1 << bits - 1:
                raise KernelUnavailable(f"a kernel has a number that {bits} bits do not hold: {line.strip()}")


def link(data: bytes, name: str) -> tuple[int, Any]:
    """Load an object file with LLVM; return the address of its function, and the object that keeps it loaded.

    Raises KernelUnavailable.
    """
    binding = llvm()
    try:
        machine = target_machine(*host_processor())
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        engine.add_object_file(binding.ObjectFileRef.from_data(data))
        engine.finalize_object()
        address = engine.get_function_address(name)
    except (RuntimeError, OSError) as error:
        raise KernelUnavailable(f"LLVM did not load a kernel: {str(error).strip()}") from error
    if not address:
        raise KernelUnavailable(f"the object file of a kernel has no {name}")
    return address, engine


# Loading object files. ELF files for x86-64 are loaded here, in 0.1 ms and without LLVM; others by LLVM.
#
# The format is that of the System V ABI, AMD64 supplement. The loader lays out allocated sections one after the other
# and fills in the references between them. Kernels call no libraries, so all references are relative, and the image
# needs no fix-ups for the address where it ends up.

_FAILED: Final = ctypes.c_void_p(-1).value


class ExecutableMemory:
    """Memory for machine code that is never writable and executable at once. Raises KernelUnavailable if refused."""

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
        """Write the image and make it executable. Call it once."""
        ctypes.memmove(self.address, image, len(image))
        if _library().mprotect(self.address, self.nbytes, mmap.PROT_READ | mmap.PROT_EXEC):
            raise KernelUnavailable("the system refuses executable memory, so kernels are not compiled")

    def __del__(self) -> None:
        if self.address:
            _library().munmap(self.address, self.nbytes)


@cache
def _library() -> Any:
    """Load the system's mmap, mprotect and munmap. Python's own mmap cannot make memory executable later."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _UNWIND = 1, 2, 4, 0x70000001
_ALLOCATED: Final = 2
#: R_X86_64_PC32 and R_X86_64_PLT32: 32 bits, relative to their own address
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


class _Unsupported(Exception):
    """Object file that seems sound, but needs LLVM's loader."""


def load_function(data: bytes, name: str = "kernel") -> LoadedCode:
    """Load the function `name` of an object file into executable memory.

    Raises KernelUnavailable if the file is damaged or not for this machine, or if executable memory is refused.
    """
    try:
        image, start = _image(data, name.encode())
    except _Unsupported:
        return LoadedCode(*link(data, name))
    except (struct.error, IndexError, ValueError) as error:
        raise KernelUnavailable(f"the object file of a kernel is damaged ({error})") from error
    memory = ExecutableMemory(len(image))
    memory.write_image(image)
    return LoadedCode(memory.address + start, memory)


def _image(data: bytes, name: bytes) -> tuple[bytes, int]:
    """Return the memory image of an object file, and the offset of the function in it."""
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
        if sys.platform == "linux" and platform.machine() == "x86_64":  # LLVM may crash on other data
            raise ValueError("it is not for this machine")
        raise _Unsupported
    (start,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    return [_Section(*struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i)) for i in range(count)]


def _places(sections: list[_Section], limit: int) -> dict[int, int]:
    """Assign offsets in the image to the allocated sections, each of at most `most` bytes."""
    places, end = {}, 0
    for i, section in enumerate(sections):
        if section.flags & _ALLOCATED:
            if section.type not in (_PROGBITS, _UNWIND):
                raise _Unsupported
            if section.size > limit or section.align > mmap.PAGESIZE:
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
    """Fill in a section's references to other sections."""
    for offset, info, addend in struct.iter_unpack("<QQq", relocations):
        symbol = symbols[info >> 32]
        if info & 0xFFFFFFFF not in _RELATIVE or symbol.section not in places:
            raise _Unsupported
        position = section + offset
        struct.pack_into("<i", image, position, places[symbol.section] + symbol.value + addend - position)


def _start(symbols: list[_Symbol], places: dict[int, int], names: bytes, name: bytes, size: int) -> int:
    for symbol in symbols:
        if symbol.section in places and names[symbol.name :].startswith(name + b"\0"):
            start = places[symbol.section] + symbol.value
            if start < size:
                return start
    raise ValueError(f"it has no {name.decode()}")


# The kernel cache on disk. Its entries are executed, so a folder is used only if we own it and no other user can write
# to it. Each access checks the open folder, and looks up names relative to that very folder (openat), so that nobody
# can swap the folder after the check. An entry has a magic number, its key, and the hash of its code: a truncated,
# damaged or foreign file counts as absent. Several processes may share a folder. An entry is written to a temporary
# file and renamed, so that readers see all of it or none of it. There is no fsync: if a power loss damages an entry,
# its hash does not match.

#: approximate size limit of a folder, in bytes
MOST_BYTES_OF_A_FOLDER: Final = 256 << 20
#: bytes of object code that a store keeps in memory, besides loaded code
MOST_BYTES_IN_MEMORY: Final = 32 << 20
#: whether this system tells who owns a folder, and can look up names relative to an open one
FOLDERS_CAN_BE_CHECKED: Final = hasattr(os, "geteuid") and os.open in os.supports_dir_fd

_MAGIC: Final = b"gradserve kernel"
_FORMAT: Final = 1
_HEADER: Final = struct.Struct("<16sI32sQ32s")  # magic, format, key, length of the code, its SHA-256
_ENTRY: Final = ".kernel"
_PART: Final = ".part"  # an entry being written, or left by a writer that was killed
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class KernelFolder:
    """Entries of one folder. The first write creates it; the least recently used entries are evicted."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES_OF_A_FOLDER) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._unswept = most_bytes  # bytes written since the last sweep; a new process sweeps early

    def read_code(self, key: str) -> bytes | None:
        """Read the code cached for a key; None if there is no intact entry of ours.

        Raises OSError if the folder exists but cannot be used.
        """
        with suppress(FileNotFoundError), self._opened() as folder:
            code = unpacked(key, _content(key + _ENTRY, folder, self._most_bytes))
            if code is not None:
                with suppress(OSError):  # the folder may be read-only
                    os.utime(key + _ENTRY, dir_fd=folder, follow_symlinks=False)
            return code
        return None

    def write_code(self, key: str, code: bytes) -> None:
        """Write the code of a key, replacing an existing entry. Raises OSError if that fails."""
        entry = packed(key, code)
        if len(entry) > self._most_bytes:
            return
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._opened() as folder:
            _replace(key + _ENTRY, entry, folder)
            self._unswept += len(entry)
            if self._unswept > self._most_bytes // 16:
                self._sweep(folder)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _require_private(os.fstat(folder))
            yield folder
        finally:
            os.close(folder)

    def _sweep(self, folder: int) -> None:
        total = 0
        for _, name, nbytes in sorted(_listed(folder), reverse=True):
            total += nbytes
            if total > self._most_bytes:
                with suppress(OSError):  # another process has removed it
                    os.unlink(name, dir_fd=folder)
        self._unswept = 0


def packed(key: str, code: bytes) -> bytes:
    """Serialise the entry of a key (64 hexadecimal digits): header and code."""
    return _HEADER.pack(_MAGIC, _FORMAT, bytes.fromhex(key), len(code), hashlib.sha256(code).digest()) + code


def unpacked(key: str, entry: bytes) -> bytes | None:
    """Return the code of an entry; None if it is not exactly the entry of this key."""
    code = entry[_HEADER.size :]
    return code if entry and entry == packed(key, code) else None


def _require_private(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise PermissionError(f"it belongs to user {status.st_uid}, and this is user {os.geteuid()}")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError(f"other users can write to it (mode {stat.S_IMODE(status.st_mode):o})")


def _content(name: str, folder: int, most_bytes: int) -> bytes:
    """Read a file; return no bytes if it is absent, unreadable, not ours, or larger than `most_bytes`."""
    try:
        # O_NOFOLLOW: a symbolic link could point anywhere. O_NONBLOCK: opening a pipe must not wait for a writer.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    try:
        status = os.fstat(file)
        _require_private(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            return b""
        with os.fdopen(file, "rb", closefd=False) as stream:
            return stream.read()
    except OSError:
        return b""
    finally:
        os.close(file)


def _replace(name: str, entry: bytes, folder: int) -> None:
    part = secrets.token_hex(8) + _PART
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            rest = memoryview(entry)
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
        with suppress(FileNotFoundError):  # another process has evicted it
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise


def _listed(folder: int) -> Iterator[tuple[int, str, int]]:
    """Yield the time of last use, the name and the size in bytes of each of our files."""
    with os.scandir(folder) as files:
        for file in files:
            if file.name.endswith((_ENTRY, _PART)):
                with suppress(FileNotFoundError):  # another process has removed it
                    status = file.stat(follow_symlinks=False)
                    yield status.st_mtime_ns, file.name, status.st_size


def kernel_key(text: str, *, system: str, processor: str, compiler: str) -> str:
    """Return the key of a kernel, 64 hexadecimal digits: the SHA-256 of everything its code depends on.

    `text` is the compiler's input; `system`, `processor` and `compiler` are those of `target`.
    """
    return hashlib.sha256(repr((text, system, processor, compiler)).encode()).hexdigest()


class KernelStore:
    """Cache of object code by key: an LRU in memory, and all entries in `folder` if one is given and usable.

    If the folder is unusable or full, one line is logged and only memory is used. Threads may share a store, and
    processes may share a folder.
    """

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES_IN_MEMORY) -> None:
        self._folder = KernelFolder(folder) if folder and FOLDERS_CAN_BE_CHECKED else None
        self._cache: LRU[str, bytes] = LRU(most_bytes, len)
        self._lock = Lock()
        self._has_warned = False
        if folder and not FOLDERS_CAN_BE_CHECKED:
            self._warn(folder, "this system cannot tell whose it is")

    def get(self, key: str) -> bytes | None:
        """Return the code of a key exactly as stored, or None. Never raises disk errors."""
        code = self._cache.hit(key)
        if code is None:
            code = self._read_code(key)
            if code is not None:
                self._cache.put(key, code)
        return code

    def put(self, key: str, code: bytes) -> None:
        """Store the code of a key. Never raises disk errors."""
        self._cache.put(key, code)
        if self._folder is not None:
            try:
                self._folder.write_code(key, code)
            except OSError as error:
                self._warn(self._folder.path, error.strerror or str(error))

    def _read_code(self, key: str) -> bytes | None:
        if self._folder is not None:
            try:
                return self._folder.read_code(key)
            except OSError as error:
                self._warn(self._folder.path, error.strerror or str(error))
        return None

    def _warn(self, folder: Path, reason: str) -> None:
        with self._lock:
            had_warned, self._has_warned = self._has_warned, True
        if not had_warned:
            _logger.warning("cannot use %s, so kernels are only in memory: %s", folder, reason)
