"""Special functions beside the standard, under SciPy's names: `scipy.special` takes them from here where it may."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NoReturn

from gradserve_client.errors import InputError
from gradserve_client.recording.emitting import Operand, broadcast_shape, emit, promote
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.recorder import Traced

__all__ = [
    "betainc",
    "betaln",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "polygamma",
    "psi",
    "sinc",
    "xlog1py",
    "xlogy",
    "zeta",
]


def _function(name: str, op: str, of: int) -> Callable[..., Traced]:
    """A function of so many arrays that broadcast; of integers it is that of float64."""

    def function(*arrays: Operand) -> Traced:
        if len(arrays) != of:
            raise InputError(f"this is of {of} arrays, and not of {len(arrays)}")
        return _emitted(op, *arrays)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"SciPy's `{name}`, by the op `{op}`, elementwise."
    return locates_errors(function)


def _emitted(op: str, *arrays: Operand, **attrs: int) -> Traced:
    operands = promote(*arrays, floating=True)
    first = operands[0]
    if first.dtype.kind == "c" and op != "sigmoid":
        raise InputError(f"no op has this of complex numbers, as {first.type_name} is")
    return emit(op, operands, broadcast_shape(*operands), first.dtype, **attrs)


betainc = _function("betainc", "betainc", 3)
betaln = _function("betaln", "betaln", 2)
digamma = _function("digamma", "digamma", 1)
erf = _function("erf", "erf", 1)
erfc = _function("erfc", "erfc", 1)
erfinv = _function("erfinv", "erfinv", 1)
expit = _function("expit", "sigmoid", 1)
gammainc = _function("gammainc", "igamma", 2)
gammaincc = _function("gammaincc", "igammac", 2)
gammaln = _function("gammaln", "lgamma", 1)
i0 = _function("i0", "i0", 1)
i0e = _function("i0e", "i0e", 1)
i1 = _function("i1", "i1", 1)
i1e = _function("i1e", "i1e", 1)
log_ndtr = _function("log_ndtr", "log_ndtr", 1)
psi = _function("psi", "digamma", 1)
sinc = _function("sinc", "sinc", 1)
xlog1py = _function("xlog1py", "xlog1py", 2)
xlogy = _function("xlogy", "xlogy", 2)


@locates_errors
def polygamma(n: int, x: Operand, /) -> Traced:
    """SciPy's `polygamma`, by the op: the n-th derivative of `digamma`, n a number."""
    return _emitted("polygamma", x, order=operator.index(n))


@locates_errors
def zeta(x: Operand, q: Operand | None = None, /) -> Traced:
    """SciPy's `zeta`, by the op: Hurwitz' function Σ (q + k)⁻ˣ; Riemann's, of q = 1, where that is not given."""
    return _emitted("zeta", x, 1 if q is None else q)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"special has no {name}: what it has is {', '.join(__all__)}")
