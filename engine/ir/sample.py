"""Samples and truths: an op's statements about its domain and its values, for the contract tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engine.ir.tensor_type import Shape


@dataclass(frozen=True)
class Operand:
    """Recipe for drawing an operand: uniform in [low, high), as float, integer, bool or uint32 words.

    Both parts of a complex number are drawn like this. `diagonal` is added where the last two axes have equal indices.
    """

    kind: str
    shape: Shape
    low: float
    high: float
    diagonal: float = 0.0

    @property
    def as_complex(self) -> Operand:
        """The complex variant of a real operand; other operands are unchanged."""
        return replace(self, kind="complex") if self.kind == "real" else self

    def draw(self, rng: np.random.Generator, float_dtype: str = "float64") -> np.ndarray[Any, Any]:
        """Draw a random array of this shape: floats have `float_dtype`, integers are int64, words uint32.

        Complex numbers are complex128 if `float_dtype` is float64, else complex64.
        """
        if self.kind == "real":
            return self._with_diagonal(np.asarray(rng.uniform(self.low, self.high, self.shape))).astype(float_dtype)
        if self.kind == "complex":
            real, imaginary = (np.asarray(rng.uniform(self.low, self.high, self.shape)) for _ in range(2))
            return self._with_diagonal(np.asarray(real + 1j * imaginary)).astype(
                "complex128" if float_dtype == "float64" else "complex64"
            )
        if self.kind == "words":
            return np.asarray(rng.integers(int(self.low), int(self.high), self.shape, np.uint32))
        if self.kind == "int":
            return np.asarray(rng.integers(int(self.low), int(self.high), self.shape))
        return np.asarray(rng.random(self.shape) < 0.5)

    def _with_diagonal(self, drawn: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not self.diagonal:
            return drawn
        rows, columns = self.shape[-2:]
        return np.asarray(drawn + self.diagonal * np.eye(rows, columns))


def Real(  # noqa: N802 - reads as a constructor
    *shape: int, low: float = -2.0, high: float = 2.0, diagonal: float = 0.0
) -> Operand:
    """Return a recipe for floats between `low` and `high`: the op's domain, away from kinks and poles.

    For matrices that must be regular or positive definite, `diagonal` is added, which should outweigh the rest of a
    row.
    """
    return Operand("real", shape, low, high, diagonal)


def Ints(*shape: int, high: int, low: int = 0) -> Operand:  # noqa: N802 - reads as a constructor
    """Return a recipe for integers in [low, high): indices and classes."""
    return Operand("int", shape, low, high)


def Words(*shape: int) -> Operand:  # noqa: N802
    """Return a recipe for 32-bit random words: keys of random number generators."""
    return Operand("words", shape, 0, 2**32)


def Bools(*shape: int) -> Operand:  # noqa: N802 - reads as a constructor
    """Return a recipe for booleans."""
    return Operand("bool", shape, 0, 1)


class Sample:
    """One use of an op: operands to draw, and attributes as a client writes them."""

    def __init__(self, *operands: Operand, **attrs: Any) -> None:
        self.operands = operands
        self.attrs = attrs

    def __repr__(self) -> str:
        shapes = ", ".join(f"{o.kind}{list(o.shape)}" for o in self.operands)
        attrs = "".join(f", {k}={v}" for k, v in self.attrs.items())
        return f"({shapes}{attrs})".replace(" ", "")


@dataclass(frozen=True, kw_only=True)
class Truth:
    """One use of an op, with its value and gradients as numbers that were computed independently of it.

    Contract tests compare an op with itself: its gradient with finite differences of its kernel, a batch with a loop.
    If an op's kernel and gradient were both doubled, these tests would pass; only a truth detects it. So the numbers
    come from elsewhere: computed by hand, by mpmath or SciPy, or taken from a table; `source` says which.

    Tensors are numbers or nested lists; as in JSON, 1.0 makes float64, 1 int64 and True bool. `value` is the result, a
    tuple if the op has several. `gradients` are those of sum(value · cotangent), one per operand, with None for an
    operand without one; if absent, only the value is checked. `cotangent` defaults to 1 everywhere; if the op has
    several results, it is a tuple, with None for a result that is not float.
    """

    operands: Sequence[Any]
    value: Any
    source: str
    gradients: Sequence[Any] | None = None
    cotangent: Any = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
