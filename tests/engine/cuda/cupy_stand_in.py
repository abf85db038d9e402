"""A stand-in for CuPy, as far as executors use it: NumPy computes, and streams and graphs keep lists of what to do.

Arrays lie in memory of a pool, which has a limit. What is launched on a stream that records is not done, but kept, and
done with each launch of the graph. While one records, what CuPy 14 refuses is refused: BLAS and LAPACK, copies from and
to the host, and whatever waits. Kernels in CUDA C are built by the machine's C compiler. Addresses are those of memory
here, so that kernels and libraries that are given some find what lies there.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import re
import subprocess
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np

from engine.cuda.card_recipe import card_definitions
from engine.cuda.cuda_text import cuda_definitions
from engine.cuda.launch import Launch
from engine.cuda.transfers import _NOTE
from tests.engine.codegen.kernels.c_compiler import COMPILER, compile_c
from tests.engine.codegen.kernels.cuda_shim import launch_on_host, shimmed
from tests.engine.cuda.card_memory import (
    CARD,
    TO_DEVICE,
    TO_HOST,
    CUDARuntimeError,
    Event,
    Memory,
    MemoryPointer,
    MemoryPool,
    OutOfMemoryError,
    UnownedMemory,
    Work,
    elapsed_time,
)
from tests.engine.cuda.running import HALF_ON_HOST

#: of the card
TOTAL_BYTES = 1 << 34


class CUDADriverError(RuntimeError):
    """The driver's."""


class NVRTCError(RuntimeError):
    """The compiler's."""


# ------------------------------------------------------------ arrays


class DeviceArray(np.ndarray[Any, Any]):
    """An array of the card: NumPy's, on memory of a pool, whose work is launched on the current stream."""

    _memory: Memory | None

    def __new__(cls, shape: Any, dtype: Any = float, memptr: MemoryPointer | None = None) -> DeviceArray:
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        dtype = np.dtype(dtype)
        memptr = memptr or CARD.allocated(math.prod(shape) * dtype.itemsize)
        made = super().__new__(cls, shape, dtype, memptr.mem.raw, memptr.offset)
        made._memory = memptr.mem
        return made

    def __array_finalize__(self, of: Any) -> None:
        self._memory = getattr(of, "_memory", None)

    @property
    def data(self) -> MemoryPointer:  # type: ignore[override]
        """Where it begins."""
        assert self._memory is not None
        return MemoryPointer(self._memory, self.ctypes.data - self._memory.ptr if self.size else 0)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        """Launched. BLAS is refused while a stream records."""
        if ufunc is np.matmul and any(getattr(x, "dtype", np.dtype(int)).kind == "f" for x in inputs):
            CARD.stream.refuse("cublas.setStream")
        if method == "at":
            return written(lambda x, key, *y: ufunc.at(x, _wrapped(x, key), *y), *inputs)
        outs = tuple(x for x in out if x is not None)
        return computed(getattr(ufunc, "__call__" if method == "__call__" else method), inputs, kwargs, outs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Launched, or a view. What is known to ask BLAS or LAPACK, or to wait, is refused while a stream records."""
        if "linalg" in func.__module__ or func.__name__ in _BY_BLAS:
            CARD.stream.refuse(func.__name__)
        if func.__name__ in _WAITING:
            CARD.stream.wait()
        if func in _WRITES:
            return written(lambda *x: func(*x, **_plain(kwargs)), *args)
        if func is np.take_along_axis:
            return computed(_taken_along, args, kwargs)
        out = kwargs.pop("out", None)
        return computed(func, args, kwargs, () if out is None else (out,))

    def __getitem__(self, key: Any) -> Any:
        if _has_mask(key):
            CARD.stream.wait()
        return computed(lambda x, k: x[_wrapped(x, k)], (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(value) is np.ndarray and value.ndim:
            CARD.stream.refuse("copy_from_host_async")
            value = as_device(value)
        if _has_mask(key):
            CARD.stream.wait()
        written(lambda x, k, v: x.__setitem__(_wrapped(x, k), v), self, key, value)

    def get(self) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        CARD.stream.wait()
        return np.array(_plain(self))

    def fill(self, value: Any) -> None:
        """Launched. CuPy's loses the sign of zero."""
        written(lambda x: x.fill(value + 0), self)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __index__(self) -> int:
        return int(self.get())

    def item(self, *args: Any) -> Any:
        """A number of the host."""
        return self.get().item(*args)

    def tolist(self) -> Any:
        """Numbers of the host."""
        return self.get().tolist()


def _method(name: str) -> Any:
    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        if name == "nonzero":
            CARD.stream.wait()
        out = kwargs.pop("out", None)
        work = lambda x, *y, **z: getattr(x, name)(*y, **z)
        return computed(work, (self, *args), kwargs, () if out is None else (out,))

    return method


for _name in ("argmax", "argmin", "argsort", "astype", "copy", "cumsum", "cumprod", "nonzero", "repeat"):
    setattr(DeviceArray, _name, _method(_name))

_BY_BLAS = {"dot", "einsum", "inner", "tensordot", "vdot"}
_WAITING = {"argwhere", "flatnonzero", "nonzero", "unique", "array_equal", "allclose"}
_WRITES = {np.copyto, np.put_along_axis, np.put, np.place, np.fill_diagonal}


def written(work: Callable[..., object], *operands: Any) -> None:
    """Launch what writes to one of its operands."""
    _no_host_arrays(operands)
    plain = _plain(operands)
    CARD.stream.launch(lambda: work(*plain))


def computed(function: Callable[..., Any], operands: Any, kwargs: Any, outs: Sequence[Any] = ()) -> Any:
    """Launch a function that writes to `outs`; or whose results are new arrays of the card, or views of operands."""
    _no_host_arrays(operands)
    plain, kwargs = _plain(operands), _plain(kwargs)
    if outs:
        into = _plain(tuple(outs))
        out = into if isinstance(getattr(function, "__self__", function), np.ufunc) else into[0]
        CARD.stream.launch(lambda: function(*plain, out=out, **kwargs))
        return outs[0] if len(outs) == 1 else tuple(outs)
    return _results(lambda: function(*plain, **kwargs), [*_arrays(operands)])


def _results(again: Callable[[], Any], operands: Sequence[DeviceArray]) -> Any:
    """Views of operands are such, and nothing is launched for them; other arrays have memory of their own."""
    value = again()
    if isinstance(value, tuple | list):
        return type(value)([_results(lambda k=k: again()[k], operands) for k in range(len(value))])
    if not isinstance(value, np.ndarray | np.generic):
        return value
    value = np.asarray(value)
    owner = next((x for x in operands if value.size and np.may_share_memory(value, _plain(x))), None)
    if owner is not None:
        seen = value.view(DeviceArray)
        seen._memory = owner._memory
        return seen
    made = DeviceArray(value.shape, value.dtype)
    into = _plain(made)
    # What it is by now is right, unless it is recorded: then nothing was computed yet.
    CARD.stream.launch((lambda: np.copyto(into, value)) if CARD.stream.records is None else _again(into, again))
    return made


def _again(into: np.ndarray[Any, Any], again: Callable[[], Any]) -> Work:
    return lambda: np.copyto(into, again())


def as_device(value: Any, dtype: Any = None) -> DeviceArray:
    """An array of the card; a copy of what lies on the host, which no recording holds."""
    if isinstance(value, DeviceArray):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    CARD.stream.refuse("copy_from_host_async")
    host = np.asarray(value, dtype)
    made = DeviceArray(host.shape, host.dtype)
    np.copyto(_plain(made), host + 0 if host.ndim == 0 and host.dtype.kind == "f" else host)
    return made


def _plain(value: Any) -> Any:
    """NumPy's arrays, in the same memory."""
    if isinstance(value, DeviceArray):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)([_plain(x) for x in value])
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    return value


def _arrays(value: Any) -> Iterator[DeviceArray]:
    if isinstance(value, DeviceArray):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _arrays(one)


def _no_host_arrays(args: Any) -> None:
    """CuPy takes none for an operand."""
    if any(type(x) is np.ndarray and x.ndim for x in args):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")


def _has_mask(key: Any) -> bool:
    return any(isinstance(k, DeviceArray) and k.dtype == bool for k in (key if isinstance(key, tuple) else (key,)))


def _wrapped(x: np.ndarray[Any, Any], key: Any) -> Any:
    """Indices as CuPy reads them: around, without a word."""
    keys = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(k, np.ndarray) and k.dtype.kind in "iu" for k in keys):
        return key
    found, axis = [], 0
    for place, k in enumerate(keys):
        if k is Ellipsis:
            axis = x.ndim - sum(other is not None for other in keys[place + 1 :])
        elif k is not None:
            axis += 1
            if isinstance(k, np.ndarray) and k.dtype.kind in "iu":
                found.append(np.remainder(k, x.shape[axis - 1]))
                continue
        found.append(k)
    return tuple(found)


def _taken_along(x: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    return np.take_along_axis(x, np.remainder(indices, x.shape[axis]), axis)


# ------------------------------------------------------------ compiling


class _Program:
    """A text, and what it was compiled to."""

    def __init__(self, text: str) -> None:
        self.text, self.code, self.log = text, b"", ""


_COMPILED: dict[str, bytes] = {}


def _on_host(text: str) -> str:
    """The text of a card's kernels as a C compiler takes it: with other definitions before them."""
    heads = {
        card_definitions("float16"): ("float32", HALF_ON_HOST),
        cuda_definitions("float32"): ("float32", ""),
        cuda_definitions("float64"): ("float64", ""),
    }
    for head, (dtype, instead) in heads.items():
        if text.startswith(head):
            kernels = re.sub(r"^struct Table \{[^}]*\};$", "", text[len(head) :], flags=re.MULTILINE)
            return shimmed(dtype, instead + kernels)
    raise NVRTCError("NVRTC_ERROR_COMPILATION")


def _compile(program: _Program, options: Sequence[str]) -> None:
    if COMPILER is None or "--fmad=false" not in options:
        raise NVRTCError("NVRTC_ERROR_INVALID_OPTION")
    if program.text not in _COMPILED:
        with tempfile.TemporaryDirectory() as folder:
            text = _on_host(program.text)
            try:
                compile_c(text, Path(folder), "-O1", "-Wno-unknown-pragmas")
            except subprocess.CalledProcessError as error:
                raise NVRTCError(f"NVRTC_ERROR_COMPILATION: {error}") from None
            _COMPILED[program.text] = (Path(folder) / "kernel.so").read_bytes()
    program.code = _COMPILED[program.text]


class Module:
    """Loaded machine code."""

    def load(self, code: bytes) -> None:
        """Raises CUDADriverError."""
        if not code.startswith(b"\x7fELF"):
            raise CUDADriverError("CUDA_ERROR_INVALID_IMAGE")
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(code)
            file.flush()
            self._library = ctypes.CDLL(file.name)

    def get_function(self, name: str) -> Callable[..., None]:
        """A kernel of it, which takes one argument by value."""

        def kernel(grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
            table = np.array(args[0]).view(np.int64)
            launch = Launch(name, (grid[0], grid[1]), (block[0], block[1]), table, ())
            CARD.stream.launch(lambda: launch_on_host(self._library, launch))

        getattr(self._library, name)  # raises where there is no such kernel
        return kernel


class ElementwiseKernel:
    """The one kernel of its kind that executors have: it notes the first index outside."""

    def __init__(self, inputs: str, outputs: str, body: str, name: str) -> None:
        assert (inputs, outputs, body) == ("T index, int64 least, int64 extent, int32 code", "raw int32 flag", _NOTE)

    def __call__(self, index: DeviceArray, least: int, extent: int, code: int, flag: DeviceArray) -> None:
        def note(index: np.ndarray[Any, Any], flag: np.ndarray[Any, Any]) -> None:
            if not flag[0] and ((index < least) | (index >= extent)).any():
                flag[0] = code

        written(note, index, flag)


# ------------------------------------------------------------ the modules


def _kept_on_device(name: str) -> Callable[..., DeviceArray]:
    """What makes an array of numbers that nobody reads: a kernel of its own."""

    def make(*args: Any, **kwargs: Any) -> DeviceArray:
        host = getattr(np, name)(*args, **kwargs)
        made = DeviceArray(host.shape, host.dtype)
        if name != "empty":
            into = _plain(made)
            CARD.stream.launch(lambda: np.copyto(into, host))
        return made

    return make


def _ascontiguousarray(x: Any, dtype: Any = None) -> DeviceArray:
    there = as_device(x, dtype)
    return there if there.flags.c_contiguous else there.copy()


def _as_strided(x: DeviceArray, shape: Any = None, strides: Any = None) -> DeviceArray:
    return computed(lambda plain: np.lib.stride_tricks.as_strided(plain, shape, strides), (x,), {})


def _pinned_pointer(memory: Any, offset: int) -> Any:
    """As `PinnedMemoryPointer`, of the beginning of some memory."""
    assert offset == 0
    return memory


class _CuPy(types.ModuleType):
    """The module cupy: what is not here is NumPy's, whose functions launch where an operand is of the card."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def cupy_stand_in() -> dict[str, types.ModuleType]:
    """Modules by name, as they are to be found by who imports cupy."""
    cupy = _CuPy("cupy")
    cupy.__spec__ = ModuleSpec("cupy", None)
    device = types.SimpleNamespace(id=0, compute_capability="90", mem_info=(TOTAL_BYTES, TOTAL_BYTES))
    nvrtc = types.SimpleNamespace(
        NVRTCError=NVRTCError,
        getVersion=lambda: (13, 0),
        createProgram=lambda text, *_: _Program(text),
        compileProgram=_compile,
        getCUBIN=lambda program: program.code,
        getProgramLog=lambda program: program.log,
        destroyProgram=lambda program: None,
    )
    cuda = types.SimpleNamespace(
        Device=lambda: device,
        MemoryPool=MemoryPool,
        MemoryPointer=MemoryPointer,
        UnownedMemory=UnownedMemory,
        Stream=CARD.new_stream,
        Event=Event,
        get_elapsed_time=elapsed_time,
        alloc=CARD.allocated,
        PinnedMemory=CARD.pinned_memory,
        PinnedMemoryPointer=_pinned_pointer,
        using_allocator=CARD.using_allocator,
        get_current_stream=lambda: CARD.stream,
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        runtime=types.SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceProperties=lambda _: {"name": b"a card that is none"},
            memsetAsync=lambda address, value, nbytes, _: CARD.stream.launch(
                lambda: ctypes.memset(address, value, nbytes)
            ),
            memcpyAsync=lambda to, of, nbytes, kind, stream: CARD.by_pointer[stream].copy(to, of, nbytes, kind),
            memcpyHostToDevice=TO_DEVICE,
            memcpyDeviceToHost=TO_HOST,
            hostRegister=CARD.register,
            hostUnregister=CARD.unregister,
        ),
        driver=types.SimpleNamespace(CUDADriverError=CUDADriverError),
        function=types.SimpleNamespace(Module=Module),
        nvrtc=nvrtc,
    )
    own = {
        "cuda": cuda,
        "ndarray": DeviceArray,
        "ElementwiseKernel": ElementwiseKernel,
        "is_available": lambda: True,
        "get_default_memory_pool": lambda: CARD.pool,
        "asnumpy": lambda x: x.get(),
        "asarray": as_device,
        "array": lambda x, dtype=None, order="K": as_device(np.asarray(x, order=order), dtype).copy(),
        "ascontiguousarray": _ascontiguousarray,
        "lib": types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=_as_strided)),
        **{name: _kept_on_device(name) for name in ("arange", "empty", "eye", "full", "ones", "zeros", "tri")},
    }
    for name, value in own.items():
        setattr(cupy, name, value)
    cupyx = types.ModuleType("cupyx")
    cupyx.__spec__ = ModuleSpec("cupyx", None)
    cupyx.errstate = lambda **_: contextlib.nullcontext()  # type: ignore[attr-defined]
    return {"cupy": cupy, "cupyx": cupyx}
