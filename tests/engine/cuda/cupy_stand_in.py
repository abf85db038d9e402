"""A stand-in for the part of CuPy that executors use: NumPy computes, and streams and graphs keep lists of work.

Arrays lie in the memory of a pool, which has a limit. Work launched during capture is not done, but stored, and done
with each launch of the graph. During capture, the stand-in refuses what CuPy 14 refuses: BLAS and LAPACK, copies from
and to the host, and synchronization. Kernels in CUDA C are built by the machine's C compiler. Addresses are those of
host memory, so that kernels and libraries can access it.
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

#: memory of the card
TOTAL_BYTES = 1 << 34


class CUDADriverError(RuntimeError):
    """The error of the CUDA driver."""


class NVRTCError(RuntimeError):
    """The error of the compiler."""


# ------------------------------------------------------------ arrays


class DeviceArray(np.ndarray[Any, Any]):
    """An array of the card: a NumPy array in pool memory, whose work is launched on the current stream."""

    _memory: Memory | None

    def __new__(cls, shape: Any, dtype: Any = float, memptr: MemoryPointer | None = None) -> DeviceArray:
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        dtype = np.dtype(dtype)
        memptr = memptr or CARD.allocated(math.prod(shape) * dtype.itemsize)
        array = super().__new__(cls, shape, dtype, memptr.mem.raw, memptr.offset)
        array._memory = memptr.mem
        return array

    def __array_finalize__(self, of: Any) -> None:
        self._memory = getattr(of, "_memory", None)

    @property
    def data(self) -> MemoryPointer:  # type: ignore[override]
        """The pointer to its first element."""
        assert self._memory is not None
        return MemoryPointer(self._memory, self.ctypes.data - self._memory.ptr if self.size else 0)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        """Launch the function. BLAS is refused during capture."""
        if ufunc is np.matmul and any(getattr(x, "dtype", np.dtype(int)).kind == "f" for x in inputs):
            CARD.stream.refuse("cublas.setStream")
        if method == "at":
            return written(lambda x, key, *y: ufunc.at(x, _wrapped(x, key), *y), *inputs)
        outs = tuple(x for x in out if x is not None)
        return computed(getattr(ufunc, "__call__" if method == "__call__" else method), inputs, kwargs, outs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Launch the function, or return a view. Calls of BLAS or LAPACK, and waits, are refused during capture."""
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
        """Launch a fill, which loses the sign of zero as in CuPy."""
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
        """A host scalar."""
        return self.get().item(*args)

    def tolist(self) -> Any:
        """Host scalars."""
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
    """Launch a function that writes to one of its operands."""
    _no_host_arrays(operands)
    plain = _plain(operands)
    CARD.stream.launch(lambda: work(*plain))


def computed(function: Callable[..., Any], operands: Any, kwargs: Any, outs: Sequence[Any] = ()) -> Any:
    """Launch a function that writes to `outs`, or returns new arrays of the card or views of operands."""
    _no_host_arrays(operands)
    plain, kwargs = _plain(operands), _plain(kwargs)
    if outs:
        into = _plain(tuple(outs))
        out = into if isinstance(getattr(function, "__self__", function), np.ufunc) else into[0]
        CARD.stream.launch(lambda: function(*plain, out=out, **kwargs))
        return outs[0] if len(outs) == 1 else tuple(outs)
    return _results(lambda: function(*plain, **kwargs), [*_arrays(operands)])


def _results(again: Callable[[], Any], operands: Sequence[DeviceArray]) -> Any:
    """Wrap results: views of operands without a launch, other arrays in memory of their own."""
    value = again()
    if isinstance(value, tuple | list):
        return type(value)([_results(lambda k=k: again()[k], operands) for k in range(len(value))])
    if not isinstance(value, np.ndarray | np.generic):
        return value
    value = np.asarray(value)
    owner = next((x for x in operands if value.size and np.may_share_memory(value, _plain(x))), None)
    if owner is not None:
        view = value.view(DeviceArray)
        view._memory = owner._memory
        return view
    array = DeviceArray(value.shape, value.dtype)
    into = _plain(array)
    # The value is already right, except during capture: then it was computed from stale operands.
    CARD.stream.launch((lambda: np.copyto(into, value)) if CARD.stream.records is None else _again(into, again))
    return array


def _again(into: np.ndarray[Any, Any], again: Callable[[], Any]) -> Work:
    return lambda: np.copyto(into, again())


def as_device(value: Any, dtype: Any = None) -> DeviceArray:
    """An array of the card; host arrays are copied, which is refused during capture."""
    if isinstance(value, DeviceArray):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    CARD.stream.refuse("copy_from_host_async")
    host = np.asarray(value, dtype)
    array = DeviceArray(host.shape, host.dtype)
    np.copyto(_plain(array), host + 0 if host.ndim == 0 and host.dtype.kind == "f" else host)
    return array


def _plain(value: Any) -> Any:
    """The NumPy arrays in the same memory."""
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
    """Refuse host arrays as operands, as CuPy does."""
    if any(type(x) is np.ndarray and x.ndim for x in args):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")


def _has_mask(key: Any) -> bool:
    return any(isinstance(k, DeviceArray) and k.dtype == bool for k in (key if isinstance(key, tuple) else (key,)))


def _wrapped(x: np.ndarray[Any, Any], key: Any) -> Any:
    """Indices as CuPy reads them: wrapped around silently."""
    keys = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(k, np.ndarray) and k.dtype.kind in "iu" for k in keys):
        return key
    wrapped, axis = [], 0
    for place, k in enumerate(keys):
        if k is Ellipsis:
            axis = x.ndim - sum(other is not None for other in keys[place + 1 :])
        elif k is not None:
            axis += 1
            if isinstance(k, np.ndarray) and k.dtype.kind in "iu":
                wrapped.append(np.remainder(k, x.shape[axis - 1]))
                continue
        wrapped.append(k)
    return tuple(wrapped)


def _taken_along(x: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    return np.take_along_axis(x, np.remainder(indices, x.shape[axis]), axis)


# ------------------------------------------------------------ compiling


class _Program:
    """A text and its compiled code."""

    def __init__(self, text: str) -> None:
        self.text, self.code, self.log = text, b"", ""


_COMPILED: dict[str, bytes] = {}


def _on_host(text: str) -> str:
    """The text of a card's kernels for a C compiler: with other definitions before it."""
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
        """A kernel of the module, which takes one argument by value."""

        def kernel(grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
            table = np.array(args[0]).view(np.int64)
            launch = Launch(name, (grid[0], grid[1]), (block[0], block[1]), table, ())
            CARD.stream.launch(lambda: launch_on_host(self._library, launch))

        getattr(self._library, name)  # raises if there is no such kernel
        return kernel


class ElementwiseKernel:
    """The only elementwise kernel that executors use: it flags the first index out of range."""

    def __init__(self, inputs: str, outputs: str, body: str, name: str) -> None:
        assert (inputs, outputs, body) == ("T index, int64 least, int64 extent, int32 code", "raw int32 flag", _NOTE)

    def __call__(self, index: DeviceArray, least: int, extent: int, code: int, flag: DeviceArray) -> None:
        def note(index: np.ndarray[Any, Any], flag: np.ndarray[Any, Any]) -> None:
            if not flag[0] and ((index < least) | (index >= extent)).any():
                flag[0] = code

        written(note, index, flag)


# ------------------------------------------------------------ the modules


def _created_on_device(name: str) -> Callable[..., DeviceArray]:
    """A function that creates an array on the card, by a launch of its own."""

    def make(*args: Any, **kwargs: Any) -> DeviceArray:
        host = getattr(np, name)(*args, **kwargs)
        array = DeviceArray(host.shape, host.dtype)
        if name != "empty":
            into = _plain(array)
            CARD.stream.launch(lambda: np.copyto(into, host))
        return array

    return make


def _ascontiguousarray(x: Any, dtype: Any = None) -> DeviceArray:
    array = as_device(x, dtype)
    return array if array.flags.c_contiguous else array.copy()


def _as_strided(x: DeviceArray, shape: Any = None, strides: Any = None) -> DeviceArray:
    return computed(lambda plain: np.lib.stride_tricks.as_strided(plain, shape, strides), (x,), {})


def _pinned_pointer(memory: Any, offset: int) -> Any:
    """Like `PinnedMemoryPointer`, for the beginning of the memory."""
    assert offset == 0
    return memory


class _CuPy(types.ModuleType):
    """The module cupy: other names are NumPy's, whose functions launch if an operand is on the card."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def cupy_stand_in() -> dict[str, types.ModuleType]:
    """The modules by name, for those who import cupy."""
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
        **{name: _created_on_device(name) for name in ("arange", "empty", "eye", "full", "ones", "zeros", "tri")},
    }
    for name, value in own.items():
        setattr(cupy, name, value)
    cupyx = types.ModuleType("cupyx")
    cupyx.__spec__ = ModuleSpec("cupyx", None)
    cupyx.errstate = lambda **_: contextlib.nullcontext()  # type: ignore[attr-defined]
    return {"cupy": cupy, "cupyx": cupyx}
