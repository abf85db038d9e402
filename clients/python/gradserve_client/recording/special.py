"""Special functions under SciPy's names; `scipy.special` uses them if it can. They are not part of the standard."""

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


def _function(name: str, op: str, arity: int) -> Callable[..., Traced]:
    """Create an elementwise function of `arity` arrays, which broadcast. Integers are converted to float64."""

    def function(*arrays: Operand) -> Traced:
        if len(arrays) != arity:
            raise InputError(f"the number of arrays must be {arity}, not {len(arrays)}")
        return _emit(op, *arrays)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Compute SciPy's `{name}` elementwise, with the op `{op}`."
    return locates_errors(function)


def _emit(op: str, *arrays: Operand, **attrs: int) -> Traced:
    operands = promote(*arrays, floating=True)
    first = operands[0]
    if first.dtype.kind == "c" and op != "sigmoid":
        raise InputError(f"no op computes this for complex numbers, but {first.type_name} is complex")
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
    """Compute SciPy's `polygamma`: the n-th derivative of `digamma`, for an int n."""
    return _emit("polygamma", x, order=operator.index(n))


@locates_errors
def zeta(x: Operand, q: Operand | None = None, /) -> Traced:
    """Compute SciPy's `zeta`: the Hurwitz zeta function Σ (q + k)⁻ˣ; without q, the Riemann zeta function (q = 1)."""
    return _emit("zeta", x, 1 if q is None else q)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"special has no {name}; it has {', '.join(__all__)}")
