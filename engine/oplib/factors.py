"""Matrices taken apart, some at a time: a batch in chunks, and in it matrices that have no answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import is_complex
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import Shape, TensorType
from engine.oplib.matrices import computed, unchecked, wide_dtype

#: elements of a chunk, and FLOPs of one in units of n³: a few milliseconds of work between two looks at the deadline
_ELEMENTS: Final = 1 << 15
_CUBES: Final = 1 << 20

#: seconds of LAPACK on one processor of today, for each m n min(m, n) of a matrix of doubles: what took least, so that
#: what is refused would be late. Of complex numbers it is three times as much at least.
_SECONDS: Final = {
    "eigh": 1.8e-10,
    "eigvalsh": 6e-11,
    "svd": 3.3e-10,
    "svdvals": 1.2e-10,
    "qr": 8e-11,
    "lu": 2.2e-11,
    "matrix_exp": 1.8e-10,
}
_COMPLEX: Final = 3


def at_once(shape: Shape) -> int:
    """How many matrices of this shape, on its last two axes, are one chunk."""
    m, n = shape[-2:]
    return max(1, min(_ELEMENTS // max(1, m * n), _CUBES // max(1, m * n * max(m, n))))


def chunks(
    run: RunContext, operands: Sequence[Array], outs: Sequence[Array]
) -> Iterator[tuple[list[Array], list[Array]]]:
    """Of a batch, some matrices at a time: copies of the operands in the dtype `computed`, and where results go.

    All have the batch axes of the first operand, whose last two hold matrices. Raises DeadlineExceeded.
    """
    batch = operands[0].shape[:-2]
    count, axes = math.prod(batch), len(batch)
    flat = [a.reshape(count, *a.shape[axes:]) for a in (*operands, *outs)]
    dtype, size = computed(run, max(operands, key=_is_complex)), at_once(operands[0].shape)
    for start in run.through(range(0, count, size)):
        part = slice(start, start + size)
        copies = [run.xp.array(a[part], dtype=dtype) for a in flat[: len(operands)]]
        yield copies, [a[part] for a in flat[len(operands) :]]


def _is_complex(x: Array) -> bool:
    return is_complex(x.dtype)


def chunk_bytes(shape: Shape, doubles: int, *operands: TensorType) -> int:
    """What chunks take of operands of this shape: so many doubles a matrix, and operands that a reshape copies.

    Of a complex operand they are pairs of doubles.
    """
    scattered = sum(x.nbytes for x in operands if not x.is_dense and x.ndim > 3)
    number = max(wide_dtype(x.dtype).itemsize for x in operands)
    return scattered + number * doubles * min(at_once(shape), math.prod(shape[:-2]))


def symmetric_part(x: Array) -> Array:
    """(x + xᴴ) / 2, of a chunk that may be written over."""
    x *= 0.5
    return x + x.swapaxes(-1, -2).conj()


def factored(run: RunContext, name: str, x: Array) -> Sequence[Array]:
    """The factors of each matrix of a chunk [c, m, n], which is written over: NaN where there are none.

    `name` is one of eigh, eigvalsh (of what is symmetric), svd, svdvals (thin), and qr (reduced). A matrix with an
    infinity or NaN has no factors: LAPACK is never shown one. Raises DeadlineTooNear for one that takes too long.
    """
    lost = ~run.xp.isfinite(x).all(axis=(-2, -1))
    x[lost] = 0
    factors = _factored(run, name, x)
    for y in factors:
        y[lost] = np.nan
    return factors


@DeviceFunction
def _factored(run: RunContext, name: str, x: Array) -> list[Array]:
    """One call where all matrices have factors; only else one each."""
    function = _checked(run.xp, name)
    try:
        return list(_several(function(x)))
    except np.linalg.LinAlgError:
        return _one_by_one(function, x)


def _one_by_one(function: Callable[[Array], Any], x: Array) -> list[Array]:
    """At least one has none. What those are like that have none is seen of a matrix of zeros."""
    found = []
    for i in range(len(x)):
        try:
            found.append(_several(function(x[i : i + 1])))
        except np.linalg.LinAlgError:
            found.append([np.nan * y for y in _several(function(0 * x[i : i + 1]))])
    return [_joined(parts) for parts in zip(*found, strict=True)]


def _joined(parts: Sequence[Array]) -> Array:
    whole = parts[0].repeat(len(parts), axis=0)
    for i, part in enumerate(parts):
        whole[i] = part[0]
    return whole


def _several(found: Any) -> Sequence[Array]:
    return found if isinstance(found, tuple | list) else [found]


def _checked(xp: Any, name: str) -> Callable[[Array], Any]:
    functions: dict[str, Callable[[Array], Any]] = {
        "eigh": xp.linalg.eigh,
        "eigvalsh": xp.linalg.eigvalsh,
        "svd": partial(xp.linalg.svd, full_matrices=False),
        "svdvals": partial(xp.linalg.svd, compute_uv=False),
        "qr": xp.linalg.qr,
    }
    return functions[name]


def admit(run: RunContext, name: str, x: Array) -> None:
    """Look whether there is time for a chunk on a processor, by a name of `_SECONDS`. Raises DeadlineTooNear."""
    if run.device == "cpu":
        times = _COMPLEX if _is_complex(x) else 1
        run.deadline.admit(times * _SECONDS[name] * x.size * min(x.shape[-2:]) / run.threads)


@_factored.on("cpu")
def _factored_on_cpu(run: RunContext, name: str, x: Array) -> list[Array]:
    """Without the check that takes what others have, where NumPy has such a function. Raises DeadlineTooNear."""
    admit(run, name, x)
    function = unchecked(name)
    if function is None:
        return _factored.general(run, name, x)
    with np.errstate(all="ignore"):
        return list(_several(function(x)))


@_factored.on("cuda")
def _factored_on_cuda(run: RunContext, name: str, x: Array) -> list[Array]:
    """CuPy leaves numbers without meaning, unless told to look and raise."""
    import cupyx  # noqa: PLC0415 - optional

    with cupyx.errstate(linalg="raise"):
        return _factored.general(run, name, x)
