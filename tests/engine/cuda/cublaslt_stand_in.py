"""A stand-in for cuBLASLt: C functions of the same signatures, whose products NumPy computes as the manual specifies.

Operands are column-major matrices with a leading dimension, transposed or not, in batches at fixed offsets or at the
addresses in an array. It refuses what the library refuses: attributes of a wrong size, pointers less aligned than
declared, too little workspace, matrices whose columns overlap, and epilogues with arrays of pointers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.cuda import cublaslt as lt
from tests.engine.cuda.card_memory import CARD

INVALID_VALUE, NOT_SUPPORTED = 7, 15
#: attributes and their sizes in bytes
_DESC = {lt.DESC_TRANSA: 4, lt.DESC_TRANSB: 4, lt.DESC_EPILOGUE: 4, lt.DESC_BIAS_POINTER: 8}
_LAYOUT = {lt.LAYOUT_BATCH_COUNT: 4, lt.LAYOUT_STRIDED_BATCH_OFFSET: 8, lt.LAYOUT_BATCH_MODE: 4}
_PREFERENCE = {lt.PREF_MAX_WORKSPACE_BYTES: 8, lt.PREF_REDUCTION_SCHEME_MASK: 4} | {
    lt.PREF_MIN_ALIGNMENT_A_BYTES + k: 4 for k in range(4)
}
_DTYPES = {number: np.dtype(name) for name, number in lt.DATA_TYPES.items()}

Array = np.ndarray[Any, Any]


class Described(NamedTuple):
    """An object of the library: what it was created with, and its attributes."""

    created_with: tuple[int, ...]
    attributes: dict[int, int]


class Called(NamedTuple):
    """A product that was launched."""

    compute: int
    dtype: np.dtype[Any]
    transposed: tuple[bool, bool]
    matrices: int
    by_pointers: bool
    workspace: int
    algorithm: int
    stream: int


class CublasLtStandIn:
    """The library that `CublasLt` is given. `wants` is the workspace of its algorithms, in bytes.

    There is one algorithm for each of `milliseconds`, its time by the card's clock. Launching the algorithms at the
    indices `refuses` fails.
    """

    def __init__(
        self,
        *,
        version: int = 130100,
        has_pointer_arrays: bool = True,
        wants: int = 0,
        milliseconds: Sequence[float] = (1.0,),
        refuses: Sequence[int] = (),
    ) -> None:
        self.version, self.has_pointer_arrays, self.wants = version, has_pointer_arrays, wants
        self.milliseconds, self.refuses = milliseconds, refuses
        self.calls: list[Called] = []
        self._alignments: dict[int, list[int]] = {}
        self.objects: dict[int, Described] = {}
        self._next = 0x1000
        self._text = ctypes.create_string_buffer(b"the value is invalid")
        for name, (result, *arguments) in lt.SIGNATURES.items():
            # A callback cannot return a string, but the address of one works.
            prototype = ctypes.CFUNCTYPE(ctypes.c_void_p if result is ctypes.c_char_p else result, *arguments)
            own = {
                "cublasLtGetVersion": self._version,
                "cublasLtGetStatusString": self._status_text,
                "cublasLtMatmulAlgoGetHeuristic": self._heuristic,
                "cublasLtMatmul": self._matmul,
            }
            setattr(self, name, prototype(own.get(name) or self._describing(name)))

    # ------------------------------------------------------------ objects

    def _describing(self, name: str) -> Any:
        sizes = _DESC if "Desc" in name else _LAYOUT if "Layout" in name else _PREFERENCE

        def create(handle_out: Any, *created_with: int) -> int:
            self._next += 0x100
            self.objects[self._next] = Described(created_with, {})
            handle_out[0] = self._next
            return 0

        def destroy(handle: int) -> int:
            return 0 if self.objects.pop(handle, None) else INVALID_VALUE

        def set_attribute(handle: int, attribute: int, value: int, size: int) -> int:
            is_too_new = sizes is _LAYOUT and attribute == lt.LAYOUT_BATCH_MODE and not self.has_pointer_arrays
            if sizes.get(attribute) != size or is_too_new:
                return INVALID_VALUE
            self.objects[handle].attributes[attribute] = int.from_bytes(
                ctypes.string_at(value, size), "little", signed=True
            )
            return 0

        return create if name.endswith("Create") else destroy if name.endswith("Destroy") else set_attribute

    def _version(self) -> int:
        return self.version

    def _status_text(self, status: int) -> int:
        return ctypes.addressof(self._text)

    # ------------------------------------------------------------ products

    def _heuristic(
        self, handle: int, desc: int, a: int, b: int, c: int, d: int, preference: int, count: int, out: Any, n_out: Any
    ) -> int:
        attributes = self.objects[preference].attributes
        n_out[0] = 0
        if self.wants > attributes[lt.PREF_MAX_WORKSPACE_BYTES]:
            return NOT_SUPPORTED
        epilogue = self.objects[desc].attributes.get(lt.DESC_EPILOGUE, 1)
        if epilogue != 1 and self.objects[d].attributes.get(lt.LAYOUT_BATCH_MODE):
            return NOT_SUPPORTED
        assert count >= 1
        assert attributes[lt.PREF_REDUCTION_SCHEME_MASK] == lt.REDUCTION_SCHEME_COMPUTE_TYPE
        self._alignments[desc] = [attributes[lt.PREF_MIN_ALIGNMENT_A_BYTES + k] for k in range(4)]
        n_out[0] = min(count, len(self.milliseconds))
        for k in range(n_out[0]):
            out[k].workspaceSize, out[k].state, out[k].algo.data[0] = self.wants, 0, 1 + k
        return 0

    def _matmul(self, _: int, desc: int, alpha: int, a: int, of_a: int, b: int, of_b: int, *rest: Any) -> int:
        beta, c, of_c, d, of_d, algo, workspace, nbytes, stream = rest
        operation, layouts = self.objects[desc], [self.objects[x] for x in (of_a, of_b, of_c, of_d)]
        addresses = [(x or 0) for x in (a, b, c, d)]
        by_pointers = bool(layouts[3].attributes.get(lt.LAYOUT_BATCH_MODE))
        matrices = layouts[3].attributes.get(lt.LAYOUT_BATCH_COUNT, 1)
        stored = [
            _StoredMatrices.of(each, address, by_pointers) for each, address in zip(layouts, addresses, strict=True)
        ]
        alignments, algorithm = self._alignments[desc], algo[0].data[0] - 1
        if algorithm in self.refuses:
            return NOT_SUPPORTED
        is_aligned = all(
            start % alignment == 0 for each, alignment in zip(stored, alignments, strict=True) for start in each.starts
        )
        if not is_aligned or nbytes < self.wants or (self.wants and not workspace) or any(x.overlaps for x in stored):
            return INVALID_VALUE
        number = ctypes.c_double if stored[3].dtype == np.float64 else ctypes.c_float
        factors = [number.from_address(x).value for x in (alpha, beta)]
        transposed = tuple(bool(operation.attributes.get(x)) for x in (lt.DESC_TRANSA, lt.DESC_TRANSB))
        bias = operation.attributes.get(lt.DESC_BIAS_POINTER, 0)
        compute = operation.created_with[0]
        stream = CARD.by_pointer[stream or 0]
        how = compute, stored[3].dtype, (transposed[0], transposed[1]), matrices, by_pointers, nbytes
        called = Called(*how, algorithm, stream.ptr)

        def work() -> None:
            self.calls.append(called)
            CARD.milliseconds += self.milliseconds[algorithm]
            if self.wants:
                ctypes.memset(workspace, 0x55, self.wants)
            for k in range(matrices):
                _multiply(stored, k, transposed, factors, bias, compute)

        stream.launch(work)
        return 0


class _StoredMatrices(NamedTuple):
    """Matrices in memory."""

    dtype: np.dtype[Any]
    rows: int
    columns: int
    leading: int
    starts: list[int]

    @classmethod
    def of(cls, layout: Described, address: int, by_pointers: bool) -> _StoredMatrices:
        number, rows, columns, leading = layout.created_with
        dtype, count = _DTYPES[number], layout.attributes.get(lt.LAYOUT_BATCH_COUNT, 1)
        step = layout.attributes.get(lt.LAYOUT_STRIDED_BATCH_OFFSET, 0) * dtype.itemsize
        starts = (
            list((ctypes.c_int64 * count).from_address(address))
            if by_pointers
            else [address + step * k for k in range(count)]
        )
        return cls(dtype, rows, columns, leading, starts)

    @property
    def overlaps(self) -> bool:
        """Whether a column begins before the previous one ends."""
        return self.leading < self.rows

    def matrix(self, k: int) -> Array:
        """The k-th matrix, as a writable view."""
        elements = self.leading * (self.columns - 1) + self.rows
        memory = (ctypes.c_ubyte * (elements * self.dtype.itemsize)).from_address(self.starts[k])
        return np.ndarray(
            (self.rows, self.columns), self.dtype, memory, 0, (self.dtype.itemsize, self.leading * self.dtype.itemsize)
        )


def _multiply(
    stored: Sequence[_StoredMatrices],
    k: int,
    transposed: Sequence[bool],
    factors: Sequence[float],
    bias: int,
    compute: int,
) -> None:
    """Compute d = α op(a) op(b) + β c + bias in float64, and round once."""
    a, b = (
        _read(each.matrix(k), compute).T if flag else _read(each.matrix(k), compute)
        for each, flag in zip(stored[:2], transposed, strict=True)
    )
    c, d = stored[2].matrix(k), stored[3].matrix(k)
    assert a.shape[1] == b.shape[0]
    assert (a.shape[0], b.shape[1]) == d.shape == c.shape
    result = factors[0] * (a @ b)
    if factors[1]:
        result = result + factors[1] * c.astype(np.float64)
    if bias:
        memory = (ctypes.c_ubyte * (d.shape[0] * d.dtype.itemsize)).from_address(bias)
        result = result + np.ndarray(d.shape[0], d.dtype, memory).astype(np.float64)[:, None]
    d[...] = result


def _read(x: Array, compute: int) -> Array:
    """An operand as it is read: with all of its bits, or truncated to those of TF32 or bfloat16."""
    dropped = {lt.COMPUTE_32F_FAST_TF32: 13, lt.COMPUTE_32F_FAST_16BF: 16}.get(compute, 0)
    if dropped:
        x = (np.ascontiguousarray(x).view(np.uint32) >> dropped << dropped).view(np.float32)
    return x.astype(np.float64)
