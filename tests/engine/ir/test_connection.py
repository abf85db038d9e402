"""Gradients never end silently: an op with a gradient rule and a non-differentiable result must declare it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import Builder, EngineError, TensorType, Value, registry
from engine.autodiff.vjp import vjp
from engine.ir.graph import inferred
from engine.ir.op import Definition, NoGradient
from engine.ir.tensor_type import ELEMENT_TYPES, INT64
from engine.ir.verify import MalformedGraph, verify
from tests.sampling import together

F = TensorType((2, 3), np.dtype("float64"))
OPS = registry().ops


class Floored(type(OPS["neg"])):  # type: ignore[misc]
    """A faulty op: it has a gradient rule, but its result has no gradients."""

    name = "floored"
    internal = True

    def result_dtype(self, *dtypes: Any, **attrs: Any) -> Any:
        """Return an integer dtype for all operands."""
        return INT64


class Declared(Floored):
    """The same op, which declares that gradients end."""

    vjp = NoGradient("it is constant between its steps")


def leaf(type: TensorType = F) -> Value:
    return Builder(registry()).leaf(type, 0)


def test_op_with_a_rule_may_not_return_integers() -> None:
    x = leaf()
    with pytest.raises(TypeError, match=r"^floored makes int64\[2,3\] of float64\[2,3\], .* NoGradient") as raised:
        x.builder.emit(Floored(), (x,), {})
    assert not isinstance(raised.value, EngineError), "a rule's mistake is not the client's"
    assert len(x.builder.nodes) == 1, "nothing was written"


def test_verifier_refuses_an_undeclared_end_of_gradients() -> None:
    x = leaf()
    y = x.builder.append(x.neg().node._replace(op=Floored(), types=(F.with_dtype(INT64),)))
    with pytest.raises(MalformedGraph, match="floored makes int64"):
        verify(x.builder.graph([y]))


def test_declared_or_trivial_end_of_gradients_is_accepted() -> None:
    x = leaf()
    cut = x.builder.emit(Declared(), (x,), {})
    assert vjp(x.builder, [(cut.cast(dtype=F.dtype).sum(), x.builder.full((), 1.0, F.dtype))], [x]) == [None]
    whole = leaf(F.with_dtype("int32"))
    assert whole.builder.emit(Floored(), (whole,), {}).dtype == INT64


def test_cast_to_integers_is_accepted() -> None:
    assert leaf().cast(dtype=INT64).dtype == INT64


#: a dtype of each kind
KINDS = tuple({element.kind: np.dtype(element.name) for element in ELEMENT_TYPES}.values())


def typings(op: Definition) -> Iterator[tuple[tuple[TensorType, ...], dict[str, Any]]]:
    """The operand types and attributes of each sample, with every mixture of kinds in place of its dtypes."""
    random = np.random.default_rng(0)
    for sample in op.samples:
        types = [TensorType.of(operand.draw(random)) for operand in sample.operands]
        attrs = {name: attr.check(name, sample.attrs[name]) for name, attr in op.attrs.items() if name in sample.attrs}
        for dtypes in product(KINDS, repeat=len(types)):
            yield tuple(map(TensorType.with_dtype, types, dtypes)), attrs


def disconnected(op: Definition, types: tuple[TensorType, ...], attrs: dict[str, Any]) -> set[str]:
    """Operands whose derivatives end in an op on these types; none if it is refused.

    Raises TypeError if the op has a gradient rule and does not declare them.
    """
    try:
        results = inferred(op, types, attrs).types
    except EngineError:
        return set()
    if any(type.is_differentiable for type in results):
        return set()
    return {op.operand_name(i) for i, type in enumerate(types) if type.is_differentiable}


@together
@pytest.mark.parametrize("name", sorted(OPS))
def test_every_op_declares_the_operands_it_disconnects(name: str) -> None:
    op = OPS[name]
    ending = set[str]().union(*(disconnected(op, types, attrs) for types, attrs in typings(op)))
    assert ending.issuperset(op.may_disconnect), "it states operands of which it has a rule throughout"
