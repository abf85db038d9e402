"""Truths: values and gradients that were found without the op's kernel and its gradient rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Truth:
    """One use of an op, with its value and its gradients as numbers that were found without it.

    The contract tests compare an op with itself: its gradient with differences of its kernel, a batch with a loop. An
    op whose kernel and gradient are both doubled stands up to that, and falls only by a truth. So the numbers come
    from outside: worked out by hand, from mpmath or SciPy, from a table; `source` says from where.

    Tensors are numbers or nested lists; as in JSON, 1.0 makes float64, 1 int64 and True bool. `value` is the result,
    a tuple where the op has several. `gradients` are those of sum(value · cotangent), one an operand, with None for an
    operand that has none; absent, the truth is of the value alone. Without `cotangent`, it is 1 everywhere; where the
    op has several results, it is a tuple, with None for a result that is not float.
    """

    operands: Sequence[Any]
    value: Any
    source: str
    gradients: Sequence[Any] | None = None
    cotangent: Any = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
