"""Base of the ops of networks that are formulas over floats."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from engine.graph.dtypes import FLOATS
from engine.graph.ir import Value
from engine.graph.op import Composite
from engine.graph.tensor_type import FLOAT16, promote
from engine.oplib.widening import wide


class Formula(Composite):
    """A composite that computes float16 operands in float32: squares and exponentials leave float16's range."""

    dtypes: ClassVar[tuple[str, ...]] = FLOATS

    @abstractmethod
    def formula(self, *operands: Any, **attrs: Any) -> Value:
        """The result, of operands none of which is float16."""

    def compose(self, *operands: Value, **attrs: Any) -> Value:
        """Widen, compute, and cast back to the operands' common dtype."""
        y = self.formula(*map(wide, operands), **attrs)
        floats = [x.dtype for x in operands if x.type.is_differentiable]
        return y.cast(dtype=promote(*floats)) if FLOAT16 in floats else y
