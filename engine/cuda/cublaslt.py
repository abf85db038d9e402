"""cuBLASLt through its C interface: the functions, constants and structures that products need, as in `cublasLt.h`.

cuBLASLt reads matrices in column-major order, and the rows of c are the columns of cᵀ = bᵀ aᵀ. So b is its first
operand and a its second, each with a transpose flag if its other axis is the contiguous one; nothing is copied
(`stored_products`). A bias, one element per column of c, is added by its epilogue.

Source: the cuBLAS manual, chapter 3, and the headers cublasLt.h, cublas_api.h and library_types.h of version 13, whose
constants are the same in version 12.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from itertools import product as combinations
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from engine.codegen.microkernels.product import MatrixLayout, Product
from engine.codegen.native.machine_code import KernelUnavailable
from engine.cuda.autotuning import MAX_CANDIDATES
from engine.ir.run_report import PRECISIONS, Precision
from engine.ir.tensor_type import FLOAT16, FLOAT32, FLOAT64

#: cublasStatus_t
SUCCESS: Final = 0
#: cudaDataType_t
R_32F: Final = 0
R_64F: Final = 1
R_16F: Final = 2
#: dtype → its cudaDataType_t
DATA_TYPES: Final[Mapping[str, int]] = MappingProxyType({FLOAT16.name: R_16F, FLOAT32.name: R_32F, FLOAT64.name: R_64F})
#: cublasComputeType_t
COMPUTE_32F: Final = 68
COMPUTE_64F: Final = 70
COMPUTE_32F_FAST_16BF: Final = 75
COMPUTE_32F_FAST_TF32: Final = 77
#: cublasOperation_t
OP_N: Final = 0
OP_T: Final = 1
#: cublasLtMatmulDescAttributes_t
DESC_TRANSA: Final = 3
DESC_TRANSB: Final = 4
DESC_EPILOGUE: Final = 7
DESC_BIAS_POINTER: Final = 8
#: cublasLtEpilogue_t
EPILOGUE_BIAS: Final = 4
#: cublasLtMatrixLayoutAttribute_t
LAYOUT_BATCH_COUNT: Final = 5
LAYOUT_STRIDED_BATCH_OFFSET: Final = 6
LAYOUT_BATCH_MODE: Final = 8
#: cublasLtBatchMode_t
BATCH_MODE_POINTER_ARRAY: Final = 1
#: cublasLtMatmulPreferenceAttributes_t
PREF_MAX_WORKSPACE_BYTES: Final = 1
PREF_REDUCTION_SCHEME_MASK: Final = 3
PREF_MIN_ALIGNMENT_A_BYTES: Final = 5
PREF_MIN_ALIGNMENT_B_BYTES: Final = 6
PREF_MIN_ALIGNMENT_C_BYTES: Final = 7
PREF_MIN_ALIGNMENT_D_BYTES: Final = 8
#: cublasLtReductionScheme_t
REDUCTION_SCHEME_COMPUTE_TYPE: Final = 2
#: limits of an extent, and of the number of calls for a batch
MAX_EXTENT: Final = 2**31 - 1
MAX_BATCH_CALLS: Final = 64
#: precision → how float32 operands are read; sums are float32. `tf32x3` consists of several products
COMPUTE_TYPES: Final[Mapping[Precision, int]] = MappingProxyType(
    dict(zip(PRECISIONS, (COMPUTE_32F, COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_32F_FAST_16BF), strict=True))
)

#: byte offsets of a matrix from the first element of a, of b, and of c
Starts = tuple[int, int, int]


class MatmulAlgo(ctypes.Structure):
    """cublasLtMatmulAlgo_t: an algorithm and its configuration. Its bytes may be stored for the same version."""

    _fields_ = (("data", c_uint64 * 8),)

    @property
    def code(self) -> bytes:
        """Its bytes, for storage."""
        return bytes(self)


class HeuristicResult(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: a suitable algorithm, and its workspace."""

    _fields_ = (
        ("algo", MatmulAlgo),
        ("workspaceSize", c_size_t),
        ("state", c_int),
        ("wavesCount", c_float),
        ("reserved", c_int * 4),
    )


#: result type and argument types of each function
SIGNATURES: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {
        "cublasLtGetVersion": (c_size_t,),
        "cublasLtGetStatusString": (c_char_p, c_int),
        "cublasLtCreate": (c_int, POINTER(c_void_p)),
        "cublasLtDestroy": (c_int, c_void_p),
        "cublasLtMatmulDescCreate": (c_int, POINTER(c_void_p), c_int, c_int),
        "cublasLtMatmulDescDestroy": (c_int, c_void_p),
        "cublasLtMatmulDescSetAttribute": (c_int, c_void_p, c_int, c_void_p, c_size_t),
        "cublasLtMatrixLayoutCreate": (c_int, POINTER(c_void_p), c_int, c_uint64, c_uint64, c_int64),
        "cublasLtMatrixLayoutDestroy": (c_int, c_void_p),
        "cublasLtMatrixLayoutSetAttribute": (c_int, c_void_p, c_int, c_void_p, c_size_t),
        "cublasLtMatmulPreferenceCreate": (c_int, POINTER(c_void_p)),
        "cublasLtMatmulPreferenceDestroy": (c_int, c_void_p),
        "cublasLtMatmulPreferenceSetAttribute": (c_int, c_void_p, c_int, c_void_p, c_size_t),
        "cublasLtMatmulAlgoGetHeuristic": (c_int, *(c_void_p,) * 7, c_int, POINTER(HeuristicResult), POINTER(c_int)),
        "cublasLtMatmul": (c_int, *(c_void_p,) * 12, POINTER(MatmulAlgo), c_void_p, c_size_t, c_void_p),
    }
)


class CublasLtError(RuntimeError):
    """Error of cuBLASLt, with its reason."""


class StoredMatrix(NamedTuple):
    """Column-major matrix, and whether it is read `transposed`.

    `leading` and `offset` are in elements: to the next column, and to the next matrix of a batch.
    """

    rows: int
    columns: int
    leading: int
    offset: int = 0
    transposed: bool = False


class MatmulTerms(NamedTuple):
    """Description of d = a · b, or d += a · b if `adds`, for which cuBLASLt proposes algorithms.

    The `matrices` of a batch are at fixed offsets, or, if `by_pointers`, at the addresses in an array on the GPU.
    `compute` is a cublasComputeType_t. `alignments` of a, b, and d are powers of two, up to 256. `bias` is the address
    of a vector, as long as d has rows, that is added to each of its columns, or 0. `workspace` is in bytes. If
    `widens`, d is float32.
    """

    dtype: str
    compute: int
    a: StoredMatrix
    b: StoredMatrix
    d: StoredMatrix
    matrices: int = 1
    by_pointers: bool = False
    adds: bool = False
    alignments: tuple[int, int, int] = (256, 256, 256)
    bias: int = 0
    workspace: int = 0
    widens: bool = False

    @property
    def matrices_stored(self) -> tuple[tuple[StoredMatrix, str], ...]:
        """Matrices a, b and d, each with its dtype."""
        wide = FLOAT32.name if self.widens else self.dtype
        return (self.a, self.dtype), (self.b, self.dtype), (self.d, wide)


class CublasLt:
    """The library, with a handle for the current GPU. Thread-safe."""

    def __init__(self, library: Any) -> None:
        """`library` has the functions of SIGNATURES. Raises KernelUnavailable."""
        for name, (result, *arguments) in SIGNATURES.items():
            function = getattr(library, name, None)
            if function is None:
                raise KernelUnavailable(f"this cuBLASLt has no {name}")
            function.restype, function.argtypes = result, arguments
        self.functions = library
        self.version = int(library.cublasLtGetVersion())
        self.handle = self._create("", self)

    def candidates(self, matmul: Matmul, count: int) -> list[HeuristicResult]:
        """Return the algorithms proposed for a product, in order of expected speed. Raises KernelUnavailable."""
        terms, (a, b, d) = matmul.terms, matmul.terms.alignments
        attributes = [
            (PREF_MAX_WORKSPACE_BYTES, c_uint64(terms.workspace)),
            # Partial sums are added in the compute type, and rounded once.
            (PREF_REDUCTION_SCHEME_MASK, c_uint32(REDUCTION_SCHEME_COMPUTE_TYPE)),
            (PREF_MIN_ALIGNMENT_A_BYTES, c_uint32(a)),
            (PREF_MIN_ALIGNMENT_B_BYTES, c_uint32(b)),
            (PREF_MIN_ALIGNMENT_C_BYTES, c_uint32(d)),
            (PREF_MIN_ALIGNMENT_D_BYTES, c_uint32(d)),
        ]
        preference = self._create("MatmulPreference", owner := _Owner(), attributes=attributes)
        results, returned = (HeuristicResult * count)(), c_int()
        status = self.functions.cublasLtMatmulAlgoGetHeuristic(
            *(self.handle, matmul.operation, *matmul.layouts, matmul.layouts[-1], preference),
            *(count, results, byref(returned)),
        )
        del owner
        self._check(status, "cublasLtMatmulAlgoGetHeuristic")
        usable = [x for x in results[: returned.value] if x.state == SUCCESS and x.workspaceSize <= terms.workspace]
        if not usable:
            raise KernelUnavailable(f"cuBLASLt has no algorithm for a product of {terms.dtype} that lies so")
        return usable

    def layout(self, matrix: StoredMatrix, dtype: str, terms: MatmulTerms, owner: object) -> c_void_p:
        """Create a cublasLtMatrixLayout_t that is destroyed with its owner. Raises KernelUnavailable."""
        attributes: list[tuple[int, Any]] = (
            [(LAYOUT_BATCH_COUNT, c_int32(terms.matrices))] if terms.matrices > 1 else []
        )
        if terms.by_pointers:
            attributes.append((LAYOUT_BATCH_MODE, c_uint32(BATCH_MODE_POINTER_ARRAY)))
        elif terms.matrices > 1:
            attributes.append((LAYOUT_STRIDED_BATCH_OFFSET, c_int64(matrix.offset)))
        arguments = DATA_TYPES[dtype], matrix.rows, matrix.columns, max(matrix.leading, 1)
        return self._create("MatrixLayout", owner, *arguments, attributes=attributes)

    def operation(self, terms: MatmulTerms, owner: object) -> c_void_p:
        """Create a cublasLtMatmulDesc_t that is destroyed with its owner. Raises KernelUnavailable."""
        scale = R_64F if terms.dtype == FLOAT64.name else R_32F
        attributes: list[tuple[int, Any]] = [
            (DESC_TRANSA, c_int32(OP_T if terms.a.transposed else OP_N)),
            (DESC_TRANSB, c_int32(OP_T if terms.b.transposed else OP_N)),
        ]
        if terms.bias:
            attributes += [(DESC_EPILOGUE, c_uint32(EPILOGUE_BIAS)), (DESC_BIAS_POINTER, c_void_p(terms.bias))]
        return self._create("MatmulDesc", owner, terms.compute, scale, attributes=attributes)

    def _create(
        self, kind: str, owner: object, *arguments: int, attributes: Sequence[tuple[int, Any]] = ()
    ) -> c_void_p:
        """Create a handle of the library with its attributes; it is destroyed with its owner."""
        create, set_attribute = f"cublasLt{kind}Create", f"cublasLt{kind}SetAttribute"
        handle = c_void_p()
        self._check(getattr(self.functions, create)(byref(handle), *arguments), create)
        # Not at interpreter exit: the driver may already be unloaded.
        weakref.finalize(owner, getattr(self.functions, f"cublasLt{kind}Destroy"), handle).atexit = False
        for attribute, value in attributes:
            status = getattr(self.functions, set_attribute)(handle, attribute, byref(value), ctypes.sizeof(value))
            self._check(status, f"{set_attribute} of attribute {attribute}")
        return handle

    def _check(self, status: int, call: str) -> None:
        """Raise KernelUnavailable for a failed call; nothing has been launched yet."""
        if status != SUCCESS:
            raise KernelUnavailable(f"{call}: {self.reason(status)}")

    def reason(self, status: int) -> str:
        """Return the name of a status."""
        text: bytes | None = self.functions.cublasLtGetStatusString(status)
        return text.decode() if text else f"status {status}"


class _Owner:
    """Owner of a preference, until it is deleted."""


class Matmul:
    """Product that is ready to be launched on operands at any addresses with its alignments.

    Its algorithm is the first that the library's heuristics propose, or the one whose code is `chosen`, if it is among
    the `proposed` ones.
    """

    def __init__(self, library: CublasLt, terms: MatmulTerms, chosen: bytes | None = None) -> None:
        """Create the library's descriptors of the product. Raises KernelUnavailable."""
        self._library, self.terms = library, terms
        self.operation = library.operation(terms, self)
        self.layouts: Sequence[c_void_p] = [library.layout(x, dtype, terms, self) for x, dtype in terms.matrices_stored]
        number = ctypes.c_double if terms.dtype == FLOAT64.name else c_float
        self._alpha, self._beta = number(1), number(1 if terms.adds else 0)
        self.proposed = library.candidates(self, MAX_CANDIDATES)
        algos = [each.algo for each in self.proposed]
        self._algo = next((algo for algo in algos if algo.code == chosen), algos[0])

    def launch(self, a: int, b: int, d: int, workspace: int, stream: int) -> None:
        """Launch the product on a stream, on addresses of matrices, or of arrays of their addresses.

        Raises CublasLtError.
        """
        of_a, of_b, of_d = self.layouts
        status = self._library.functions.cublasLtMatmul(
            self._library.handle,
            self.operation,
            *(ctypes.addressof(self._alpha), a, of_a, b, of_b, ctypes.addressof(self._beta), d, of_d, d, of_d),
            byref(self._algo),
            workspace,
            self.terms.workspace,
            stream,
        )
        if status != SUCCESS:
            raise CublasLtError(f"cublasLtMatmul: {self._library.reason(status)}")


class StoredProduct(NamedTuple):
    """Product cᵀ = bᵀ aᵀ as one call of `matrices` matrices at each of `starts`.

    If `by_pointers`, it is one call with a matrix at each start. The operands are bᵀ and aᵀ as they are stored.
    """

    first: StoredMatrix
    second: StoredMatrix
    result: StoredMatrix
    matrices: int
    starts: tuple[Starts, ...]
    by_pointers: bool = False


class _Axis(NamedTuple):
    """Batch axis of extent above 1, with its strides in bytes in a, b and c."""

    extent: int
    steps: Starts


def compute_type(dtype: str, precision: Precision) -> int:
    """Return the cublasComputeType_t of products of a dtype: float16 is summed in float32."""
    if dtype == "float32":
        return COMPUTE_TYPES[precision]
    return COMPUTE_64F if dtype == "float64" else COMPUTE_32F


def stored_products(product: Product, *, widens: bool = False) -> list[StoredProduct]:
    """Return the ways to store a product, the best one first. If `widens`, c is float32.

    There is none for integers, for empty matrices, or if neither axis of a matrix is contiguous. A batch that does not
    merge into one axis is computed with arrays of pointers, or with a call for each entry of all axes but the longest.
    """
    extents = (*product.batch, product.rows, product.inner, product.columns)
    if product.dtype not in DATA_TYPES or 0 in extents or max(extents) > MAX_EXTENT:
        return []
    axes = merged_batch_axes(product)
    matrices = [
        _stored(product.b, product.columns, product.inner, product.itemsize),
        _stored(product.a, product.inner, product.rows, product.itemsize),
        _stored(product.c, product.columns, product.rows, FLOAT32.itemsize if widens else product.itemsize),
    ]
    if None in matrices or any(step % product.itemsize or step < 0 for axis in axes for step in axis.steps):
        return []
    first, second, result = (matrix for matrix in matrices if matrix is not None)
    if result.transposed:
        return []
    sizes = product.itemsize, product.itemsize, FLOAT32.itemsize if widens else product.itemsize
    return _batched(StoredProduct(first, second, result, 1, ((0, 0, 0),)), axes, sizes)


def merged_batch_axes(product: Product) -> list[_Axis]:
    """Return the axes of a batch of extent above 1, merged where all three strides allow it."""
    axes: list[_Axis] = []
    steps = zip(product.a.batch, product.b.batch, product.c.batch, strict=True)
    for axis in (axis for axis in map(_Axis, product.batch, steps) if axis.extent > 1):
        merges = axes and axes[-1].steps == tuple(axis.extent * step for step in axis.steps)
        axes.append(_Axis(axes.pop().extent * axis.extent, axis.steps) if merges else axis)
    return axes


def _batched(single: StoredProduct, axes: Sequence[_Axis], sizes: Starts) -> list[StoredProduct]:
    if not axes:
        return [single]
    if len(axes) == 1:
        return [_strided_batch(single, axes[0], sizes)]
    longest = max(range(len(axes)), key=lambda k: axes[k].extent)
    other_axes = [axis for k, axis in enumerate(axes) if k != longest]
    count = math.prod(axis.extent for axis in axes)
    products = [single._replace(matrices=count, starts=_starts(axes), by_pointers=True)] if count <= MAX_EXTENT else []
    if math.prod(axis.extent for axis in other_axes) <= MAX_BATCH_CALLS:
        products.append(_strided_batch(single, axes[longest], sizes)._replace(starts=_starts(other_axes)))
    return products


def _strided_batch(single: StoredProduct, axis: _Axis, sizes: Starts) -> StoredProduct:
    """Compute all products along an axis in one call; `sizes` are the bytes of an element of a, b and c."""
    a, b, c = (step // size for step, size in zip(axis.steps, sizes, strict=True))
    return single._replace(
        first=single.first._replace(offset=b),
        second=single.second._replace(offset=a),
        result=single.result._replace(offset=c),
        matrices=axis.extent,
    )


def _starts(axes: Sequence[_Axis]) -> tuple[Starts, ...]:
    """Return the offsets of each product, the last axis varying fastest."""
    starts: list[Starts] = []
    for indices in combinations(*(range(axis.extent) for axis in axes)):
        a, b, c = (sum(k * axis.steps[x] for k, axis in zip(indices, axes, strict=True)) for x in range(3))
        starts.append((a, b, c))
    return tuple(starts)


def _stored(matrix: MatrixLayout, across: int, along: int, itemsize: int) -> StoredMatrix | None:
    """Return the column-major transpose of a matrix of `along` rows of `across` elements.

    Return None if neither axis is contiguous. An axis of one element is contiguous.
    """
    row, column = matrix.row, matrix.column
    if (column == itemsize or across == 1) and (leading := _leading(row, across, along, itemsize)):
        return StoredMatrix(across, along, leading)
    if (row == itemsize or along == 1) and (leading := _leading(column, along, across, itemsize)):
        return StoredMatrix(along, across, leading, transposed=True)
    return None


def _leading(step: int, dense: int, count: int, itemsize: int) -> int | None:
    """Return the elements between columns of `dense` elements; None if columns overlap or go backwards."""
    if count == 1:
        return dense
    return step // itemsize if not step % itemsize and dense * itemsize <= step <= MAX_EXTENT * itemsize else None
